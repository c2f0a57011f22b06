//! A node's own address changes, as with DHCP or on another Wi-Fi: towards the controller, and on a link that a
//! flow uses. It stays the node it is, and gets its session and its routes again.

use super::RECOVERY;
use super::report::{FaultRow, Report};
use super::stage::{PATIENCE, Stage};
use crate::api::wait_for;
use crate::command::{run, within};
use crate::ground::Ground;
use crate::network::{self, core, set_address};
use crate::topology::LinkSpec;
use anyhow::{Result, ensure};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

/// The node whose address changes, and a neighbour that sends to it.
const VICTIM: &str = "n2";
const NEIGHBOUR: &str = "n1";
/// From the change until session and routes are back.
const BOUND: Duration = Duration::from_secs(10);
/// The bus's port.
const PORT: &str = ":8883";

/// An address of the node that becomes another one.
struct Change {
    interface: &'static str,
    /// Network namespace from which the address is reached.
    from_where: String,
    old: Ipv4Addr,
    new: Ipv4Addr,
}

impl Change {
    fn back(&self) -> Self {
        let from_where = self.from_where.clone();
        Self { interface: self.interface, from_where, old: self.new, new: self.old }
    }

    fn is_uplink(&self) -> bool {
        self.interface == "up0"
    }
}

pub(super) fn play(ground: &Ground, report: &mut Report) -> Result<()> {
    let lab = &ground.lab;
    let [_, old] = LinkSpec::addresses(lab.topology.link(NEIGHBOUR, VICTIM)?);
    let [first, second, third, _] = old.octets();
    let uplink = Change {
        interface: "up0",
        from_where: core(&lab.id),
        old: lab.node(VICTIM)?.uplink_address().parse()?,
        new: Ipv4Addr::new(10, 60, 0, 99),
    };
    let link = Change {
        interface: "to-n1",
        from_where: lab.node(NEIGHBOUR)?.namespace(),
        old,
        new: Ipv4Addr::new(first, second, third, 77),
    };
    let stage = Stage::set(ground, RECOVERY)?;
    for change in [uplink, link] {
        one(&stage, &change, report)?;
        one(&stage, &change.back(), report)?;
    }
    stage.clear()
}

fn one(stage: &Stage<'_>, change: &Change, report: &mut Report) -> Result<()> {
    let Change { interface, from_where, old, new } = change;
    // What named the old address names the new one, and all else is as before.
    let wanted = stage.steady()?.renamed(&old.to_string(), &new.to_string());
    ensure!(network::answers(from_where, *old)?, "{VICTIM} does not answer at {old} before the change");
    let namespace = stage.ground.lab.node(VICTIM)?.namespace();
    set_address(&namespace, interface, (&format!("{old}/24"), &format!("{new}/24")))?;
    let begun = Instant::now();
    if change.is_uplink() {
        wait_for("the node's session from its new address", PATIENCE, || {
            Ok(sessions(stage)?.contains(&new.to_string()))
        })?;
    }
    stage.await_content(&wanted)?;
    stage.converged("after the change of the address")?;
    let took = begun.elapsed();
    ensure!(!network::answers(from_where, *old)?, "{VICTIM} still answers at {old}");
    stage.expect_items()?;

    let target = format!("{VICTIM} {interface}, {old} to {new}");
    let effect = format!("nobody answers at {old}");
    println!("  {target}: {effect}");
    let what = if change.is_uplink() { "session, documents and routes" } else { "documents and routes" };
    report.within(&format!("address change ({target}): {what} are back, s"), took, BOUND);
    let known = stage.ground.api.nodes()?.nodes.len();
    let nodes = stage.ground.lab.topology.nodes.len();
    report.verdict.check(&format!("address change ({target}): nodes known"), known == nodes, known, nodes);
    let changed = wanted.until(&stage.steady()?);
    report.nothing(&format!("address change ({target}): what else changed"), &changed);
    report.rows.push(FaultRow::new(("address-change", &target), effect, took, &changed));
    Ok(())
}

/// Where the nodes' sessions come from, as the controller's kernel tells it.
fn sessions(stage: &Stage<'_>) -> Result<Vec<String>> {
    let space = core(&stage.ground.lab.id);
    let words = within(&space, &["ss", "-Htn", "state", "established", "sport", "=", PORT]);
    let told = run(&words.iter().map(String::as_str).collect::<Vec<_>>())?;
    let peers = told.lines().filter_map(|line| line.split_whitespace().last()?.rsplit_once(':'));
    Ok(peers.map(|(address, _)| address.to_owned()).collect())
}
