//! The power of the whole lab: cut, only what is on disk is left; back, the nodes start from that alone.

use crate::lab::{Lab, Node, halt, mount};
use crate::{cgroup, network};
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

impl Lab {
    /// Ends every process with SIGKILL, and takes away what a machine without power does not keep: network
    /// namespaces with all that is in them, control groups, mounts and what is in /run.
    pub(crate) fn cut_power(&self) -> Result<()> {
        halt(&self.id)?;
        fs::remove_dir_all(self.run()).with_context(|| self.run().display().to_string())
    }

    /// Starts every node as a machine boots, all of its daemons at once. Registry and controller stay away,
    /// and so do the uplinks.
    pub(crate) fn restore_power(&self) -> Result<()> {
        fs::create_dir_all(self.run()).with_context(|| self.run().display().to_string())?;
        network::create(self)?;
        for node in self.nodes() {
            network::set_uplink(self, &node.spec.name, network::State::Down)?;
            cgroup::create(&self.id, node.spec)?;
            mount(&node)?;
        }
        self.start_containerd()?;
        for node in self.nodes() {
            self.start_docker(&node)?;
            self.start_agent(&node)?;
        }
        Ok(())
    }
}

impl Node<'_> {
    pub(crate) fn namespace_exists(&self) -> bool {
        Path::new("/run/netns").join(self.namespace()).exists()
    }
}
