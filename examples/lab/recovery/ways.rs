//! The way that a flow's bytes really took, by what left each link.

use edgeloom_common::view::FlowView;

/// Bytes that left a link, by (from, to).
pub(super) type Counted = ((String, String), u64);

/// A way from the flow's first node to its last over links that each carried at least an item.
pub(super) fn way(flow: &FlowView, links: &[Counted]) -> Option<Vec<String>> {
    let carried = links.iter().filter(|(_, bytes)| *bytes >= flow.bytes_per_item);
    let carried: Vec<&(String, String)> = carried.map(|(link, _)| link).collect();
    let (first, last) = (flow.path.first()?.to_string(), flow.path.last()?.to_string());
    extend(vec![first], &last, &carried)
}

fn extend(way: Vec<String>, last: &str, links: &[&(String, String)]) -> Option<Vec<String>> {
    let here = way.last()?;
    if here == last {
        return Some(way);
    }
    let next = links.iter().filter(|(from, to)| from == here && !way.contains(to));
    next.clone().find_map(|(_, to)| extend([way.clone(), vec![to.clone()]].concat(), last, links))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow() -> FlowView {
        serde_json::from_value(serde_json::json!({
            "from": "a", "to": "b", "path": ["n1", "n2", "n4"], "bytes_per_item": 100, "rate_given_bps": 1
        }))
        .unwrap()
    }

    #[test]
    fn a_way_needs_an_item_on_every_link() {
        let link = |from: &str, to: &str, bytes| ((from.to_owned(), to.to_owned()), bytes);
        let mut links = vec![link("n1", "n2", 99), link("n2", "n4", 500), link("n1", "n3", 100)];
        assert_eq!(way(&flow(), &links), None);
        links.push(link("n3", "n4", 120));
        assert_eq!(way(&flow(), &links).unwrap(), ["n1", "n3", "n4"]);
    }
}
