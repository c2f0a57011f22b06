//! What a container used and cost, from a node's counters to the command line.

use super::secrets::{node, served};
use super::{Daemon, errors};
use edgeloom_cluster::fake::Guard;
use edgeloom_common::usage::{UsageEnd, UsageList};

/// A thousandth of a unit of currency for each core-second, twice that where the reputation is premium.
const PRICES: &str = "[prices]\ncurrency = \"EUR\"\ncore_hour = \"3.6\"\ngb_sent = \"1\"\n[prices.resources]\npremium = \"2\"\n";

fn usage(daemon: &Daemon) -> UsageList {
    let output = daemon.edgeloom(&["usage", "cats", "-o", "json"], "");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", errors(&output)))
}

/// The records, once this holds of them.
fn until(daemon: &Daemon, is: impl Fn(&UsageList) -> bool) -> UsageList {
    loop {
        let list = usage(daemon);
        if is(&list) {
            return list;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn a_container_s_use_is_counted_charged_and_kept() {
    let registry = served(Guard::Everybody);
    let daemon = Daemon::configured(&format!("[registries]\ninsecure = [{registry:?}]\n{PRICES}"), "info");
    let _given = node(&daemon, "n1");
    let job = format!(
        "kind: Job\nname: cats\nsla: {{ resources: premium }}\ntasks:\n  detect:\n    image: {registry}/app:1\n"
    );
    let ran = daemon.edgeloom(&["run", "-", "--wait"], &job);
    assert_eq!(ran.status.code(), Some(0), "{}", errors(&ran));
    let list = until(&daemon, |list| list.records.iter().any(|record| record.cpu_us > 0));
    let record = &list.records[0];
    // The node says ten seconds of a core and 5 MB sent.
    assert_eq!(
        (record.cpu_us, record.sent_bytes, record.runs, record.end),
        (10_000_000, 5_000_000, 1, UsageEnd::Open)
    );
    let charge = record.charge.as_ref().unwrap();
    assert_eq!((charge.cpu_micros.0, charge.sent_micros.0, charge.total_micros.0), (20_000, 5_000, 25_000));
    let said = |arguments: &[&str], code: i32| {
        let output = daemon.edgeloom(arguments, "");
        let text = String::from_utf8(output.stdout.clone()).unwrap() + &errors(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        text
    };
    let table = said(&["usage"], 0);
    assert!(table.contains("still there") && table.contains("0.025 EUR"), "{table}");
    assert!(said(&["job", "cats"], 0).contains("cost 0.025 EUR"));
    assert!(said(&["usage", "--until", "1d"], 0).starts_with("nothing was used"));
    assert!(said(&["usage", "--since", "yesterday"], 64).contains("2026-11-01"));
    assert!(said(&["usage", "--since", "1h", "--until", "2h"], 1).contains("is not before"));
    assert!(said(&["jobs", "-o", "csv"], 1).contains("edgeloom usage"));
    said(&["stop", "cats"], 0);
    let closed = until(&daemon, |list| list.records.iter().all(|record| record.number.is_some()));
    assert_eq!((closed.records[0].end, closed.records[0].cpu_us), (UsageEnd::Ended, 10_000_000));
    let csv = said(&["usage", "-o", "csv", "--since", "2026-01-01"], 0);
    let row: Vec<&str> = csv.lines().nth(1).unwrap().split(',').collect();
    assert_eq!((row[0], row[1], row[2], row[33]), ("1", "cats", "detect", "0.025"), "{csv}");
}
