//! The links of the cluster file.

use edgeloom_common::ids::NodeId;
use edgeloom_common::units::BitRate;
use edgeloom_sched::snapshot::{Duplex, Link};
use std::collections::BTreeSet;

use super::fields::{Fields, Found, Reading};
use super::topology::{LINKS_MAX, Named};

const LINK_FIELDS: &[&str] = &["between", "rate", "duplex", "declared"];

/// Each link between two known nodes.
pub(super) fn links(reading: &mut Reading<'_>, entries: Vec<Found<'_>>, nodes: &Named) -> Vec<Link> {
    let mut links = Vec::new();
    let mut pairs = BTreeSet::new();
    for entry in entries.into_iter().take(LINKS_MAX) {
        let Some(fields) = reading.open(entry, LINK_FIELDS) else { continue };
        let ends = ends(reading, &fields, nodes);
        let rate = reading.required::<BitRate>(&fields, "rate", "write a rate with its unit, as 20Mbit/s");
        let duplex = duplex(reading, &fields);
        let Some((a, b)) = ends else { continue };
        if !pairs.insert((a.clone(), b.clone())) {
            reading.add(fields.span(), &fields.path, format!("link {a}-{b} appears twice"), "leave one");
        }
        let rate = rate.unwrap_or_default();
        links.push(Link { a, b, a_to_b: rate, b_to_a: rate, duplex });
    }
    links
}

/// Both ends, the lesser name first.
fn ends(reading: &mut Reading<'_>, fields: &Fields<'_>, nodes: &Named) -> Option<(NodeId, NodeId)> {
    const REMEDY: &str = "write the names of two nodes, as between = [\"n1\", \"n2\"]";
    let Some((value, path)) = fields.value("between") else {
        reading.missing(fields, "between", REMEDY);
        return None;
    };
    let names = reading.list(fields, "between", REMEDY);
    let texts: Vec<&str> = names.iter().filter_map(|(name, _)| name.get_ref().as_str()).collect();
    let mut refuse = |problem: String| reading.add(&value.span(), &path, problem, REMEDY);
    let [a, b] = texts[..] else {
        refuse("does not name two nodes".to_owned());
        return None;
    };
    let mut known = |name: &str| {
        let found = nodes.iter().find(|(node, _)| node.as_str() == name).map(|(node, _)| node.clone());
        if found.is_none() {
            refuse(format!("there is no node {name:?}"));
        }
        found
    };
    let (a, b) = (known(a), known(b));
    let (a, b) = (a?, b?);
    if a == b {
        refuse(format!("joins {a} with itself"));
        return None;
    }
    Some(if a < b { (a, b) } else { (b, a) })
}

fn duplex(reading: &mut Reading<'_>, fields: &Fields<'_>) -> Duplex {
    const REMEDY: &str = "write \"full\", or \"half\" where both directions share the rate";
    match reading.parsed::<String>(fields, "duplex", REMEDY).as_deref() {
        None | Some("full") => Duplex::Full,
        Some("half") => Duplex::Half,
        Some(other) => {
            let (problem, path) = (format!("{other:?} is unknown"), format!("{}.duplex", fields.path));
            reading.add(fields.span(), &path, problem, REMEDY);
            Duplex::Full
        }
    }
}
