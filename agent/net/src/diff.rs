//! Wanted minus found, as an ordered list of the least operations: pure.
//!
//! rtnetlink is not transactional, so the order keeps every packet on a path that works: first what
//! map entries point to (classes, routes, rules), then all map entries in one transaction, and only then is
//! removed what no entry points to any more. Lowered rates go before raised ones.

use crate::object::{Class, Element, Found, Operation, Root, TableChange};
use crate::plan::Wanted;
use crate::tag::LINK_MINOR;
use edgeloom_common::desired::FlowKey;
use std::collections::BTreeMap;

/// The steps from what is there to what should be.
pub(crate) fn diff(wanted: &Wanted, found: &Found) -> Vec<Operation> {
    let mut operations = Vec::new();
    add_shaping(wanted, found, &mut operations);
    add_routing(wanted, found, &mut operations);
    change_table(wanted, found, &mut operations);
    remove(wanted, found, &mut operations);
    operations
}

fn add_shaping(wanted: &Wanted, found: &Found, operations: &mut Vec<Operation>) {
    for interface in &wanted.shaped {
        if found.roots.get(interface) != Some(&Root::Ours) {
            operations.push(Operation::AddRoot { interface: interface.clone() });
        }
    }
    let changed = wanted.classes.iter().filter(|(place, class)| found.classes.get(*place) != Some(class));
    let mut changed: Vec<_> = changed.collect();
    changed.sort_by_key(|(place, class)| rank(place.1, **class, found.classes.get(*place)));
    for ((interface, minor), class) in changed {
        operations.push(Operation::PutClass { interface: interface.clone(), minor: *minor, class: *class });
    }
    for (place, leaf) in &wanted.leaves {
        if found.leaves.get(place) != Some(leaf) {
            operations.push(Operation::PutLeaf { interface: place.0.clone(), minor: place.1, leaf: *leaf });
        }
    }
}

/// The parent of all first, then what gives bandwidth back, then the rest.
fn rank(minor: u16, wanted: Class, found: Option<&Class>) -> u8 {
    match found {
        _ if minor == LINK_MINOR => 0,
        Some(found) if wanted.rate < found.rate => 1,
        _ => 2,
    }
}

fn add_routing(wanted: &Wanted, found: &Found, operations: &mut Vec<Operation>) {
    operations.extend(wanted.routes.difference(&found.routes).cloned().map(Operation::PutRoute));
    operations.extend(wanted.rules.difference(&found.rules).cloned().map(Operation::AddRule));
    operations.extend(wanted.accepts.difference(&found.accepts).cloned().map(Operation::AddAccept));
}

fn change_table(wanted: &Wanted, found: &Found, operations: &mut Vec<Operation>) {
    if !wanted.table {
        return;
    }
    let intact = found.table.as_ref().filter(|table| table.pool == Some(wanted.pool));
    let nothing = BTreeMap::new();
    let (marks, classes) = intact.map_or((&nothing, &nothing), |table| (&table.marks, &table.classes));
    let change = TableChange {
        replace: intact.is_none().then_some(wanted.pool),
        remove_marks: difference(marks, &wanted.marks),
        remove_classes: difference(classes, &wanted.class_ids),
        add_marks: difference(&wanted.marks, marks),
        add_classes: difference(&wanted.class_ids, classes),
    };
    if !change.is_empty() {
        operations.push(Operation::ChangeTable(change));
    }
}

/// Elements of `left` that `right` lacks or has with another value.
fn difference(left: &BTreeMap<FlowKey, u32>, right: &BTreeMap<FlowKey, u32>) -> Vec<Element> {
    let differing = left.iter().filter(|(key, value)| right.get(*key) != Some(value));
    differing.map(|(key, value)| Element { key: *key, value: *value }).collect()
}

fn remove(wanted: &Wanted, found: &Found, operations: &mut Vec<Operation>) {
    operations.extend(found.accepts.difference(&wanted.accepts).cloned().map(Operation::RemoveAccept));
    operations.extend(found.rules.difference(&wanted.rules).cloned().map(Operation::RemoveRule));
    let replaced = |route: &_| wanted.routes.iter().any(|new| same_place(new, route));
    let gone = found.routes.difference(&wanted.routes).filter(|route| !replaced(route));
    operations.extend(gone.cloned().map(Operation::RemoveRoute));
    for (interface, minor) in found.classes.keys() {
        let place = (interface.clone(), *minor);
        if wanted.shaped.contains(interface) && !wanted.classes.contains_key(&place) {
            operations.push(Operation::RemoveClass { interface: place.0, minor: place.1 });
        }
    }
    for (interface, root) in &found.roots {
        if *root == Root::Ours && !wanted.shaped.contains(interface) {
            operations.push(Operation::RemoveRoot { interface: interface.clone() });
        }
    }
}

/// Setting the one replaces the other.
pub(crate) fn same_place(new: &crate::object::Route, old: &crate::object::Route) -> bool {
    new.table == old.table && new.destination == old.destination
}
