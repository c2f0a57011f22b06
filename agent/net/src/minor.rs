//! Which HTB minor each flow's class has. A flow keeps the minor that the kernel's map names for it,
//! so that neither a restart nor another flow moves it to another class. Should someone flush the map,
//! what this run remembers serves.

use crate::object::Found;
use crate::tag::{FLOW_MINOR_MAX, flow_minor};
use edgeloom_common::desired::FlowKey;
use std::collections::{BTreeMap, BTreeSet};

/// Classids by flow, as the kernel's map or an earlier plan has them.
pub(crate) type ClassIds = BTreeMap<FlowKey, u32>;

/// The minor of each key; keys beyond the last free minor are missing. Minors in use by what is about
/// to go are given out last, since until the maps change they still carry its packets.
pub(crate) fn assign(
    keys: &BTreeSet<FlowKey>,
    found: &Found,
    remembered: &ClassIds,
) -> BTreeMap<FlowKey, u16> {
    let mut assigned = BTreeMap::new();
    let mut kept = BTreeSet::new();
    let held = found.table.iter().flat_map(|table| &table.classes).chain(remembered);
    let mut in_use: BTreeSet<u16> = found.classes.keys().map(|(_, minor)| *minor).collect();
    for (key, class_id) in held {
        let Some(minor) = flow_minor(*class_id) else {
            continue;
        };
        in_use.insert(minor);
        if keys.contains(key) && !assigned.contains_key(key) && kept.insert(minor) {
            assigned.insert(*key, minor);
        }
    }
    let open = || (1..=FLOW_MINOR_MAX).filter(|minor| !kept.contains(minor));
    let unused = open().filter(|minor| !in_use.contains(minor));
    let mut free = unused.chain(open().filter(|minor| in_use.contains(minor)));
    let missing: Vec<FlowKey> = keys.iter().filter(|key| !assigned.contains_key(key)).copied().collect();
    for key in missing {
        let Some(minor) = free.next() else { break };
        assigned.insert(key, minor);
    }
    assigned
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Table;
    use crate::tag::class_id;
    use edgeloom_common::desired::Protocol;
    use std::net::Ipv4Addr;

    fn key(port: u16) -> FlowKey {
        let address = Ipv4Addr::new(10, 77, 0, 2);
        FlowKey { source: address, destination: address, protocol: Protocol::Tcp, destination_port: port }
    }

    fn found(classes: &[(u16, u32)]) -> Found {
        let classes = classes.iter().map(|(port, id)| (key(*port), *id)).collect();
        Found { table: Some(Table { pool: None, marks: BTreeMap::new(), classes }), ..Found::default() }
    }

    #[test]
    fn a_flow_keeps_its_minor_and_new_ones_avoid_what_is_in_use() {
        let found = found(&[(1, class_id(7)), (2, class_id(1))]);
        let assigned = assign(&BTreeSet::from([key(1), key(3)]), &found, &ClassIds::new());
        assert_eq!(assigned[&key(1)], 7);
        assert_eq!(assigned[&key(3)], 2);
    }

    #[test]
    fn a_foreign_or_repeated_classid_is_not_kept() {
        let found = found(&[(1, 0x1_0007), (2, class_id(4)), (3, class_id(4)), (4, class_id(0xfffe))]);
        let assigned = assign(&BTreeSet::from([key(1), key(2), key(3), key(4)]), &found, &ClassIds::new());
        let distinct: BTreeSet<u16> = assigned.values().copied().collect();
        assert_eq!(distinct.len(), 4);
        assert!(distinct.iter().all(|minor| (1..=FLOW_MINOR_MAX).contains(minor)));
    }

    #[test]
    fn when_all_minors_are_taken_the_rest_go_without() {
        let keys: BTreeSet<FlowKey> = (0..=u16::MAX).map(key).collect();
        let assigned = assign(&keys, &Found::default(), &ClassIds::new());
        assert_eq!(assigned.len(), usize::from(FLOW_MINOR_MAX));
    }
}
