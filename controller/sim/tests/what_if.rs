//! What-ifs on a cluster and jobs from files.

use edgeloom_sim::what_if::{Answer, File, FileProblem, Settings, read, run};

const CLUSTER: &str = include_str!("what_if/cluster.toml");
const WATCH: &str = include_str!("what_if/jobs/01-watch.yaml");
const LOST: &str = include_str!("what_if/jobs/02-lost.yaml");
const PROFILES: [&str; 5] = ["lr", "br", "tp", "otfs", "edgeloom"];

fn file(name: &str, text: &str) -> File {
    File { name: name.to_owned(), text: text.as_bytes().to_vec() }
}

fn settings() -> Settings {
    let profiles = PROFILES.map(str::to_owned).to_vec();
    Settings { seed_base: 1, arrivals_per_s: None, floor: 0.5, migration_s: 5.0, horizon_s: 60.0, profiles }
}

fn answer(cluster: &str, jobs: &[&str]) -> Answer {
    let jobs: Vec<File> = jobs.iter().map(|text| file("job.yaml", text)).collect();
    run(&read(&file("cluster.toml", cluster), &jobs).unwrap(), &settings()).unwrap()
}

fn problems(cluster: &str, jobs: &[File]) -> Vec<FileProblem> {
    read(&file("cluster.toml", cluster), jobs).unwrap_err()
}

#[test]
fn a_job_is_placed_and_its_throughput_found() {
    let answer = answer(CLUSTER, &[WATCH]);
    for row in &answer.rows {
        assert_eq!((row.jobs.len(), row.waiting_jobs), (1, 0), "{row:?}");
        assert!(row.jobs[0].items_per_s_simulated.unwrap() > 0.0, "{row:?}");
    }
    let best = &answer.rows.last().unwrap().jobs[0];
    assert_eq!(best.placement[&"detect".parse().unwrap()].as_str(), "server");
    let (found, predicted) = (best.items_per_s_simulated.unwrap(), best.items_per_s_predicted);
    assert!((found / predicted - 1.0).abs() < 1e-3, "{found} found, {predicted} predicted");
}

#[test]
fn a_source_on_an_unknown_node_waits_with_a_reason_beside_a_job_that_runs() {
    for row in &answer(CLUSTER, &[LOST, WATCH]).rows {
        assert_eq!((row.jobs.len(), row.waiting.len()), (1, 1), "{row:?}");
        let waiting = &row.waiting[0];
        assert!(waiting.never && waiting.job.as_str() == "lost", "{waiting:?}");
        assert!(!waiting.reasons.is_empty(), "{waiting:?}");
    }
}

#[test]
fn a_network_in_parts_or_without_bandwidth_places_nothing_half() {
    let apart = CLUSTER.replace("between = [\"cam-1\", \"hub\"]", "between = [\"server\", \"cam-1\"]");
    let dead = CLUSTER.replace("20Mbit/s", "0Mbit/s");
    // Detection needs the server's memory, which the camera cannot reach.
    let large = WATCH.replace("512MiB", "16GiB");
    let parted = CLUSTER.split("[[links]]").next().unwrap();
    for cluster in [parted, &dead] {
        for row in &answer(cluster, &[&large]).rows {
            let items = row.jobs.iter().map(|job| job.items_per_s_simulated.unwrap());
            assert_eq!(items.count() + row.waiting.len(), 1, "{row:?}");
            assert_eq!(row.waiting.len(), 1, "{row:?}");
            assert!(!row.waiting[0].reasons.is_empty(), "{row:?}");
        }
    }
    assert_eq!(answer(&apart, &[&large]).rows.last().unwrap().waiting_jobs, 0);
}

#[test]
fn jobs_may_arrive_one_after_the_other() {
    let second = WATCH.replace("name: watch", "name: watch-2");
    let scenario = read(&file("c", CLUSTER), &[file("a", WATCH), file("b", &second)]).unwrap();
    let spread = run(&scenario, &Settings { arrivals_per_s: Some(0.5), ..settings() }).unwrap();
    assert!(spread.rows.iter().all(|row| row.jobs.len() + row.waiting.len() == 2));
    let refused = run(&scenario, &Settings { arrivals_per_s: Some(0.0), ..settings() });
    assert!(refused.unwrap_err().to_string().contains("arrivals a second"));
}

#[test]
fn all_problems_of_all_files_are_told_with_their_lines() {
    let cluster = CLUSTER
        .replace("cores = 4", "cores = -4")
        .replace("memory = \"2GiB\"", "memory = \"2\"\ncolour = \"red\"")
        .replace("\"server\", \"hub\"", "\"server\", \"hob\"");
    let broken = file("b.yaml", &WATCH.replace("work: 20ms", "work: 20"));
    let found = problems(&cluster, &[file("a.yaml", WATCH), broken, file("c.yaml", WATCH)]);
    let told: Vec<(&str, usize)> = found.iter().map(|one| (one.file.as_str(), one.item.line)).collect();
    let places = [("cluster.toml", 4), ("cluster.toml", 13), ("cluster.toml", 14), ("cluster.toml", 28)];
    assert_eq!(told, [&places[..], &[("b.yaml", 8), ("c.yaml", 0)]].concat(), "{found:#?}");
    assert!(found.iter().all(|one| !one.item.remedy.is_empty()), "{found:#?}");
}

#[test]
fn what_is_no_cluster_is_refused_without_a_panic() {
    let mebibyte = "x".repeat(1 << 20);
    let deep = format!("nodes = {}", "[".repeat(100_000));
    let many = "[[nodes]]\nname = 3\n".repeat(50_000);
    assert!(problems(&many, &[file("a.yaml", WATCH)]).len() <= 100);
    for text in
        ["", "nodes = 3", "nodes = [3]", "[[nodes]", "nodes = [{ name = \"n1\" }]", "= =", &mebibyte, &deep]
    {
        assert!(!problems(text, &[file("a.yaml", WATCH)]).is_empty(), "{text:.20}");
    }
    let link = |link: &str| CLUSTER.replace("between = [\"cam-1\", \"hub\"]", link);
    for bad in ["between = [\"hub\", \"hub\"]", "between = [1, 2]", "between = \"hub\"", "between = []"] {
        assert!(!problems(&link(bad), &[file("a.yaml", WATCH)]).is_empty(), "{bad}");
    }
    assert!(!problems(CLUSTER, &[]).is_empty());
}

#[test]
fn the_laboratorys_format_reads_too() {
    let lab = r#"
        nodes = [
            { name = "cam-1", cores = 0.4, memory_mib = 1024, uplink = "50Mbit/s", labels = { camera = "true" } },
            { name = "n2", cores = 0.4, memory_mib = 1024, disk_mib = 2048 },
        ]
        links = [{ between = ["n2", "cam-1"], rate = "20Mbit/s", declared = false }]
    "#;
    let answer = answer(lab, &[WATCH]);
    assert!(answer.rows.iter().all(|row| row.waiting_jobs == 0), "{answer:?}");
}
