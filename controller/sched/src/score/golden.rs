//! Kubernetes' own test tables: each case names the file and commit of kubernetes/kubernetes (Apache-2.0)
//! that it comes from, or says that it was computed with the newer constants.

use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

use super::locality::{Present, image_locality};
use super::normal::{by_largest, by_largest_reversed, by_range};
use super::resources::{Use, balanced_allocation, least_allocated};
use super::spread::{Crowd, crowding, normalise};
use super::volume::{Class, Point, TIGHT, volume_binding};
use crate::scoring::Locality;
use edgeloom_common::units::Bytes;

#[derive(Debug, Deserialize)]
struct Case {
    plugin: String,
    case: String,
    input: Value,
    expected: Vec<i64>,
}

fn read<T: serde::de::DeserializeOwned>(input: &Value, key: &str) -> T {
    serde_json::from_value(input[key].clone()).unwrap()
}

fn uses(input: &Value) -> Vec<Vec<Use>> {
    let (requested, allocatable): (Vec<Vec<i64>>, Vec<Vec<i64>>) =
        (read(input, "requested_incl_pod"), read(input, "allocatable"));
    let weights: Vec<i64> = read::<Option<Vec<i64>>>(input, "weights_cpu_mem").unwrap_or(vec![1; 3]);
    let node = |(requested, allocatable): (&Vec<i64>, &Vec<i64>)| {
        let pairs = requested.iter().zip(allocatable).zip(&weights);
        let one = |((requested, allocatable), weight): ((&i64, &i64), &i64)| Use {
            requested: *requested,
            allocatable: *allocatable,
            weight: *weight,
        };
        pairs.map(one).collect()
    };
    requested.iter().zip(&allocatable).map(node).collect()
}

/// Images are named by their size in MiB; the older releases had one upper bound for all containers.
fn locality(input: &Value, old: bool) -> Vec<i64> {
    let containers: Vec<String> = read(input, "containers_MB");
    let nodes: Vec<BTreeMap<String, u64>> = read(input, "nodes");
    let total = read(input, "total_nodes");
    let having = |image: &String| nodes.iter().filter(|node| node.contains_key(image)).count() as u64;
    let score = |node: &BTreeMap<String, u64>| {
        let present: Vec<Present> = containers
            .iter()
            .filter_map(|image| Some(Present { bytes: node.get(image)? << 20, nodes: having(image) }))
            .collect();
        let count = if old { 1 } else { containers.len() as u64 };
        image_locality(&present, total, count, Locality::default())
    };
    nodes.iter().map(score).collect()
}

fn spread(input: &Value) -> Vec<i64> {
    if let Some(zones) = read::<Option<Vec<u32>>>(input, "zone_counts") {
        let (hosts, sizes): (Vec<u32>, Vec<usize>) = (read(input, "host_counts"), read(input, "sizes"));
        let node = |(zone, host): (&u32, &u32)| {
            let crowd = |count, places| Crowd { count, places, max_skew: 1 };
            Some(crowding(&[crowd(*zone, sizes[0]), crowd(*host, sizes[1])]))
        };
        return normalise(&zones.iter().zip(&hosts).map(node).collect::<Vec<_>>());
    }
    let (counts, ignored): (Vec<u32>, Vec<usize>) = (read(input, "matching_pods"), read(input, "ignored"));
    let (max_skew, size) = (read(input, "maxSkew"), read::<Option<usize>>(input, "topology_size"));
    let places = size.unwrap_or(counts.len() - ignored.len());
    let node = |(at, count): (usize, &u32)| {
        (!ignored.contains(&at)).then(|| crowding(&[Crowd { count: *count, places, max_skew }]))
    };
    normalise(&counts.iter().enumerate().map(node).collect::<Vec<_>>())
}

fn scores(case: &Case) -> Vec<i64> {
    let input = &case.input;
    match case.plugin.as_str() {
        "NodeResourcesFit/LeastAllocated" => uses(input).iter().map(|it| least_allocated(it)).collect(),
        "NodeResourcesBalancedAllocation" => uses(input).iter().map(|it| balanced_allocation(it)).collect(),
        "ImageLocality(old)" => locality(input, true),
        "ImageLocality" => locality(input, false),
        "TaintToleration" => {
            by_largest_reversed(&read::<Vec<i64>>(input, "intolerable_PreferNoSchedule_taints"))
        }
        "NodeAffinity" => by_largest(&read::<Vec<i64>>(input, "sum_of_matching_weights")),
        "InterPodAffinity" => by_range(&read::<Vec<i64>>(input, "raw")),
        "PodTopologySpread" => spread(input),
        other => panic!("no plugin {other}"),
    }
}

#[test]
fn all_of_kubernetes_own_cases_hold() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("../../tests/golden/kube.json")).unwrap();
    assert_eq!(cases.len(), 45);
    for case in &cases {
        assert_eq!(scores(case), case.expected, "{}: {}", case.plugin, case.case);
    }
}

/// volumebinding/scorer_test.go@2d58ef78: use of one or two classes in hundredths, and the score.
#[test]
fn volumes_score_by_how_tight_they_fit() {
    const SHAPE: [Point; 3] = [(50, 0), (80, 30), (100, 50)];
    let single = [(0, 0), (30, 30), (50, 50), (100, 100)];
    let double = [
        ((0, 0), 0),
        ((0, 30), 15),
        ((30, 30), 30),
        ((30, 60), 45),
        ((50, 50), 50),
        ((50, 100), 75),
        ((100, 100), 100),
    ];
    let shaped = [
        ((0, 0), 0),
        ((0, 30), 0),
        ((30, 30), 0),
        ((30, 60), 5),
        ((50, 100), 25),
        ((90, 90), 40),
        ((100, 100), 50),
    ];
    let class = |requested| Class { requested, capacity: 100 };
    for (used, score) in single {
        assert_eq!(volume_binding(&[class(used)], &TIGHT), score);
    }
    for ((x, y), score) in double {
        assert_eq!(volume_binding(&[class(x), class(y)], &TIGHT), score, "{x} {y}");
    }
    for ((x, y), score) in shaped {
        assert_eq!(volume_binding(&[class(x), class(y)], &SHAPE), score, "{x} {y}");
    }
    assert_eq!(volume_binding(&[], &TIGHT), 0);
}

#[test]
fn an_empty_range_of_sizes_scores_nothing() {
    let bounds = Locality { least: Bytes(5), most: Bytes(5) };
    assert_eq!(image_locality(&[Present { bytes: 9, nodes: 1 }], 1, 1, bounds), 0);
}
