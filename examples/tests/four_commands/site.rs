//! Two machines on one wire, each with what systemd/README.md installs: a master, where the registry is too, and
//! a node with Docker.

use crate::outsider;
use bollard::query_parameters::{ListContainersOptionsBuilder, LogsOptionsBuilder};
use bollard::{API_DEFAULT_VERSION, Docker};
use edgeloom_common::join::Context;
use edgeloom_examples::build::{Profile, daemons, pipeline};
use edgeloom_examples::images::{application_images, push};
use edgeloom_machine::{Machine, Parts};
use futures_util::TryStreamExt;
use nix::sched::{CloneFlags, setns};
use std::collections::HashMap;
use std::fs::{self, File};
use std::time::Duration;

const JOB: &str = include_str!("../../jobs/one-task.yaml");
const CONTROLLER: &str = include_str!("../../../systemd/controller.toml");
/// Where the job has its image from.
const REGISTRY: &str = "10.60.0.1:5000";
const REGISTRY_UNIT: &str = "[Service]\nExecStart=/usr/bin/docker-registry serve /etc/registry.yml\n";
const HOSTS: &str = "127.0.0.1 localhost\n10.60.0.1 master\n10.60.0.11 node\n";
/// Many times what a loaded machine needs, and systemd's own limit for a start.
const LIMIT: Duration = Duration::from_secs(300);

/// Gathers a machine of this name.
fn machine(name: &str, programs: &[&str]) -> Option<Parts> {
    let parts = Parts::gather(programs)?;
    parts.write("/etc/hostname", &format!("{name}\n"));
    parts.write("/etc/hosts", HOSTS);
    Some(parts)
}

pub(crate) struct Site {
    master: Machine,
    node: Machine,
}

impl Site {
    /// Installs and boots both; none where tests like this are skipped.
    pub(crate) fn make() -> Option<Self> {
        let master = machine("master", &["docker-registry"])?;
        let node = machine("node", &["containerd", "dockerd", "iptables", "runc"])?;
        let programs = daemons(Profile::Dev).unwrap();
        master.install_controller(&programs.join("edgeloom-controller"), &programs.join("edgeloom"));
        let insecure = format!("insecure = [\"{REGISTRY}\"]");
        master.write("/etc/edgeloom/controller.toml", &CONTROLLER.replace("insecure = []", &insecure));
        let storage = "storage: { filesystem: { rootdirectory: /var/registry } }";
        let registry = format!("version: 0.1\n{storage}\nhttp: {{ addr: '{REGISTRY}' }}\n");
        master.write("/etc/registry.yml", &registry);
        master.write("/etc/systemd/system/registry.service", REGISTRY_UNIT);
        master.write("/root/job.yaml", JOB);
        node.install_agent(&programs.join("edgeloom-agent"));
        node.install_docker(&format!("{{ \"insecure-registries\": [\"{REGISTRY}\"] }}"));
        let site = Self { master: master.boot(), node: node.boot() };
        site.master.wire(&site.node, ["10.60.0.1/24", "10.60.0.11/24"]);
        site.node.run(&["systemctl", "start", "docker.service"]);
        site.fill_registry();
        Some(site)
    }

    fn fill_registry(&self) {
        let program = fs::read(pipeline(Profile::Dev).unwrap()).unwrap();
        let images = application_images(&program);
        let image = images.iter().find(|image| JOB.contains(&image.repository)).unwrap();
        self.master.run(&["systemctl", "start", "registry.service"]);
        // The unit counts as started before the registry listens.
        self.master.await_that("the registry has the image", LIMIT, || {
            within(&self.master, || push(REGISTRY, image)).is_ok()
        });
    }

    /// What a command prints that has to succeed.
    pub(crate) fn type_in(&self, machine: &str, command: &str) -> String {
        let machine = match machine {
            "master" => &self.master,
            "node" => &self.node,
            other => panic!("there is no machine {other}"),
        };
        let limit = LIMIT.as_secs().to_string();
        machine.run(&["timeout", &limit, "sh", "-c", &format!("cd /root && {command}")])
    }

    pub(crate) fn units_come_back_after_a_boot(&self) {
        for (machine, unit) in [(&self.master, "edgeloom-controller"), (&self.node, "edgeloom-agent")] {
            let unit = format!("{unit}.service");
            assert_eq!(machine.property(&unit, "ActiveState"), "active", "{unit}");
            assert_eq!(machine.property(&unit, "UnitFileState"), "enabled", "{unit}");
        }
    }

    /// Docker says that the job's container runs, and its program that it has finished items.
    pub(crate) fn container_works(&self) {
        let socket = self.node.path("/run/docker.sock");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let docker = Docker::connect_with_unix(socket.to_str().unwrap(), 120, API_DEFAULT_VERSION).unwrap();
        let docker = runtime.block_on(docker.negotiate_version()).unwrap();
        let labels = vec!["edgeloom.job=one-task", "edgeloom.task=camera", "edgeloom.node=node"];
        let running = HashMap::from([("label", labels), ("status", vec!["running"])]);
        let options = ListContainersOptionsBuilder::default().filters(&running).build();
        let found = runtime.block_on(docker.list_containers(Some(options))).unwrap();
        let [container] = found.as_slice() else { panic!("not one container: {found:?}") };
        let id = container.id.as_deref().unwrap();
        self.node.await_that("the container finishes items", LIMIT, || {
            let options = LogsOptionsBuilder::default().stdout(true).tail("1").build();
            let lines = docker.logs(id, Some(options)).try_collect::<Vec<_>>();
            let lines = runtime.block_on(lines).unwrap();
            let items = lines.iter().map(ToString::to_string).collect::<String>();
            let items =
                items.split_whitespace().find_map(|word| word.strip_prefix("items=")?.parse::<u64>().ok());
            items.is_some_and(|items| 0 < items)
        });
    }

    /// What the controller has left for the administrator.
    fn context(&self) -> Context {
        let path = self.master.path("/var/lib/edgeloom-controller/identity/admin.json");
        serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
    }

    pub(crate) fn only_tokens_open_the_api(&self) {
        let context = self.context();
        let ask = |token: Option<&str>| within(&self.master, || outsider::nodes_status(&context, token));
        assert_eq!(ask(Some(context.token.expose())), 200);
        assert_eq!(ask(None), 401);
        assert_eq!(ask(Some("ela1.000000000000.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")), 401);
        let plain = within(&self.node, || outsider::nodes_in_the_clear("10.60.0.1:7070"));
        assert!(plain.is_err(), "{plain:?}");
    }

    pub(crate) fn only_certificates_open_the_broker(&self) {
        let broker = "10.60.0.1:8883";
        let authorities = self.context().authorities;
        let bare = within(&self.node, || outsider::session(broker, &authorities, None)).unwrap_err();
        assert!(bare.to_string().contains("CertificateRequired"), "{bare}");
        let own = within(&self.node, || outsider::session(broker, &authorities, Some("node"))).unwrap_err();
        assert!(own.to_string().contains("UnknownCA"), "{own}");
        let plain = within(&self.node, || outsider::session_in_the_clear(broker));
        assert!(!plain.starts_with(&[outsider::CONNACK]), "{plain:?}");
    }
}

/// Does something in a machine's network, on a thread of its own.
fn within<T: Send>(machine: &Machine, work: impl FnOnce() -> T + Send) -> T {
    let enter = || {
        let network = File::open(machine.network()).unwrap();
        setns(network, CloneFlags::CLONE_NEWNET).unwrap();
        work()
    };
    std::thread::scope(|scope| scope.spawn(enter).join().unwrap())
}
