//! Laws that every profile keeps, over small random clusters and jobs.

mod worlds;

use edgeloom_common::job::{
    Attribute, Constraint, Effect, HostPort, Job, Placement, Protocol, Selector, Spread, Taint, Term,
    Toleration,
};
use edgeloom_sched::snapshot::{Change, Duplex, Link, Node, Running, Snapshot};
use edgeloom_sched::{check, decide, profile, profile_names};
use proptest::prelude::*;
use std::collections::BTreeMap;
use worlds::{edge, job, link, node, snapshot, source, task};

fn name(at: usize) -> String {
    format!("n{at}")
}

/// A ready node mostly; some are offline or cannot shape flows.
fn any_node(at: usize) -> impl Strategy<Value = Node> {
    let parts = (1u32..9, 1u32..4, 1u64..17, 0u8..10, 0u8..10, any::<bool>(), 0u8..24);
    parts.prop_map(move |(cores, speed, memory, ready, shapes, gpu, rule)| {
        let mut node = node(&name(at), cores * 500, f64::from(speed) * 0.5, memory * 100_000_000);
        node.ready = ready > 0;
        node.shapes_flows = shapes > 0;
        node.labels.insert("gpu".to_owned(), gpu.to_string());
        node.labels.insert("zone".to_owned(), (at % 2).to_string());
        let taint = |effect| Taint { key: "gpu".to_owned(), value: String::new(), effect };
        match rule {
            0 => node.hosting.taints.push(taint(Effect::NoSchedule)),
            1 => node.hosting.taints.push(taint(Effect::PreferNoSchedule)),
            2 => node.hosting.containers_max = 2,
            3 => drop(node.labels.remove("zone")),
            _ => {}
        }
        node
    })
}

fn any_links(nodes: usize) -> impl Strategy<Value = Vec<Link>> {
    let one = (0..nodes, 0..nodes, 1u64..40, any::<bool>());
    proptest::collection::vec(one, nodes..nodes * 3).prop_map(|drawn| {
        let mut links: Vec<Link> = Vec::new();
        for (x, y, rate, half) in drawn.into_iter().filter(|(x, y, ..)| x != y) {
            let mut new = link(&name(x.min(y)), &name(x.max(y)), rate * 500_000);
            new.duplex = if half { Duplex::Half } else { Duplex::Full };
            if links.iter().all(|old| (&old.a, &old.b) != (&new.a, &new.b)) {
                links.push(new);
            }
        }
        links
    })
}

/// A rule of a task about a neighbour of its job, or about tasks of any job; mostly none.
fn rule(drawn: u8, neighbour: &str) -> Placement {
    let by = || Attribute::Label("zone".to_owned());
    let labels = || BTreeMap::from([("app".to_owned(), "web".to_owned())]);
    let near = Term { with: Selector::Task(neighbour.parse().unwrap()), by: Attribute::Name };
    let web = Term { with: Selector::Labels(labels()), by: by() };
    let mut rule = Placement::default();
    match drawn {
        0 => rule.affinity.required.push(near),
        1 => rule.anti_affinity.required.push(near),
        2 => rule.anti_affinity.required.push(web),
        3 => rule.affinity.required.push(web),
        4 => rule.affinity.preferred.extend([(near, 10), (web, 20)]),
        5 => rule.ports.push(HostPort { port: 80, protocol: Protocol::Tcp, container: 80 }),
        6 => rule.tolerations.push(Toleration::default()),
        7 => rule.spread.push(Spread { labels: labels(), by: by(), max_skew: 1, required: true }),
        _ => {}
    }
    if (3..9).contains(&drawn) {
        rule.labels = labels();
    }
    rule
}

/// Up to six tasks; an edge joins only an earlier task to a later one, so there is no cycle.
fn any_job(at: usize, nodes: usize) -> impl Strategy<Value = Job> {
    let tasks = proptest::collection::vec((0u32..6, 1u64..8, 0u64..60, 0u8..12, 0u8..60), 1..7);
    let edges = proptest::collection::vec((0usize..6, 0usize..6, 0u64..200_000), 0..9);
    (tasks, edges, 0..nodes + 1, 0u64..300_000, 0u8..3).prop_map(
        move |(tasks, edges, at_node, item, rate)| {
            let names: Vec<String> = (0..tasks.len()).map(|task| format!("t{task}")).collect();
            let made = tasks.iter().enumerate().map(|(at, (cpu, memory, work, gpu, drawn))| {
                let mut task = task(cpu * 100, memory * 50_000_000, *work);
                task.program.resources.cpu_sized = *cpu < 2;
                task.placement = rule(*drawn, &names[(at + 1) % names.len()]);
                if *gpu == 0 {
                    let attribute = Attribute::Label("gpu".to_owned());
                    task.constraints.push(Constraint { attribute, equal: true, value: "true".to_owned() });
                }
                task
            });
            let mut job = job(&format!("job{at}"), names.iter().map(String::as_str).zip(made).collect());
            for (x, y, bytes) in edges.into_iter().filter(|(x, y, _)| x < y && *y < names.len()) {
                edge(&mut job, &names[x], &names[y], bytes);
            }
            if rate > 0 {
                job.source = Some(source(&name(at_node), item));
                edge(&mut job, "source", "t0", item);
                job.source.as_mut().unwrap().rate_per_s = (rate > 1).then_some(7.5);
            }
            job
        },
    )
}

fn any_snapshot() -> impl Strategy<Value = Snapshot> {
    (2usize..7, 1usize..5).prop_flat_map(|(nodes, jobs)| {
        let all_nodes: Vec<_> = (0..nodes).map(any_node).collect();
        let all_jobs: Vec<_> = (0..jobs).map(|at| any_job(at, nodes)).collect();
        (all_nodes, any_links(nodes), all_jobs).prop_map(|(nodes, links, jobs)| {
            let mut world = snapshot(nodes, links, jobs);
            world.goodput = 0.95;
            world.link_share = 0.9;
            world
        })
    })
}

/// The snapshot after the decision: placed jobs run, the others are gone.
fn committed(world: &Snapshot, decision: &edgeloom_sched::plan::Decision) -> Snapshot {
    let mut after = world.clone();
    for plan in &decision.plans {
        let waiting = world.waiting.iter().map(|waiting| &waiting.job);
        let mut all = waiting.chain(world.running.iter().map(|running| &running.job));
        let job = all.find(|job| job.name == plan.job).unwrap().clone();
        after.running.retain(|running| running.job.name != plan.job);
        let all = [Change::Placement, Change::Rates, Change::Routes, Change::Nothing];
        let change = all[(job.name.as_str().len() + job.tasks.len()) % 4];
        after.running.push(Running { change, ..worlds::running(job, plan.clone()) });
    }
    after.waiting.clear();
    after
}

/// Tasks with work that were given no part of their node, of jobs that the default profile divides nodes among.
fn starved(now: &Snapshot) -> Vec<String> {
    let of = |running: &Running| {
        let shares = running.plan.shares.clone();
        let job = running.job.name.clone();
        let sized =
            running.job.tasks.clone().into_iter().filter(|(_, task)| task.program.resources.cpu_sized);
        let works = sized.filter(|(_, task)| task.work.is_some());
        let none = works.filter(move |(name, _)| shares.get(name).is_none_or(|share| share.cpu.0 == 0));
        none.map(move |(name, _)| format!("{job}/{name}"))
    };
    now.running.iter().filter(|running| running.plan.profile == "edgeloom").flat_map(of).collect()
}

/// Three jobs that share links of which each could fill one.
fn crowded() -> Snapshot {
    let sized = |cpu: u32, memory: u64, work: u64, rules: Placement| {
        let mut task = task(cpu, memory * 1_000_000, work);
        task.program.resources.cpu_sized = cpu < 200;
        task.placement = rules;
        task
    };
    let free = Placement::default;
    let first = vec![
        ("t0", sized(0, 50, 1, rule(0, "t1"))),
        ("t1", sized(0, 50, 6, rule(1, "t2"))),
        ("t2", sized(100, 200, 0, rule(1, "t0"))),
    ];
    let second = vec![
        ("t0", sized(0, 250, 0, rule(1, "t1"))),
        ("t1", sized(200, 350, 0, rule(2, "t0"))),
        ("t2", sized(0, 250, 1, rule(8, "t0"))),
        ("t3", sized(0, 300, 0, rule(2, "t0"))),
        ("t4", sized(0, 150, 0, free())),
    ];
    let third = vec![("t0", sized(200, 50, 0, rule(0, "t0")))];
    let mut jobs = vec![job("job0", first), job("job1", second), job("job2", third)];
    for (job, (node, item, rate)) in
        jobs.iter_mut().zip([("n2", 1495, None), ("n0", 0, Some(7.5)), ("n2", 7125, None)])
    {
        job.source = Some(source(node, item));
        job.source.as_mut().unwrap().rate_per_s = rate;
        edge(job, "source", "t0", item);
    }
    for (from, to, bytes) in [("t0", "t1", 0), ("t0", "t2", 0), ("t0", "t3", 2), ("t3", "t4", 0)] {
        edge(&mut jobs[1], from, to, bytes);
    }
    let sizes = [(1000, 0.5, 700), (500, 1.5, 1000), (500, 0.5, 400), (2000, 1.5, 800), (500, 0.5, 200)];
    let node = |(at, (cpu, speed, memory)): (usize, (u32, f64, u64))| {
        let mut node = node(&name(at), cpu, speed, memory * 1_000_000);
        node.labels.insert("gpu".to_owned(), "false".to_owned());
        if at != 1 {
            node.labels.insert("zone".to_owned(), (at % 2).to_string());
        }
        if at % 2 == 0 {
            let (key, effect) = ("gpu".to_owned(), Effect::PreferNoSchedule);
            node.hosting.taints.push(Taint { key, value: String::new(), effect });
        }
        node
    };
    let nodes = sizes.into_iter().enumerate().map(node).collect();
    let links =
        [("n1", "n4", 3_000_000), ("n1", "n2", 500_000), ("n3", "n4", 500_000), ("n0", "n2", 500_000)];
    let mut world = snapshot(nodes, links.map(|(a, b, rate)| link(a, b, rate)).to_vec(), jobs);
    (world.goodput, world.link_share) = (0.95, 0.9);
    world
}

#[test]
fn flows_of_a_full_link_have_whole_rates_that_add_up_to_no_more_than_it() {
    let world = crowded();
    let mut now = Snapshot { waiting: Vec::new(), ..world.clone() };
    for waiting in &world.waiting {
        now.waiting = vec![waiting.clone()];
        let decision = decide(profile("edgeloom").unwrap(), &now);
        assert_eq!(check(&decision, &now), vec![]);
        now = committed(&now, &decision);
    }
    let flows = now.running.iter().flat_map(|running| &running.plan.flows);
    let of_link = flows
        .filter(|flow| flow.path.windows(2).any(|hop| hop[0].as_str() == "n2" && hop[1].as_str() == "n1"));
    let rates: Vec<u64> = of_link.map(|flow| flow.rate.0).collect();
    let all: u64 = rates.iter().sum();
    assert!(rates.len() == 3 && !rates.contains(&0) && (449_990..=450_000).contains(&all), "{rates:?}");
    assert_eq!(starved(&now), Vec::<String>::new());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_decision_passes_the_checker_and_leaves_no_job_out(world in any_snapshot()) {
        for name in profile_names() {
            let decision = decide(profile(name).unwrap(), &world);
            prop_assert_eq!(check(&decision, &world), vec![], "{}", name);
            for waiting in &world.waiting {
                let planned = decision.plans.iter().filter(|plan| plan.job == waiting.job.name).count();
                let left = decision.unplaced.iter().filter(|left| left.job == waiting.job.name).count();
                prop_assert_eq!(planned + left, 1, "{}: {}", name, &waiting.job.name);
            }
        }
    }

    #[test]
    fn jobs_that_come_one_by_one_pass_the_checker_too(world in any_snapshot()) {
        for name in profile_names() {
            let mut now = Snapshot { waiting: Vec::new(), ..world.clone() };
            for waiting in &world.waiting {
                now.waiting = vec![waiting.clone()];
                let decision = decide(profile(name).unwrap(), &now);
                prop_assert_eq!(check(&decision, &now), vec![], "{}", name);
                now = committed(&now, &decision);
                prop_assert_eq!(starved(&now), Vec::<String>::new(), "{}", name);
            }
            now.waiting.clear();
            now.running.pop();
            let left = decide(profile(name).unwrap(), &now);
            prop_assert_eq!(check(&left, &now), vec![], "{}", name);
            for running in &now.running {
                prop_assert!(running.plan.prediction.items_per_s > 0.0);
                for flow in &running.plan.flows {
                    let bits = flow.volume.0.max(1) as f64 * 8.0 / now.goodput;
                    let need = running.plan.prediction.items_per_s * bits;
                    prop_assert!(flow.rate.as_f64() + 1.0 >= need, "{}: {:?} needs {}", name, flow, need);
                }
            }
        }
    }

    #[test]
    fn the_order_of_the_lists_does_not_matter(world in any_snapshot(), turn in 0usize..5) {
        let mut turned = world.clone();
        turned.nodes.reverse();
        let links = turned.links.len().max(1);
        turned.links.rotate_left(turn % links);
        turned.waiting.reverse();
        for name in profile_names() {
            let chosen = profile(name).unwrap();
            let (once, again) = (decide(chosen, &world), decide(chosen, &turned));
            prop_assert_eq!(format!("{once:?}"), format!("{again:?}"), "{}", name);
        }
    }

    #[test]
    fn an_unplaced_job_has_a_reason_for_every_node(world in any_snapshot()) {
        for name in profile_names() {
            for left in decide(profile(name).unwrap(), &world).unplaced {
                let named: Vec<_> = left.reasons.iter().map(|reason| &reason.node).collect();
                let all: Vec<_> = world.nodes.iter().map(|node| &node.id).collect();
                prop_assert_eq!(named, all, "{}", name);
                prop_assert!(left.reasons.iter().all(|reason| !reason.text.is_empty()));
            }
        }
    }
}
