//! `edgeloom-agent doctor` for real, in a network namespace of its own, where the kernel is tried: without a
//! configuration, with a wrong one, and with Docker out of reach.

use edgeloom_common::doctor::{Examination, Verdict};
use std::path::Path;
use std::process::{Command, Output};

fn doctor(arguments: &[&str]) -> Output {
    let mut command = Command::new("unshare");
    command.args(["--net", env!("CARGO_BIN_EXE_edgeloom-agent"), "doctor"]).args(arguments);
    command.env_remove("EDGELOOM_LOG").output().unwrap()
}

fn examination(output: &Output) -> Examination {
    let errors = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {errors}"))
}

fn verdict(examination: &Examination, name: &str) -> Verdict {
    examination.checks.iter().find(|check| check.check == name).unwrap().verdict
}

/// A configuration whose Docker is nowhere, with one link.
fn configure(folder: &Path, link: &str) -> String {
    let file = folder.join("agent.toml");
    let text = format!(
        "cluster = \"home\"\nnode = \"n1\"\nstate_dir = {folder:?}\ndocker = \"unix://{}/none.sock\"\n\
         [[link]]\nneighbour = \"n2\"\ninterface = \"{link}\"\naddress = \"127.0.0.1\"\n\
         neighbour_address = \"127.0.0.2\"\n",
        folder.display()
    );
    std::fs::write(&file, text).unwrap();
    file.display().to_string()
}

#[test]
fn it_works_with_docker_down_and_names_what_is_missing() {
    if !edgeloom_prepare::lab_allowed(&["ip", "iptables", "nft", "unshare"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let config = configure(folder.path(), "nowhere0");
    let output = doctor(&["--config", &config, "--output", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let found = examination(&output);
    for good in ["configuration", "rights", "state directory", "kernel: htb", "kernel: nftables maps"] {
        assert_eq!(verdict(&found, good), Verdict::Ok, "{found:#?}");
    }
    assert_eq!(verdict(&found, "docker"), Verdict::Fail);
    assert_eq!(verdict(&found, "image store"), Verdict::Unknown);
    assert_eq!(verdict(&found, "links"), Verdict::Fail);
    let left: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["agent.toml"]);
}

#[test]
fn without_a_readable_configuration_it_looks_at_the_rest() {
    if !edgeloom_prepare::lab_allowed(&["ip", "unshare"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let wrong = folder.path().join("wrong.toml");
    std::fs::write(&wrong, "cluster = 1").unwrap();
    let output = doctor(&["--config", wrong.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("fail     configuration"), "{text}");
    assert!(text.contains("ok       kernel: htb"), "{text}");
    let counts = text.lines().last().unwrap();
    assert!(counts.contains(" fail, ") && counts.ends_with(" unknown"), "{counts}");
}
