//! The configuration that is shipped reads as it is.

use edgeloom_agent::config::Place;
use std::path::Path;

#[test]
fn the_shipped_configuration_reads() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../systemd/agent.toml");
    let place = Place::read(&path).unwrap().unwrap();
    assert_eq!(place.state_dir, Place::default_state_dir());
    assert!(place.cluster.is_none() && place.node.is_none() && !place.has_files, "joining says who it is");
}
