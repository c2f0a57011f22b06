//! Secrets and logins from their keeping to the nodes, and that nobody else sees them.

use super::world::{World, owner, with_images};
use crate::error::{SecretError, StartError, SubmitError};
use crate::owner::Order;
use crate::transfer::Existing;
use edgeloom_common::confidential::{Login, Value};
use edgeloom_common::desired::ContainerSpec;
use edgeloom_common::ids::{NodeId, SecretName};
use std::path::Path;

const VALUE: &str = "correct horse battery staple";

fn name(text: &str) -> SecretName {
    text.parse().unwrap()
}

/// One task on n2 with a secret, one on n3 without.
fn order(job: &str) -> Order {
    let text = format!(
        "kind: Job\nname: {job}\ntasks:\n  a:\n    image: r.lan/app:1\n    secrets: [password]\n    \
         constraints: [\"node.name == n2\"]\n    outputs: {{ b: 1KB }}\n  b:\n    image: r.lan/app:1\n    \
         constraints: [\"node.name == n3\"]\n"
    );
    let mut order = with_images(edgeloom_common::job::parse(text.as_bytes()).unwrap());
    for image in order.images.values_mut() {
        image.reference.repository = "r.lan/app".to_owned();
    }
    order
}

impl World {
    fn keep(&mut self, text: &str, value: &str, existing: Existing) -> Result<(), SecretError> {
        let kept = self.owner.keep_secret(name(text), &Value::new(value.as_bytes()).unwrap(), existing);
        self.settle();
        kept.map(drop)
    }

    fn log_in(&mut self, registry: &str) {
        let login = Login { username: "u".to_owned(), password: VALUE.to_owned().into() };
        self.owner.keep_login(registry.parse().unwrap(), &login).unwrap();
        self.settle();
    }

    /// The value of `password` that a node was given last.
    fn given_to(&self, node: &str) -> Option<String> {
        let given = self.given.get(&node.parse::<NodeId>().unwrap())?;
        let value = given.secrets.get(&name("password"))?.expose();
        Some(String::from_utf8(value.to_vec()).unwrap())
    }

    fn container(&self, node: &str) -> ContainerSpec {
        self.held[&node.parse::<NodeId>().unwrap()].containers[0].clone()
    }
}

/// Files that hold a text in the clear or as base64.
fn holding(folder: &Path, text: &str) -> Vec<String> {
    let encoded: String = edgeloom_common::secret::Secret::from(Value::new(text.as_bytes()).unwrap()).into();
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.path().is_dir() {
            found.extend(holding(&entry.path(), text));
            continue;
        }
        let bytes = std::fs::read(entry.path()).unwrap();
        let has = |text: &str| bytes.windows(text.len()).any(|piece| piece == text.as_bytes());
        if has(text) || has(&encoded) {
            found.push(entry.path().display().to_string());
        }
    }
    found
}

#[test]
fn a_value_goes_to_the_node_of_its_task_and_lies_nowhere() {
    let mut world = World::new();
    world.keep("password", VALUE, Existing::Refuse).unwrap();
    world.log_in("r.lan");
    world.log_in("other.lan");
    world.owner.submit(order("j")).unwrap();
    world.settle();
    assert_eq!(world.given_to("n2").as_deref(), Some(VALUE));
    assert_eq!((world.given_to("n1"), world.given_to("n3")), (None, None));
    let logins = |world: &World, node: &str| {
        let given = world.given.get(&node.parse::<NodeId>().unwrap());
        given.into_iter().flat_map(|given| given.logins.keys()).map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!([logins(&world, "n2"), logins(&world, "n3")], [["r.lan"], ["r.lan"]]);
    assert!(logins(&world, "n1").is_empty());
    let mut world = world.restart();
    world.connect();
    world.settle();
    assert_eq!(world.given_to("n2").as_deref(), Some(VALUE), "it is sent again after a restart");
    let exported = crate::export(world.path(), &"home".parse().unwrap(), None).unwrap();
    std::fs::write(world.path().join("export"), exported).unwrap();
    world.owner.state.write_store();
    assert_eq!(holding(world.path(), VALUE), Vec::<String>::new());
    assert!(!format!("{:?}", world.owner).contains(VALUE));
}

#[test]
fn a_value_that_is_replaced_reaches_the_node_and_restarts_nothing() {
    let mut world = World::new();
    world.keep("password", "old", Existing::Refuse).unwrap();
    world.owner.submit(order("j")).unwrap();
    world.settle();
    let before = world.container("n2");
    assert_eq!(world.keep("password", "new", Existing::Refuse), Err(SecretError::Exists(name("password"))));
    assert_eq!(world.given_to("n2").as_deref(), Some("old"));
    world.arrivals.clear();
    world.keep("password", "new", Existing::Replace).unwrap();
    let after = world.container("n2");
    assert_eq!(world.given_to("n2").as_deref(), Some("new"));
    assert_eq!(after.spec_hash, before.spec_hash);
    assert!(after.secrets[&name("password")] > before.secrets[&name("password")]);
    let told: Vec<&str> = world.arrivals.iter().map(|document| document.node.as_str()).collect();
    assert_eq!(told, ["n2"], "nobody else hears of it");
}

#[test]
fn a_login_goes_when_it_is_given_up() {
    let mut world = World::new();
    world.log_in("r.lan");
    world.keep("password", VALUE, Existing::Refuse).unwrap();
    world.owner.submit(order("j")).unwrap();
    world.settle();
    let has_login = |world: &World| !world.given[&"n3".parse::<NodeId>().unwrap()].logins.is_empty();
    assert!(has_login(&world));
    world.owner.remove_login("r.lan".parse().unwrap()).unwrap();
    world.settle();
    assert!(!has_login(&world));
    let again = world.owner.remove_login("r.lan".parse().unwrap());
    assert!(matches!(again, Err(SecretError::NoLogin(_))));
}

#[test]
fn a_secret_that_is_used_stays_and_one_that_is_missing_is_told() {
    let mut world = World::new();
    let refused = world.owner.submit(order("j")).unwrap_err();
    let SubmitError::SecretUnknown(problems) = &refused else { panic!("{refused}") };
    assert_eq!((problems.len(), problems[0].field.as_str()), (1, "tasks.a.secrets"));
    assert!(problems[0].remedy.contains("edgeloom secret create password"));
    assert!(world.owner.plan(order("j")).is_err());
    world.keep("password", VALUE, Existing::Refuse).unwrap();
    world.owner.submit(order("j")).unwrap();
    world.settle();
    let used = world.owner.remove_secret(name("password"));
    assert_eq!(used, Err(SecretError::Used { name: name("password"), jobs: vec!["j".parse().unwrap()] }));
    world.owner.stop(&"j".parse().unwrap()).unwrap();
    world.settle();
    assert_eq!(world.given_to("n2"), None);
    world.owner.remove_secret(name("password")).unwrap();
    assert_eq!(world.owner.remove_secret(name("password")), Err(SecretError::Unknown(name("password"))));
}

#[test]
fn without_its_key_the_state_does_not_start_until_the_secrets_are_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let (mut first, _published) = owner(&folder, 1_000);
    let value = Value::new(VALUE.as_bytes()).unwrap();
    first.keep_secret(name("password"), &value, Existing::Refuse).unwrap();
    drop(first);
    let start = || {
        let (outgoing, _published) = tokio::sync::mpsc::channel(64);
        let settings = crate::Settings {
            cluster: "home".parse().unwrap(),
            state_dir: folder.path().to_owned(),
            profile: "edgeloom".to_owned(),
            scoring: edgeloom_sched::scoring::Scoring::default(),
            batching: crate::Batching::default(),
            pool: edgeloom_common::desired::Pool {
                network: [10, 77, 0, 0].into(),
                prefix_len: 16,
                gateway: [10, 77, 0, 1].into(),
            },
            registries: crate::Registries::default(),
            copy_keys: crate::CopyKeys::new(&[]),
            follow: None,
            secrets_key: folder.path().join("secrets.key"),
            prices: None,
        };
        crate::Cluster::start(settings, outgoing).map(drop)
    };
    let key = folder.path().join("secrets.key");
    let kept = std::fs::read(&key).unwrap();
    std::fs::remove_file(&key).unwrap();
    assert!(matches!(start(), Err(StartError::Secrets(_))));
    edgeloom_sealing::Key::create(&key).unwrap();
    assert!(matches!(start(), Err(StartError::Secrets(_))));
    edgeloom_disk::replace(&key, &kept).unwrap();
    start().unwrap();
    edgeloom_sealing::Key::create(&key).unwrap();
    // The owner that has just ended lets go of the directory a moment later.
    while !matches!(crate::forget_secrets(folder.path()), Ok(1)) {}
    start().unwrap();
}
