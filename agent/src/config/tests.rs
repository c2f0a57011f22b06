//! Good and bad files.

use super::*;

const GOOD: &str = r#"
    cluster = "home"
    node = "n1"
    state_dir = "/var/lib/edgeloom-agent"
    [labels]
    camera = "true"
    [[link]]
    neighbour = "n2"
    interface = "n1-n2"
    address = "10.61.1.1"
    neighbour_address = "10.61.1.2"
    capacity = "20Mbit/s"
"#;

fn read(text: &str) -> Result<Config, Vec<ConfigProblem>> {
    Config::check(toml::from_str(text).unwrap(), None)
}

#[test]
fn a_good_file_gets_the_defaults() {
    let config = read(GOOD).unwrap();
    assert_eq!(config.docker_socket, Path::new("/var/run/docker.sock"));
    assert_eq!(config.bridge, "edgeloom0");
    assert_eq!(config.links[0].capacity, Some(BitRate(20_000_000)));
    assert!(config.controller.is_none());
    assert_eq!(config.links[0].address, Some(Ipv4Addr::new(10, 61, 1, 1)));
    let own = read(&GOOD.replace("    address = \"10.61.1.1\"\n", "")).unwrap();
    assert_eq!(own.links[0].address, None);
}

#[test]
fn taints_are_names_with_effects() {
    let with = |taints: &str| read(&GOOD.replace("    [labels]", &format!("{taints}\n[labels]")));
    let config = with("taints = [\"gpu=yes\", \"slow:prefer_no_schedule\"]").unwrap();
    assert_eq!(config.taints.len(), 2);
    let problems = with("taints = [\"gpu:never\"]").unwrap_err();
    assert!(problems[0].to_string().starts_with("taints[0]: \"never\" is no effect"), "{problems:?}");
}

fn joined() -> Membership {
    let text = r#"{"cluster":"home","node":"n1","host":"master","api_port":7070,"mqtt_port":8883,
        "certificate":"","key":"","authorities":"","good_s":0}"#;
    serde_json::from_str(text).unwrap()
}

#[test]
fn what_joining_gave_need_not_be_written() {
    let bare = "state_dir = \"/var/lib/edgeloom-agent\"";
    let problems = read(bare).unwrap_err();
    assert!(matches!(problems[0], ConfigProblem::NotJoined { key: "cluster" }), "{problems:?}");
    let config = Config::check(toml::from_str(bare).unwrap(), Some(&joined())).unwrap();
    assert_eq!((config.cluster.as_str(), config.node.as_str()), ("home", "n1"));
    let controller = Controller { host: "master".to_owned(), port: 8883, files: None };
    assert_eq!(config.controller, Some(controller));
    let other = GOOD.replace("node = \"n1\"", "node = \"n9\"");
    let problems = Config::check(toml::from_str(&other).unwrap(), Some(&joined())).unwrap_err();
    assert!(matches!(problems[0], ConfigProblem::JoinedAs { key: "node", .. }), "{problems:?}");
    let some = format!("{GOOD}\n[controller]\nhost = \"m\"\nca = \"/ca.pem\"");
    assert_eq!(read(&some).unwrap_err(), [ConfigProblem::SomeFiles]);
}

#[test]
fn every_problem_is_told_at_once() {
    let bad = r#"
        cluster = "Home"
        node = "n1"
        state_dir = "state"
        docker = "tcp://10.0.0.1:2375"
        bridge = "a-name-longer-than-15"
        cgroup = "../up"
        class = "Pi 4"
        [[link]]
        neighbour = "n1"
        interface = "a/b"
        address = "10.61.1"
        neighbour_address = "10.61.1.2"
        capacity = "20M"
    "#;
    let problems = read(bad).unwrap_err();
    assert_eq!(problems.len(), 9, "{problems:?}");
}

#[test]
fn a_neighbour_appears_once_and_is_not_the_node_itself() {
    let twice = format!(
        "{GOOD}\n[[link]]\nneighbour = \"n2\"\ninterface = \"x\"\naddress = \"10.61.2.1\"\nneighbour_address = \"10.61.1.2\"\n\
         [[link]]\nneighbour = \"n1\"\ninterface = \"y\"\naddress = \"10.61.3.1\"\nneighbour_address = \"10.61.3.2\""
    );
    let problems = read(&twice).unwrap_err();
    assert!(matches!(&problems[0], ConfigProblem::Duplicate { value, .. } if value == "n2"));
    assert!(matches!(&problems[1], ConfigProblem::OwnNeighbour { .. }));
    assert!(matches!(&problems[2], ConfigProblem::Duplicate { value, .. } if value == "10.61.1.2"));
}

#[test]
fn an_unknown_key_is_refused() {
    let text = format!("nod = \"x\"\n{GOOD}");
    assert!(toml::from_str::<RawConfig>(&text).is_err());
}
