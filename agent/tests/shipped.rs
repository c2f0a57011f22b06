//! The configuration that is shipped reads as it is.

use edgeloom_agent::config::Config;
use std::path::Path;

#[test]
fn the_shipped_configuration_reads() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../systemd/agent.toml");
    let config = Config::load(&path).unwrap();
    assert_eq!(config.node.as_str(), "node-1");
    assert!(config.controller.is_some());
}
