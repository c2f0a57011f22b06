//! The configuration that is shipped reads as it is.

use edgeloom_controller::config::{Config, Security};
use std::path::Path;

#[test]
fn the_shipped_configuration_reads() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../systemd/controller.toml");
    let config = Config::read(&path).unwrap();
    assert_eq!(config.cluster.as_str(), "home");
    assert_eq!((config.http.security, config.mqtt.files), (Security::Tls, None), "secure as it is shipped");
}
