//! From bare machines to a cluster, as its owner goes about it: the controller makes its authority, `edgeloom
//! token create` a token a node, and `edgeloom-agent join` takes it to the controller. Certificates and
//! keys are made by the daemons alone.

use crate::api::Api;
use crate::command::run;
use crate::lab::{Lab, Node};
use crate::network;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where the controller is, seen from host and nodes.
pub(crate) const CONTROLLER: &str = "10.60.0.2";

/// A controller that makes its authority needs a moment.
const PATIENCE: Duration = Duration::from_secs(20);

/// The token goes from the one to the other unseen, as with `ssh` in place of `nsenter`.
/// $1: `edgeloom`, $2: the node, $3: its namespace, $4: `edgeloom-agent`, $5: the controller, $6: agent.toml.
const JOIN: &str = r#""$1" token create --node "$2" | nsenter --net="$3" "$4" join "$5" - --config "$6""#;

impl Lab {
    /// What the command line needs to be the cluster's administrator.
    pub(crate) fn context(&self) -> PathBuf {
        self.state().join("controller/identity/admin.json")
    }

    /// The environment in which `edgeloom` talks to this lab.
    pub(crate) fn login(&self) -> String {
        format!("EDGELOOM_CONTEXT={}", self.context().display())
    }

    /// Starts the controller, lets every node join and starts the agents.
    pub(crate) fn start_cluster(&self) -> Result<()> {
        self.start_controller()?;
        Api::new(self.context()).await_controller(PATIENCE)?;
        let nodes = self.nodes();
        nodes.iter().try_for_each(|node| self.join(node))?;
        nodes.iter().try_for_each(|node| self.start_agent(node).map(drop))
    }

    fn join(&self, node: &Node<'_>) -> Result<()> {
        let login = self.login();
        let namespace = Path::new("/run/netns").join(network::node(&self.id, &node.spec.name));
        let (folder, state) = (self.state(), node.state());
        let paths =
            [folder.join("edgeloom"), namespace, state.join("edgeloom-agent"), state.join("agent.toml")];
        let [edgeloom, namespace, agent, config] =
            paths.each_ref().map(|path| path.to_str().expect("the lab's paths are UTF-8"));
        // What whoever runs the lab has logged in to is another cluster.
        let bare = ["EDGELOOM_SERVER", "EDGELOOM_TOKEN", "EDGELOOM_CA"].map(|name| ["-u", name]).concat();
        let script =
            ["sh", "-c", JOIN, "join", edgeloom, &node.spec.name, namespace, agent, CONTROLLER, config];
        let words = [&["env"], &bare[..], &[login.as_str()], &script].concat();
        run(&words).map(drop).with_context(|| format!("{} does not join", node.spec.name))
    }
}
