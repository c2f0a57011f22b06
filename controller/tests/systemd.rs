//! The controller as it is installed: unit, user and files under a real systemd.

use edgeloom_machine::{Machine, Parts};
use std::path::Path;
use std::time::Duration;

const UNIT: &str = "edgeloom-controller.service";
/// Many times what a loaded machine needs.
const LIMIT: Duration = Duration::from_secs(120);
/// Times that let a test end soon.
const QUICK: &str = "[Service]\nWatchdogSec=4\nRestartSec=100ms\n";

#[test]
fn the_unit_comes_up_is_watched_and_ends_when_told() {
    let Some(parts) = Parts::gather(&[]) else { return };
    install(&parts);
    let machine = parts.boot();
    machine.run(&["systemctl", "start", UNIT]);
    is_ready_as_the_user_it_should_be(&machine);
    machine.replaces_what_hangs(UNIT, LIMIT);
    let examination = machine.run(&["edgeloom", "doctor"]);
    assert!(examination.contains("ok       readiness"), "{examination}");
    assert!(examination.contains("none was ever seen"), "{examination}");
    machine.run(&["systemctl", "stop", UNIT]);
    assert_eq!(machine.property(UNIT, "Result"), "success");
    assert_eq!(machine.property(UNIT, "ActiveState"), "inactive");
    let unreachable = machine.attempt(&["edgeloom", "doctor"]);
    assert_eq!(unreachable.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&unreachable.stdout).starts_with("fail     controller"));
    a_refused_configuration_is_not_tried_again(&machine);
}

fn is_ready_as_the_user_it_should_be(machine: &Machine) {
    assert_eq!(machine.property(UNIT, "ActiveState"), "active");
    assert_eq!(machine.property(UNIT, "SubState"), "running");
    machine.run(&["grep", "-x", "WatchdogSec=60", &machine.property(UNIT, "FragmentPath")]);
    assert_eq!(machine.complaints(UNIT), "");
    let pid = machine.property(UNIT, "MainPID");
    let status = machine.run(&["cat", &format!("/proc/{pid}/status")]);
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.split_whitespace().next().unwrap().to_owned()
    };
    for set in ["CapEff:", "CapBnd:", "CapAmb:"] {
        assert_eq!(u64::from_str_radix(&field(set), 16).unwrap(), 0, "{set}");
    }
    assert_eq!(field("Uid:"), machine.run(&["id", "-u", "edgeloom"]).trim());
    let stat = |path: &str| machine.run(&["stat", "-c", "%a %U", path]).trim().to_owned();
    assert_eq!(stat("/var/lib/edgeloom-controller"), "700 edgeloom");
    assert_eq!(stat("/etc/edgeloom/controller.key"), "640 root");
    // Ready means that it can be asked, at once.
    machine.run(&["edgeloom", "jobs"]);
    machine.await_that("the owner's beat gives the status", LIMIT, || {
        machine.property(UNIT, "StatusText") == "0 jobs, 0 of 0 nodes online"
    });
}

fn a_refused_configuration_is_not_tried_again(machine: &Machine) {
    std::fs::write(machine.path("/etc/edgeloom/controller.toml"), "cluster = 1\n").unwrap();
    assert!(!machine.attempt(&["systemctl", "start", UNIT]).status.success());
    assert_eq!(machine.property(UNIT, "ActiveState"), "failed");
    assert_eq!(machine.property(UNIT, "ExecMainStatus"), "64");
    assert_eq!(machine.property(UNIT, "NRestarts"), "0");
}

fn install(parts: &Parts) {
    let programs = [env!("CARGO_BIN_EXE_edgeloom-controller"), env!("CARGO_BIN_EXE_edgeloom")].map(Path::new);
    parts.install_controller(programs[0], programs[1]);
    parts.write("/etc/systemd/system/edgeloom-controller.service.d/quick.conf", QUICK);
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate =
        rcgen::CertificateParams::new(vec!["controller".to_owned()]).unwrap().self_signed(&key).unwrap();
    parts.write("/etc/edgeloom/ca.pem", &certificate.pem());
    parts.write("/etc/edgeloom/controller.pem", &certificate.pem());
    parts.write("/etc/edgeloom/controller.key", &key.serialize_pem());
}
