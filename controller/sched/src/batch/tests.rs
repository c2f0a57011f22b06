use proptest::prelude::*;

use super::costs::Formula;
use super::floor::Floor;
use super::rounds::{Problem, numbers};
use super::units::Units;
use super::vectors::Scale;
use super::*;

const METHODS: [Method; 10] = [
    Method::EcschedDp,
    Method::EcschedDpOnce,
    Method::EcschedMl,
    Method::Spread(Blocked::Queue),
    Method::Spread(Blocked::One),
    Method::MostLoaded(Blocked::Queue),
    Method::MostLoaded(Blocked::One),
    packing(Objective::Count),
    packing(Objective::Utilisation),
    packing(Objective::Completion),
];

const fn packing(objective: Objective) -> Method {
    Method::Packing(Packing { objective, ageing_s: 600.0, patience_s: 3600.0 })
}

fn machine(cpu: i64, memory: i64) -> Machine {
    Machine { capacity: [cpu, memory, 100], free: [cpu, memory, 100] }
}

fn request(cpu: i64, memory: i64) -> Request {
    Request { demand: [cpu, memory, 0], ..Request::default() }
}

fn places(machines: &[Machine], requests: &[Request], method: Method) -> Vec<Result<usize, Refusal>> {
    place(&Batch { machines: machines.to_vec(), requests: requests.to_vec() }, method).places
}

/// Two machines of 4 cores and 8 GB, free: (4, 2) and (2, 8). Containers (2, 1) and (1, 4). With parts of the largest machine
/// (4 cores, 8 GB) the products are 1/2 * 1 + 1/8 * 1/4 = 17/32 and 1/2 * 1/2 + 1/8 * 1 = 3/8 for the first; for the second,
/// whose 4 GB fit the second machine only, 1/4 * 1/2 + 1/2 * 1 = 5/8.
#[test]
fn the_dot_product_aligns_demand_with_supply() {
    let machines =
        [Machine { capacity: [4, 8, 0], free: [4, 2, 0] }, Machine { capacity: [4, 8, 0], free: [2, 8, 0] }];
    let batch = Batch { machines: machines.to_vec(), requests: vec![request(2, 1), request(1, 4)] };
    assert_eq!(place(&batch, Method::EcschedDp).places, [Ok(0), Ok(1)]);
    let one = 1_i64 << 32;
    let instance = Instance::of(&batch, Method::EcschedDp).unwrap();
    let arcs = [(0, 0, -1 - one * 17 / 32), (0, 1, -1 - one * 3 / 8), (1, 1, -1 - one * 5 / 8)];
    assert_eq!(instance.arcs, arcs);
    let solution = Solution { cost: -2 - one * 17 / 32 - one * 5 / 8, scheduled: 2 };
    assert_eq!(Prepared::of(&batch, Method::EcschedDp).map(|flow| flow.solve()), Some(solution));
    assert_eq!(Instance::of(&batch, packing(Objective::Count)), None);
}

#[test]
fn most_loaded_packs_and_once_means_one_container_a_machine() {
    let machines = [machine(4, 8), Machine { capacity: [4, 8, 0], free: [3, 6, 0] }];
    let three = [request(1, 2), request(1, 2), request(1, 2)];
    // One a round: the loaded machine and the empty one, then the one that is the more loaded by then.
    let packed = places(&machines, &three, Method::EcschedMl);
    assert_eq!(packed.iter().filter(|place| **place == Ok(1)).count(), 2);
    let once = places(&machines, &three, Method::EcschedDpOnce);
    assert_eq!(once.iter().filter(|place| place.is_ok()).count(), 2);
    assert_eq!(once[2], Err(Refusal::NoRoom));
}

#[test]
fn a_queue_blocks_behind_what_does_not_fit_or_goes_round_it() {
    let machines = [Machine { capacity: [4, 8, 0], free: [2, 8, 0] }];
    let queue = [request(3, 1), request(1, 1)];
    assert_eq!(places(&machines, &queue, Method::Spread(Blocked::Queue)), [Err(Refusal::NoRoom); 2]);
    assert_eq!(places(&machines, &queue, Method::Spread(Blocked::One)), [Err(Refusal::NoRoom), Ok(0)]);
    let two = [machine(4, 8), Machine { capacity: [4, 8, 0], free: [3, 6, 0] }];
    assert_eq!(places(&two, &queue[1..], Method::Spread(Blocked::One)), [Ok(0)]);
    assert_eq!(places(&two, &queue[1..], Method::MostLoaded(Blocked::One)), [Ok(1)]);
}

#[test]
fn what_can_never_be_has_a_reason_and_the_rest_is_placed() {
    let together = |group| Request { together: Some(group), ..request(1, 1) };
    let requests = [
        request(9, 1),
        Request { apart: Some(7), ..together(1) },
        Request { apart: Some(7), ..together(1) },
        Request { machines: Some(vec![0]), ..together(2) },
        Request { machines: Some(vec![1]), ..together(2) },
        Request { demand: [3, 1, 0], ..together(3) },
        Request { demand: [3, 1, 0], ..together(3) },
        Request { gang: Some(1), ..request(1, 1) },
        Request { gang: Some(1), ..request(i64::MAX, i64::MAX) },
        Request { machines: Some(vec![17]), ..request(0, 0) },
        request(0, 0),
        request(1, 1),
    ];
    use Refusal::{Contradiction, Gang, NoMachine, TooLarge};
    for method in METHODS {
        let places = places(&[machine(4, 8), machine(4, 8)], &requests, method);
        let refused: Vec<Refusal> = places[..10].iter().map(|place| place.unwrap_err()).collect();
        let expected = [
            TooLarge,
            Contradiction,
            Contradiction,
            NoMachine,
            NoMachine,
            TooLarge,
            TooLarge,
            Gang,
            TooLarge,
            NoMachine,
        ];
        assert_eq!(refused, expected, "{method:?}");
        assert!(places[10].is_ok() && places[11].is_ok(), "{method:?}: {places:?}");
    }
}

#[test]
fn an_empty_batch_and_an_empty_cluster_are_answered() {
    for method in METHODS {
        assert_eq!(places(&[machine(1, 1)], &[], method), []);
        assert_eq!(places(&[], &[request(1, 1)], method), [Err(Refusal::TooLarge)]);
    }
}

#[test]
fn more_that_keep_apart_than_machines_leaves_the_rest_waiting() {
    let apart = Request { apart: Some(0), ..request(1, 1) };
    for method in METHODS {
        let places = places(&[machine(9, 9), machine(9, 9)], &vec![apart.clone(); 3], method);
        let mut taken: Vec<usize> = places.iter().flatten().copied().collect();
        taken.sort_unstable();
        assert_eq!((taken, places[2]), (vec![0, 1], Err(Refusal::NoRoom)), "{method:?}");
    }
}

#[test]
fn what_is_plenty_hardly_counts_for_a_size() {
    let machines = [Machine { capacity: [100, 10, 0], free: [100, 10, 0] }];
    let half_the_cpu = [request(50, 4), request(1, 7)];
    assert_eq!(places(&machines, &half_the_cpu, packing(Objective::Count)), [Ok(0), Err(Refusal::NoRoom)]);
}

#[test]
fn requests_that_go_together_are_as_small_as_each_of_them() {
    let together = Request { together: Some(0), ..request(2, 2) };
    let requests = [request(3, 3), together.clone(), together];
    let expected = [Err(Refusal::NoRoom), Ok(0), Ok(0)];
    assert_eq!(places(&[machine(6, 6)], &requests, packing(Objective::Completion)), expected);
}

#[test]
fn a_wait_counts_steeply_once_the_patience_is_half_over() {
    let unaged = Packing { ageing_s: 1e9, patience_s: 1000.0, ..Packing::default() };
    let first = |waited_s: f64| {
        let requests = [Request { waited_s, ..request(3, 3) }, request(2, 2)];
        places(&[machine(4, 4)], &requests, Method::Packing(unaged)).iter().position(Result::is_ok)
    };
    assert_eq!((first(250.0), first(750.0)), (Some(1), Some(0)));
}

#[test]
fn a_long_wait_goes_before_a_small_size_only_if_ageing_counts() {
    let machines = [machine(4, 4)];
    let old = Request { waited_s: 6000.0, ..request(4, 4) };
    let requests = [request(1, 1), old];
    let aged =
        |objective| places(&machines, &requests, packing(objective)).iter().map(Result::is_ok).collect();
    let (count, completion): (Vec<bool>, Vec<bool>) = (aged(Objective::Count), aged(Objective::Completion));
    assert_eq!((count, completion), (vec![true, false], vec![false, true]));
}

#[test]
fn who_has_waited_too_long_claims_the_machine_where_the_least_is_missing() {
    let machines =
        [Machine { capacity: [4, 4, 0], free: [3, 3, 0] }, Machine { capacity: [4, 4, 0], free: [2, 2, 0] }];
    let waiting = |waited_s| [Request { waited_s, ..request(4, 4) }, request(2, 2), request(1, 1)];
    let method = packing(Objective::Completion);
    let none = Err(Refusal::NoRoom);
    assert_eq!(places(&machines, &waiting(3599.0), method), [none, Ok(0), Ok(1)]);
    assert_eq!(places(&machines, &waiting(3600.0), method), [none, none, Ok(1)]);
}

fn batches(most: usize) -> impl Strategy<Value = Batch> {
    let amount = || prop::array::uniform3(0..20_i64);
    let machines = prop::collection::vec((amount(), amount()), 1..most).prop_map(|all| {
        let machine = |(capacity, used): (Vector, Vector)| Machine {
            capacity,
            free: std::array::from_fn(|at| capacity[at] - used[at] / 2),
        };
        all.into_iter().map(machine).collect::<Vec<_>>()
    });
    let some = |most: usize| prop_oneof![3 => Just(None), 1 => (0..most).prop_map(Some)];
    let only = prop_oneof![3 => Just(None), 1 => prop::collection::vec(0..most, 1..4).prop_map(Some)];
    let request = (prop::array::uniform3(0..8_i64), only, some(3), some(3), some(3), 0..100_u32);
    let requests = prop::collection::vec(request, 0..2 * most).prop_map(|all| {
        let request = |(demand, machines, together, apart, gang, waited)| Request {
            demand,
            machines,
            together,
            apart,
            gang,
            waited_s: f64::from(waited),
        };
        all.into_iter().map(request).collect::<Vec<_>>()
    });
    (machines, requests).prop_map(|(machines, requests)| Batch { machines, requests })
}

/// No machine overbooked, no rule broken.
fn sound(batch: &Batch, answer: &Answer) {
    let mut free: Vec<Vector> = batch.machines.iter().map(|machine| machine.free).collect();
    for (request, place) in batch.requests.iter().zip(&answer.places) {
        let Ok(machine) = place else { continue };
        assert!(request.machines.as_ref().is_none_or(|only| only.contains(machine)));
        free[*machine].iter_mut().zip(request.demand).for_each(|(free, demand)| *free -= demand);
    }
    for (machine, left) in batch.machines.iter().zip(&free) {
        let held = |at: usize| left[at] == machine.free[at] || left[at] >= 0;
        assert!((0..RESOURCES).all(held), "{machine:?} has {left:?} left");
    }
    let all = batch.requests.iter().zip(&answer.places);
    for (at, (one, place)) in all.clone().enumerate() {
        for (other, elsewhere) in all.clone().skip(at + 1) {
            let both = |x: Option<usize>, y: Option<usize>| x.is_some() && x == y;
            assert!(!both(one.together, other.together) || place.ok() == elsewhere.ok());
            assert!(!both(one.apart, other.apart) || place.is_err() || place != elsewhere);
            assert!(!both(one.gang, other.gang) || place.is_ok() == elsewhere.is_ok());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_method_breaks_a_rule(batch in batches(8)) {
        for method in METHODS {
            sound(&batch, &place(&batch, method));
        }
    }

    /// The prices that the solver ends with, with the unused machine's for those it never saw, leave no arc of the whole
    /// network with a cost below them; so what it found is the optimum of the whole network.
    #[test]
    fn machines_left_aside_do_not_matter(batch in batches(40)) {
        for formula in [Formula::DotProduct, Formula::MostLoaded] {
            let units = Units::of(&batch);
            let floor = Floor::new(&batch, &units);
            let all: Vec<usize> = (0..units.units.len()).collect();
            let problem = Problem::of(&batch, &floor, formula, &all);
            let optimum = problem.optimum();
            let scale = Scale::of(&batch);
            for (row, members) in problem.members.iter().enumerate() {
                for machine in floor.machines(members[0]).iter().filter(|machine| floor.takes(**machine, members[0])) {
                    let column = problem.machines.binary_search(machine);
                    let price = column.map_or(optimum.unused_price, |column| optimum.column_prices[column]);
                    let found = numbers(&batch, &floor, &scale, *machine);
                    let cost = costs::cost(formula, &problem.arcs.rows[row].parts, &found);
                    prop_assert!(cost - optimum.row_prices[row] - price >= 0);
                }
            }
        }
    }
}
