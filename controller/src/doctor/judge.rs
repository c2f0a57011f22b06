//! Readings in, verdicts out; looks at nothing else.

use super::Readings;
use edgeloom_common::doctor::{Check, TIME_SERVICE, judge_year};
use edgeloom_common::images::WatchView;
use edgeloom_common::view::NodeView;

/// Certificates and logs bear less; the way of a birth message alone takes no second.
const SKEW_WARN_MS: u64 = 5_000;
/// A day: certificates of a day's validity, and of a node without a clock of its own, are refused.
const SKEW_FAIL_MS: u64 = 24 * 3_600_000;
/// Between the owner's steady clock and the wall clock: more was set by somebody.
const SET_MS: u64 = 2_000;

/// What an agent may write in a day; an idle one writes some kilobytes.
const WRITTEN_WARN_BYTES: u64 = 50_000_000;

/// Every check, the controller's own first, then one a node.
pub(super) fn checks(readings: &Readings) -> Vec<Check> {
    let mut checks = vec![
        owner(readings),
        clock(readings),
        readings.space.judge(&readings.state_dir, "edgeloom"),
        cluster(&readings.nodes),
    ];
    checks.extend(readings.registries.iter().map(registry));
    let clock_was_set = was_set(readings);
    checks.extend(readings.nodes.iter().flat_map(|one| [node(one), skew(one, clock_was_set)]));
    checks
}

fn owner(readings: &Readings) -> Check {
    const CHECK: &str = "readiness";
    match readings.owner_ms {
        Some(_) => Check::ok(CHECK, "the owner of the state answers"),
        None => Check::fail(
            CHECK,
            "the owner of the state does not answer",
            "see journalctl -u edgeloom-controller, then systemctl restart edgeloom-controller",
        ),
    }
}

fn was_set(readings: &Readings) -> bool {
    readings.owner_ms.is_none_or(|owner| SET_MS < owner.abs_diff(readings.now_ms))
}

fn clock(readings: &Readings) -> Check {
    const CHECK: &str = "clock";
    if let Some(wrong) = judge_year(readings.now_ms / 1000) {
        return wrong;
    }
    match readings.owner_ms {
        None => Check::unknown(CHECK, "the owner of the state does not answer", "see readiness above"),
        Some(_) if was_set(readings) => Check::warn(
            CHECK,
            "it was set since the controller started, or drifts; nodes cannot be compared with it",
            format!("{TIME_SERVICE}; then systemctl restart edgeloom-controller"),
        ),
        Some(_) => Check::ok(CHECK, "steady since the controller started"),
    }
}

fn cluster(nodes: &[NodeView]) -> Check {
    const CHECK: &str = "nodes";
    let online = nodes.iter().filter(|node| node.online).count();
    let seen = format!("{online} of {} online", nodes.len());
    if nodes.is_empty() {
        Check::warn(
            CHECK,
            "none was ever seen",
            "start edgeloom-agent on a node, with this controller's address",
        )
    } else if online == 0 {
        Check::fail(CHECK, seen, "see whether nodes reach the broker: journalctl -u edgeloom-agent, on one")
    } else {
        Check::ok(CHECK, seen)
    }
}

fn node(node: &NodeView) -> Check {
    let check = format!("node {}", node.name);
    let down: Vec<&str> =
        node.links.iter().filter(|link| !link.up).map(|link| link.neighbour.as_str()).collect();
    if !node.online {
        let remedy = "see power, network and `systemctl status edgeloom-agent` there";
        Check::warn(&check, "offline", remedy)
    } else if !node.ready {
        let remedy = "wait half a minute; then `edgeloom-agent doctor` there says what is in its way";
        Check::warn(&check, "online, but has not told what it has, or confirms nothing", remedy)
    } else if let Some(problem) = node.problems.first() {
        let seen = format!("{} problem(s), the first: {problem}", node.problems.len());
        Check::warn(&check, seen, "run `edgeloom-agent doctor` there")
    } else if !down.is_empty() {
        let seen = format!("links to {} are down", down.join(", "));
        Check::warn(&check, seen, "see cables and the neighbours' agents")
    } else if let Some(bytes) = node.agent_written_bytes_per_day.filter(|bytes| *bytes > WRITTEN_WARN_BYTES) {
        let seen = format!("its agent writes {} MB a day, which wears a card out", bytes / 1_000_000);
        Check::warn(&check, seen, "see `edgeloom events` for what changes so often")
    } else {
        Check::ok(&check, format!("ready, {} links", node.links.len()))
    }
}

/// What is known of its images serves while it is away, but nodes pull nothing.
fn registry(watched: &WatchView) -> Check {
    let check = format!("registry {}", watched.registry);
    if watched.away_since_ms.is_some() {
        let remedy = "see whether it runs, and the way there from the controller and the nodes";
        Check::warn(&check, format!("out of reach: {}", watched.reason), remedy)
    } else if !watched.reason.is_empty() && watched.images == 0 {
        let remedy = format!("log in: `edgeloom registry login {}`; or name it in no list", watched.registry);
        Check::warn(&check, watched.reason.clone(), remedy)
    } else {
        Check::ok(&check, format!("{} images", watched.images))
    }
}

/// As of the node's last connection.
fn skew(node: &NodeView, clock_was_set: bool) -> Check {
    let check = format!("clock of {}", node.name);
    let Some(ahead) = node.clock_ahead_ms.filter(|_| !clock_was_set) else {
        return Check::unknown(
            &check,
            "cannot be compared with the controller's",
            "see clock and node above",
        );
    };
    let apart = ahead.unsigned_abs();
    let direction = if ahead < 0 { "behind" } else { "ahead" };
    let seen = format!("{}.{:03} s {direction} when it connected", apart / 1000, apart % 1000);
    if apart < SKEW_WARN_MS {
        Check::ok(&check, seen)
    } else if apart < SKEW_FAIL_MS {
        Check::warn(&check, seen, TIME_SERVICE)
    } else {
        Check::fail(&check, seen, TIME_SERVICE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgeloom_common::doctor::{Space, Verdict};
    use serde_json::json;

    fn node_view(change: &serde_json::Value) -> NodeView {
        let mut view = json!({
            "name": "n1", "online": true, "ready": true, "architecture": "x86_64", "cpu_capacity_millicores": 4000,
            "cpu_requested_millicores": 0, "cpu_used_millicores": 0, "core_speed": 1.0, "memory_capacity_bytes": 1,
            "memory_requested_bytes": 0, "memory_used_bytes": 0, "disk_capacity_bytes": 1, "disk_used_bytes": 0,
            "labels": {}, "docker_version": "28.0.0", "layers_held": 0, "version_sent": [1, 1],
            "version_observed": [1, 1], "converged": true, "clock_ahead_ms": 120, "links": [], "problems": []
        });
        for (key, value) in change.as_object().unwrap() {
            view[key] = value.clone();
        }
        serde_json::from_value(view).unwrap()
    }

    fn watched(away_since_ms: Option<u64>, reason: &str) -> WatchView {
        let (registry, reason) = ("reg.lan:5000".parse().unwrap(), reason.to_owned());
        WatchView { registry, images: 0, away_since_ms, notifies: false, reason }
    }

    fn well() -> Readings {
        Readings {
            now_ms: 1_800_000_000_500,
            owner_ms: Some(1_800_000_000_000),
            state_dir: "/var/lib/edgeloom-controller".to_owned(),
            space: Space { writable: Ok(()), free_bytes: Ok(8 << 30) },
            nodes: vec![node_view(&json!({}))],
            registries: vec![watched(None, "")],
        }
    }

    fn ill(readings: &Readings) -> Vec<(String, Verdict)> {
        let checks = checks(readings).into_iter().filter(|check| check.verdict != Verdict::Ok);
        checks
            .map(|check| {
                assert!(!check.remedy.is_empty(), "{check:?}");
                (check.check, check.verdict)
            })
            .collect()
    }

    #[track_caller]
    fn with_node(change: &serde_json::Value, expected: &[(&str, Verdict)]) {
        let readings = Readings { nodes: vec![node_view(change)], ..well() };
        let expected: Vec<_> =
            expected.iter().map(|(check, verdict)| ((*check).to_owned(), *verdict)).collect();
        assert_eq!(ill(&readings), expected);
    }

    #[test]
    fn a_cluster_on_which_all_is_well_has_nothing_but_good_checks() {
        assert_eq!(ill(&well()), []);
    }

    #[test]
    fn nodes_that_are_away_silent_or_in_trouble_are_named() {
        let offline = [("nodes", Verdict::Fail), ("node n1", Verdict::Warn)];
        with_node(&json!({ "online": false, "ready": false }), &offline);
        with_node(&json!({ "ready": false }), &[("node n1", Verdict::Warn)]);
        with_node(&json!({ "problems": ["docker does not answer"] }), &[("node n1", Verdict::Warn)]);
        with_node(&json!({ "agent_written_bytes_per_day": 50_000_000 }), &[]);
        with_node(&json!({ "agent_written_bytes_per_day": 50_000_001 }), &[("node n1", Verdict::Warn)]);
        let down = json!({ "links": [{ "neighbour": "n2", "up": false, "rate_reserved_bps": 0, "loss_permille": 0 }] });
        with_node(&down, &[("node n1", Verdict::Warn)]);
    }

    #[test]
    fn registries_that_are_away_or_refuse_are_named() {
        for one in [watched(Some(1), "connection refused"), watched(None, "denied")] {
            let readings = Readings { registries: vec![one], ..well() };
            assert_eq!(ill(&readings), [("registry reg.lan:5000".to_owned(), Verdict::Warn)]);
        }
        let partly = WatchView { images: 3, ..watched(None, "its list leads round in a circle") };
        assert_eq!(ill(&Readings { registries: vec![partly], ..well() }), []);
    }

    #[test]
    fn clocks_of_nodes_are_compared_unless_the_own_one_was_set() {
        with_node(&json!({ "clock_ahead_ms": -30_000 }), &[("clock of n1", Verdict::Warn)]);
        with_node(&json!({ "clock_ahead_ms": -1_700_000_000_000_i64 }), &[("clock of n1", Verdict::Fail)]);
        with_node(&json!({ "clock_ahead_ms": null }), &[("clock of n1", Verdict::Unknown)]);
        let set = Readings { owner_ms: Some(1_700_000_000_000), ..well() };
        let expected = [("clock".to_owned(), Verdict::Warn), ("clock of n1".to_owned(), Verdict::Unknown)];
        assert_eq!(ill(&set), expected);
    }

    #[test]
    fn a_controller_without_owner_nodes_or_room_says_so() {
        let full = Space { writable: Ok(()), free_bytes: Ok(0) };
        let readings = Readings { owner_ms: None, space: full, nodes: Vec::new(), ..well() };
        let expected = [
            ("readiness".to_owned(), Verdict::Fail),
            ("clock".to_owned(), Verdict::Unknown),
            ("state directory".to_owned(), Verdict::Fail),
            ("nodes".to_owned(), Verdict::Warn),
        ];
        assert_eq!(ill(&readings), expected);
    }
}
