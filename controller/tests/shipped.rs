//! The configurations that are shipped read as they are and with all that they offer, and offer all that there is.

mod agent {
    use super::with_all_taken_in;
    use edgeloom_agent::config::{Config, Place};
    use std::path::Path;

    const SHIPPED: &str = include_str!("../../systemd/agent.toml");
    /// Every section.
    const SECTIONS: [&str; 6] = ["", "[controller]", "[[link]]", "[layers]", "[volumes]", "[images]"];

    fn load(folder: &Path, text: &str) -> Result<Config, String> {
        let path = folder.join("agent.toml");
        std::fs::write(&path, text.replace("/var/lib/edgeloom-agent", folder.to_str().unwrap())).unwrap();
        Config::load(&path).map_err(|error| error.to_string())
    }

    #[test]
    fn the_shipped_configuration_reads() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../systemd/agent.toml");
        let place = Place::read(&path).unwrap().unwrap();
        assert_eq!(place.state_dir, Place::default_state_dir());
        assert!(
            place.cluster.is_none() && place.node.is_none() && !place.has_files,
            "joining says who it is"
        );
    }

    #[test]
    fn what_it_offers_is_read_and_defaults_are_what_it_says() {
        let folder = tempfile::tempdir().unwrap();
        let offered = load(folder.path(), &with_all_taken_in(SHIPPED)).unwrap();
        assert_eq!((offered.taints.len(), offered.links.len(), offered.volumes.len()), (1, 1, 1));
        assert!(offered.controller.is_some_and(|controller| controller.files.is_some()));
        assert!(offered.class.is_some() && offered.cgroup.is_some() && offered.layers.budget.0 > 0);
        let least = "cluster = \"home\"\nnode = \"node-1\"\nstate_dir = \"/var/lib/edgeloom-agent\"\n";
        let default = load(folder.path(), least).unwrap();
        assert_eq!(
            (offered.runtime_dir, offered.docker_socket, offered.bridge, offered.images, offered.layers.port),
            (default.runtime_dir, default.docker_socket, default.bridge, default.images, default.layers.port)
        );
    }

    #[test]
    fn it_offers_every_field() {
        let folder = tempfile::tempdir().unwrap();
        let offered = with_all_taken_in(SHIPPED);
        for section in SECTIONS {
            let refused = load(folder.path(), &format!("{section}\nnonsense = 1\n")).unwrap_err();
            let (_, known) =
                refused.split_once("`nonsense`, expected").unwrap_or_else(|| panic!("{refused}"));
            let fields: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
            assert!(!fields.is_empty(), "{refused}");
            for field in fields {
                let forms = [format!("\n{field} = "), format!("\n[{field}]"), format!("\n[[{field}]]")];
                assert!(forms.iter().any(|form| offered.contains(form)), "{section} {field} is not offered");
            }
        }
    }
}

mod controller {
    use super::with_all_taken_in;
    use edgeloom_cluster::FollowLoad;
    use edgeloom_controller::config::{Config, Security};
    use edgeloom_sched::scoring::Scoring;

    const SHIPPED: &str = include_str!("../../systemd/controller.toml");

    #[test]
    fn the_shipped_configuration_reads() {
        let config = Config::parse(SHIPPED).unwrap();
        assert_eq!(config.cluster.as_str(), "home");
        assert_eq!(
            (config.http.security, config.mqtt.files),
            (Security::Tls, None),
            "secure as it is shipped"
        );
        assert_eq!((config.follow, config.prices), (None, None));
    }

    #[test]
    fn what_it_offers_is_read_and_defaults_are_what_it_says() {
        let offered = Config::parse(&with_all_taken_in(SHIPPED)).unwrap();
        assert_eq!((offered.scoring, offered.follow), (Scoring::default(), Some(FollowLoad::default())));
        assert!(offered.prices.is_some() && offered.mqtt.files.is_some());
    }
}

/// Settings that are offered as comments are taken in.
fn with_all_taken_in(text: &str) -> String {
    let is_key = |key: &str| key.bytes().all(|byte| byte.is_ascii_lowercase() || b"_-".contains(&byte));
    let is_setting = |line: &&str| {
        line.starts_with('[') || line.split_once(" = ").is_some_and(|(key, _)| is_key(key.trim_end()))
    };
    let lines = text.lines().map(|line| line.strip_prefix("# ").filter(is_setting).unwrap_or(line));
    lines.collect::<Vec<_>>().join("\n")
}
