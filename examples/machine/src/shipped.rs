//! What systemd/README.md installs, where it says; and a Docker as distributions have it.

use crate::Parts;
use std::path::{Path, PathBuf};

/// Docker in the machine: its own socket, its own tables, nothing of the machine around.
const DOCKER: &str = "[Service]\nType=notify\nDelegate=yes\nKillMode=process\n\
    ExecStart=/usr/sbin/dockerd -H unix:///run/docker.sock --config-file=/etc/docker-settings.json \
    --exec-opt native.cgroupdriver=cgroupfs --storage-driver=overlay2\n";

impl Parts {
    /// The agent, its unit and what belongs to it, and the configuration as it is shipped.
    pub fn install_agent(&self, program: &Path) {
        self.install(program, "/usr/bin/edgeloom-agent");
        for (name, place) in [
            ("edgeloom-agent.service", "/usr/lib/systemd/system/edgeloom-agent.service"),
            ("edgeloom-agent.sysusers", "/usr/lib/sysusers.d/edgeloom-agent.conf"),
            ("edgeloom-agent.tmpfiles", "/usr/lib/tmpfiles.d/edgeloom-agent.conf"),
            ("edgeloom-agent.sysctl", "/usr/lib/sysctl.d/90-edgeloom-agent.conf"),
            ("edgeloom-agent.modules", "/usr/lib/modules-load.d/edgeloom-agent.conf"),
            ("agent.toml", "/etc/edgeloom/agent.toml"),
        ] {
            self.install(&shipped(name), place);
        }
    }

    /// The controller and the command line, the unit and what belongs to it, and the configuration as it is
    /// shipped.
    pub fn install_controller(&self, controller: &Path, command_line: &Path) {
        self.install(controller, "/usr/bin/edgeloom-controller");
        self.install(command_line, "/usr/bin/edgeloom");
        for (name, place) in [
            ("edgeloom-controller.service", "/usr/lib/systemd/system/edgeloom-controller.service"),
            ("edgeloom-controller.sysusers", "/usr/lib/sysusers.d/edgeloom-controller.conf"),
            ("edgeloom-controller.tmpfiles", "/usr/lib/tmpfiles.d/edgeloom-controller.conf"),
            ("controller.toml", "/etc/edgeloom/controller.toml"),
        ] {
            self.install(&shipped(name), place);
        }
    }

    /// Docker with these settings (the text of its `daemon.json`); its socket is `/run/docker.sock`.
    pub fn install_docker(&self, settings: &str) {
        self.write("/etc/systemd/system/docker.service", DOCKER);
        self.write("/etc/docker-settings.json", settings);
    }
}

fn shipped(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../systemd").join(name)
}
