//! A secret and a login from the command line to the one node that needs them; nobody else sees them, neither
//! in a log of everything nor in a file.

use super::{DAEMON, Daemon, errors};
use edgeloom_cluster::fake::{Guard, image, serve_to};
use edgeloom_common::confidential::{Confidential, Enclosed};
use edgeloom_common::desired::{ContainerSpec, DesiredState};
use edgeloom_common::report::{Links, Observed, Report, Status, TaskTotal};
use edgeloom_common::samples;
use edgeloom_common::units::Bytes;
use rumqttc::{Client, Event, Packet, QoS};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

const VALUE: &str = "correct horse battery staple";
const PASSWORD: &str = "U*U and nothing else";
/// `user:` and the password, base64.
const LOGIN: &str = "dXNlcjpVKlUgYW5kIG5vdGhpbmcgZWxzZQ==";
/// The value and the password, base64.
const ENCODED: [&str; 2] = ["Y29ycmVjdCBob3JzZSBiYXR0ZXJ5IHN0YXBsZQ==", "VSpVIGFuZCBub3RoaW5nIGVsc2U="];

/// What a node was given last.
type Given = Arc<Mutex<Option<(DesiredState, Confidential)>>>;

/// A registry that wants the login, for as long as the test runs.
fn registry() -> String {
    served(Guard::Basic(LOGIN))
}

/// A registry with one image, for as long as the test runs; its address.
pub(super) fn served(guard: Guard) -> String {
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            tell.send(serve_to(guard, image(&[30])).await).unwrap();
            std::future::pending::<()>().await;
        });
    });
    told.recv().unwrap()
}

fn observed(document: Option<&DesiredState>) -> Observed {
    let running = |spec: &ContainerSpec| samples::running((&spec.job, &spec.task), &spec.spec_hash);
    let containers = document.into_iter().flat_map(|it| &it.containers).map(running).collect();
    samples::observed(document.map(DesiredState::version).unwrap_or_default(), containers)
}

/// Ten seconds of a core and 5 MB sent by each container.
fn report(document: &DesiredState) -> Report {
    let total = |spec: &ContainerSpec| TaskTotal {
        job: spec.job.clone(),
        task: spec.task.clone(),
        container: "c".to_owned(),
        run: 1,
        age_ms: 60_000,
        cpu_us: 10_000_000,
        sent: Bytes(5_000_000),
        received: Bytes(0),
        memory: Bytes(0),
        memory_byte_s: 0,
        memory_from_ms: 0,
    };
    Report { schema: 1, totals: document.containers.iter().map(total).collect(), ..Report::default() }
}

/// A node that does at once whatever it is told.
pub(super) fn node(daemon: &Daemon, name: &'static str) -> Given {
    let (client, mut connection) = daemon.agent(name);
    let given = Given::default();
    let taken = Arc::clone(&given);
    let say = move |client: &Client, kind: &str, message: serde_json::Value| {
        let topic = format!("edgeloom/v1/{name}/{kind}");
        client.try_publish(topic, QoS::AtLeastOnce, false, message.to_string()).unwrap();
    };
    client.subscribe(format!("edgeloom/v1/{name}/desired"), QoS::AtLeastOnce).unwrap();
    say(&client, "status", serde_json::to_value(Status::new(true, 1)).unwrap());
    say(&client, "inventory", serde_json::to_value(samples::inventory("test")).unwrap());
    say(&client, "links", serde_json::to_value(Links { schema: 1, links: Vec::new() }).unwrap());
    say(&client, "observed", serde_json::to_value(observed(None)).unwrap());
    std::thread::spawn(move || {
        // Ends with the daemon.
        for event in connection.iter().map_while(Result::ok) {
            if let Event::Incoming(Packet::Publish(message)) = event {
                let document: DesiredState = serde_json::from_slice(&message.payload).unwrap();
                let Enclosed { confidential } = serde_json::from_slice(&message.payload).unwrap();
                say(&client, "observed", serde_json::to_value(observed(Some(&document))).unwrap());
                say(&client, "report", serde_json::to_value(report(&document)).unwrap());
                *taken.lock().unwrap() = Some((document, confidential));
            }
        }
    });
    given
}

/// Files that hold one of the texts.
fn holding(folder: &Path, texts: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.path().is_dir() {
            found.extend(holding(&entry.path(), texts));
            continue;
        }
        let bytes = std::fs::read(entry.path()).unwrap();
        let has = |text: &&&str| bytes.windows(text.len()).any(|piece| piece == text.as_bytes());
        found.extend(texts.iter().find(has).map(|text| format!("{}: {text}", entry.path().display())));
    }
    found
}

/// Waits for what the node is given.
fn wait_for<T>(given: &Given, find: impl Fn(&DesiredState, &Confidential) -> Option<T>) -> T {
    loop {
        if let Some((document, confidential)) = &*given.lock().unwrap()
            && let Some(found) = find(document, confidential)
        {
            return found;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn a_secret_and_a_login_reach_the_node_that_needs_them_and_nobody_else() {
    let registry = registry();
    let daemon = Daemon::configured(&format!("[registries]\ninsecure = [{registry:?}]\n"), "trace");
    let given = [node(&daemon, "n1"), node(&daemon, "n2")];
    let mut said = String::new();
    let mut edgeloom = |arguments: &[&str], input: &str, code: i32| {
        let output = daemon.edgeloom(arguments, input);
        let text = String::from_utf8(output.stdout.clone()).unwrap() + &errors(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        said.push_str(&text);
        text
    };
    let job = format!(
        "kind: Job\nname: j\ntasks:\n  a:\n    image: {registry}/app:1\n    secrets: [password]\n    \
         constraints: [\"node.name == n1\"]\n"
    );
    // Neither login nor secret is there yet.
    let denied = edgeloom(&["run", "-"], &job, 1);
    assert!(denied.contains("line 5") && denied.contains("edgeloom registry login"), "{denied}");
    let login = ["registry", "login", &registry, "--username", "user", "--password-stdin"];
    let refused = edgeloom(&login, "no such word\n", 1);
    assert!(refused.contains("refuses the login of user"), "{refused}");
    edgeloom(&login, &format!("{PASSWORD}\n"), 0);
    assert!(edgeloom(&["registry", "list"], "", 0).contains("user"));
    let missing = edgeloom(&["run", "-"], &job, 1);
    assert!(missing.contains("line 6") && missing.contains("secret create password"), "{missing}");
    edgeloom(&["secret", "create", "password"], VALUE, 0);
    assert!(edgeloom(&["secret", "create", "password"], "x", 1).contains("--replace"));
    edgeloom(&["secret", "create", "large"], &"x".repeat(65_537), 1);
    edgeloom(&["secret", "create", "empty"], "", 1);

    edgeloom(&["run", "-", "--wait"], &job, 0);
    let name = "password".parse().unwrap();
    let (secret, login) = wait_for(&given[0], |_, confidential| {
        Some((confidential.secrets.get(&name)?.expose(), confidential.logins.values().next()?.clone()))
    });
    assert_eq!((secret.as_slice(), login.password.expose()), (VALUE.as_bytes(), PASSWORD));
    let other = wait_for(&given[1], |_, confidential| Some(confidential.clone()));
    assert!(other.is_empty(), "{other:?}");
    assert!(edgeloom(&["secret", "remove", "password"], "", 1).contains("used by job j"));
    assert!(edgeloom(&["secret", "list"], "", 0).contains("j"));
    for show in [&["events"][..], &["job", "j"], &["explain", "j"], &["nodes"]] {
        edgeloom(&[show, &["-o", "json"]].concat(), "", 0);
    }
    edgeloom(&["secret", "create", "password", "--replace"], "another", 0);
    wait_for(&given[0], |_, confidential| {
        (confidential.secrets[&name].expose().as_slice() == b"another").then_some(())
    });

    let export = daemon.folder.path().join("export");
    let config = daemon.folder.path().join("controller.toml");
    let exported =
        Command::new(DAEMON).args(["export", "--config"]).arg(&config).arg(&export).output().unwrap();
    assert!(exported.status.success(), "{}", errors(&exported));
    let texts = [VALUE, PASSWORD, LOGIN, ENCODED[0], ENCODED[1]];
    assert_eq!(holding(daemon.folder.path(), &texts), Vec::<String>::new());
    let log = daemon.log.lock().unwrap();
    assert!(log.contains("TRACE"), "everything is logged");
    for text in texts {
        assert!(!log.contains(text) && !said.contains(text), "{text}");
    }
}
