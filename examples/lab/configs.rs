//! The configuration files of registry, containerd, Docker, controller and agents.

use crate::joining::CONTROLLER;
use crate::lab::{Lab, Node};
use crate::topology::LinkSpec;
use anyhow::Result;
use std::fmt::Write as _;
use std::fs;

pub(crate) fn write(lab: &Lab) -> Result<()> {
    let (state, run) = (lab.state(), lab.run());
    let (state_text, run_text) = (state.display(), run.display());
    fs::write(
        state.join("registry.yml"),
        format!(
            "version: 0.1\nlog:\n  accesslog:\n    disabled: false\n  level: info\n  formatter: json\nstorage:\n  filesystem:\n    rootdirectory: {state_text}/registry\n  delete:\n    enabled: true\nhttp:\n  addr: 10.60.0.1:5000\n"
        ),
    )?;
    fs::write(
        state.join("containerd.toml"),
        format!(
            "version = 2\nroot = \"{state_text}/containerd\"\nstate = \"{run_text}/containerd\"\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n[grpc]\naddress = \"{run_text}/containerd.sock\"\n"
        ),
    )?;
    fs::create_dir_all(state.join("controller"))?;
    fs::write(
        state.join("controller.toml"),
        format!(
            "cluster = \"lab-{}\"\nstate_dir = \"{state_text}/controller\"\n[http]\nlisten = \"{CONTROLLER}:7070\"\n[mqtt]\nlisten = \"{CONTROLLER}:8883\"\n[pool]\nnetwork = \"10.77.0.0/16\"\n[registries]\ninsecure = [\"10.60.0.1:5000\"]\n",
            lab.id
        ),
    )?;
    for node in lab.nodes() {
        fs::create_dir_all(node.state().join("agent"))?;
        fs::write(node.docker_config(), docker(true))?;
        fs::write(node.state().join("agent.toml"), agent(lab, &node)?)?;
    }
    Ok(())
}

/// Docker's own file. With live-restore, containers go on while Docker is away.
pub(crate) fn docker(live_restore: bool) -> String {
    format!("{{\"live-restore\": {live_restore}}}\n")
}

fn agent(lab: &Lab, node: &Node<'_>) -> Result<String> {
    let name = &node.spec.name;
    let mut text = format!(
        "cluster = \"lab-{id}\"\nnode = \"{name}\"\nstate_dir = \"{}/agent\"\ndocker = \"unix://{}\"\ncgroup = \"{}/{name}\"\n[labels]\n",
        node.state().display(),
        node.docker_socket().display(),
        crate::cgroup::top(&lab.id),
        id = lab.id
    );
    for (label, value) in &node.spec.labels {
        writeln!(text, "{label:?} = {value:?}")?;
    }
    for (index, link) in lab.topology.links.iter().enumerate() {
        let addresses = LinkSpec::addresses(index);
        for (here, there) in [(0, 1), (1, 0)] {
            if &link.between[here] == name {
                let neighbour = &link.between[there];
                writeln!(
                    text,
                    "[[link]]\nneighbour = \"{neighbour}\"\ninterface = \"to-{neighbour}\"\nneighbour_address = \"{}\"",
                    addresses[there]
                )?;
                if link.declared {
                    writeln!(text, "capacity = \"{}bit/s\"", link.rate.0)?;
                }
            }
        }
    }
    Ok(text)
}
