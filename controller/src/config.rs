//! `controller.toml`: read as a whole, refused with every problem at once.

use crate::config::section::Section;
use edgeloom_cluster::{Batching, FollowLoad, Registries};
use edgeloom_common::desired::Pool;
use edgeloom_common::ids::ClusterId;
use edgeloom_common::price::Prices;
use edgeloom_identity::Files;
use edgeloom_sched::scoring::Scoring;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

mod batching;
mod consolidation;
mod prices;
mod registries;
mod scoring;
mod section;

/// A configuration in which every field is present and sound.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    pub cluster: ClusterId,
    pub state_dir: PathBuf,
    /// The profile of jobs that name none.
    pub profile: String,
    /// Bytes of images that scores go by.
    pub scoring: Scoring,
    /// What batches are packed for, and how long ECSched gathers requests.
    pub batching: Batching,
    pub http: Http,
    pub mqtt: Mqtt,
    pub pool: Pool,
    pub registries: Registries,
    /// Whether the number of nodes that take tasks follows the load, and how.
    pub follow: Option<FollowLoad>,
    /// The file of the key that seals secrets and logins; below the state directory unless it is named.
    pub secrets_key: PathBuf,
    /// What use costs; none: nothing is charged.
    pub prices: Option<Prices>,
}

/// Where the HTTP API listens, and whom it serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Http {
    pub listen: SocketAddr,
    pub security: Security,
    /// Further names and addresses that clients reach it under.
    pub names: Vec<String>,
}

/// Whether the API is spoken over TLS with tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Security {
    Tls,
    /// Plain HTTP, and everybody who reaches the port is an administrator.
    Insecure,
}

/// Where agents connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mqtt {
    pub listen: SocketAddr,
    /// Certificates managed from outside; none: the controller's own authority makes them.
    pub files: Option<Files>,
}

/// Why a configuration is refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file is not there or not readable.
    #[error("cannot read {path}: {source}")]
    Read { path: PathBuf, source: std::io::Error },
    /// The text is no TOML.
    #[error("no TOML: {0}")]
    Syntax(#[from] toml::de::Error),
    /// One line a problem.
    #[error("{}", lines(.0))]
    Invalid(Vec<ConfigProblem>),
}

/// One problem of a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigProblem {
    /// For instance `mqtt.listen`.
    pub field: String,
    pub problem: String,
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.problem)
    }
}

fn lines(problems: &[ConfigProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

impl Config {
    /// Reads and checks a file.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        Self::parse(&text)
    }

    /// Checks a text; every problem is named.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let mut root = Section::root(text.parse()?);
        let cluster = root.parsed::<ClusterId>("cluster", "a name such as \"home\"");
        let state_dir = root.path("state_dir");
        let secrets_key = if root.has_any(&["secrets_key"]) { root.path("secrets_key") } else { None };
        let profile = root.text_or("profile", "edgeloom");
        let mut http = root.section("http");
        let mut mqtt = root.section("mqtt");
        let mut pool = root.section("pool");
        let mut registries = root.optional_section("registries");
        let mut watch = registries.optional_section("watch");
        let mut scores = root.optional_section("scoring");
        let mut batches = root.optional_section("batch");
        let mut consolidating = root.optional_section("consolidation");
        let mut charged = prices::Sections::of(&mut root);
        if edgeloom_sched::profile(&profile).is_none() {
            let known = edgeloom_sched::profile_names().join(", ");
            root.refuse("profile", format!("{profile:?} is no profile; known are: {known}"));
        }
        let http_listen = http.parsed::<SocketAddr>("listen", "an address such as \"127.0.0.1:7070\"");
        let security = security(&mut http, http_listen);
        let names = http.texts("names");
        let listen = mqtt.parsed::<SocketAddr>("listen", "an address such as \"0.0.0.0:8883\"");
        let (files, files_sound) = files(&mut mqtt);
        let network = pool.text("network", "a private network such as \"10.77.0.0/16\"");
        let registries_known = registries::read(&mut registries, &mut watch);
        let scoring = scoring::read(&mut scores);
        let batching = batching::read(&mut batches);
        let follow = consolidation::read(&mut consolidating);
        let prices = charged.read();
        let network = network.and_then(|text| match parse_pool(&text) {
            Ok(parsed) => Some(parsed),
            Err(problem) => {
                pool.refuse("network", problem);
                None
            }
        });
        let sections = [root, http, mqtt, pool, registries, watch, scores, batches, consolidating];
        let problems = Section::finish(sections.into_iter().chain(charged.into_sections()));
        match (cluster, state_dir, http_listen, listen, network) {
            (Some(cluster), Some(state_dir), Some(http_listen), Some(listen), Some(pool))
                if problems.is_empty() && files_sound =>
            {
                let http = Http { listen: http_listen, security, names };
                let mqtt = Mqtt { listen, files };
                let secrets_key = secrets_key.unwrap_or_else(|| state_dir.join("secrets.key"));
                let registries = registries_known;
                Ok(Self {
                    cluster,
                    state_dir,
                    profile,
                    scoring,
                    batching,
                    http,
                    mqtt,
                    pool,
                    registries,
                    follow,
                    secrets_key,
                    prices,
                })
            }
            _ => Err(ConfigError::Invalid(problems)),
        }
    }
}

/// `insecure` is for the loopback address alone.
fn security(http: &mut Section, listen: Option<SocketAddr>) -> Security {
    if !http.flag("insecure") {
        return Security::Tls;
    }
    if listen.is_some_and(|listen| !listen.ip().is_loopback()) {
        http.refuse(
            "insecure",
            "would make everybody who reaches this address an administrator; remove it, or listen on 127.0.0.1"
                .to_owned(),
        );
    }
    Security::Insecure
}

/// All three files, or none of them; and whether that holds.
fn files(mqtt: &mut Section) -> (Option<Files>, bool) {
    if !mqtt.has_any(&["ca", "certificate", "key"]) {
        return (None, true);
    }
    let (ca, certificate, key) = (mqtt.path("ca"), mqtt.path("certificate"), mqtt.path("key"));
    match (ca, certificate, key) {
        (Some(ca), Some(certificate), Some(key)) => (Some(Files { ca, certificate, key }), true),
        _ => (None, false),
    }
}

/// Reads `10.77.0.0/16`; the gateway is the network's first address. Between /8 and /28: below, no
/// private network is that large; above, there is hardly room for a job.
fn parse_pool(text: &str) -> Result<Pool, String> {
    let remedy = "write a private network such as \"10.77.0.0/16\"";
    let (network, prefix) =
        text.split_once('/').ok_or_else(|| format!("{text:?} has no prefix length; {remedy}"))?;
    let network: Ipv4Addr =
        network.parse().map_err(|_| format!("{network:?} is no IPv4 address; {remedy}"))?;
    let prefix_len: u8 = prefix
        .parse()
        .ok()
        .filter(|len| (8..=28).contains(len))
        .ok_or_else(|| format!("prefix length {prefix:?} is not in 8 to 28; {remedy}"))?;
    if !network.is_private() {
        return Err(format!("{network} is no private address (RFC 1918); {remedy}"));
    }
    let host_bits = u32::MAX >> prefix_len;
    if network.to_bits() & host_bits != 0 {
        let start = Ipv4Addr::from_bits(network.to_bits() & !host_bits);
        return Err(format!("{text} is not the start of its network; write \"{start}/{prefix_len}\""));
    }
    Ok(Pool { network, prefix_len, gateway: Ipv4Addr::from_bits(network.to_bits() + 1) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
        cluster = "home"
        state_dir = "/var/lib/edgeloom-controller"
        profile = "otfs"
        [http]
        listen = "127.0.0.1:7070"
        [mqtt]
        listen = "0.0.0.0:8883"
        ca = "/etc/edgeloom/ca.pem"
        certificate = "/etc/edgeloom/controller.pem"
        key = "/etc/edgeloom/controller.key"
        [pool]
        network = "10.77.0.0/16"
        [registries]
        insecure = ["10.60.0.1:5000"]
    "#;

    fn problems(text: &str) -> Vec<String> {
        match Config::parse(text) {
            Err(ConfigError::Invalid(problems)) => problems.iter().map(ToString::to_string).collect(),
            other => panic!("expected problems, got {other:?}"),
        }
    }

    #[test]
    fn a_sound_file_is_read() {
        let config = Config::parse(GOOD).unwrap();
        assert_eq!(config.pool.gateway, Ipv4Addr::new(10, 77, 0, 1));
        assert_eq!(config.registries.insecure, ["10.60.0.1:5000"]);
        assert_eq!(config.profile, "otfs");
    }

    #[test]
    fn every_problem_is_named_at_once() {
        let text = GOOD
            .replace("\"home\"", "\"Home!\"")
            .replace("127.0.0.1:7070", "localhost")
            .replace("ca =", "cca =")
            .replace("10.77.0.0/16", "10.77.0.1/16")
            .replace("[\"10.60.0.1:5000\"]", "7")
            .replace("otfs", "fastest");
        let found = problems(&text);
        for field in [
            "cluster:",
            "http.listen:",
            "mqtt.ca:",
            "mqtt.cca:",
            "pool.network:",
            "registries.insecure:",
            "profile:",
        ] {
            assert!(found.iter().any(|line| line.starts_with(field)), "{field} in {found:?}");
        }
        assert_eq!(found.len(), 7, "{found:?}");
    }

    #[test]
    fn an_empty_file_names_all_that_is_missing() {
        assert_eq!(problems("").len(), 5, "{:?}", problems(""));
        assert!(matches!(Config::parse("cluster = "), Err(ConfigError::Syntax(_))));
    }

    #[test]
    fn certificates_are_all_from_outside_or_all_our_own() {
        let own: Vec<_> = GOOD.lines().filter(|line| !line.contains("/etc/edgeloom")).collect();
        let config = Config::parse(&own.join("\n")).unwrap();
        assert_eq!((config.mqtt.files, config.http.security), (None, Security::Tls));
        let found = problems(&GOOD.replace("ca = \"/etc/edgeloom/ca.pem\"", ""));
        assert!(found.len() == 1 && found[0].starts_with("mqtt.ca:"), "{found:?}");
    }

    #[test]
    fn without_authentication_only_this_machine_is_served() {
        let listen = |address: &str| {
            let listen = format!("listen = \"{address}:7070\"\ninsecure = true");
            GOOD.replace("listen = \"127.0.0.1:7070\"", &listen)
        };
        for address in ["127.0.0.1", "[::1]"] {
            let config = Config::parse(&listen(address)).unwrap();
            assert_eq!(config.http.security, Security::Insecure, "{address}");
        }
        for address in ["10.60.0.2", "0.0.0.0", "8.8.8.8"] {
            let found = problems(&listen(address));
            assert!(found.len() == 1 && found[0].starts_with("http.insecure:"), "{found:?}");
        }
    }

    #[test]
    fn pools_are_private_networks() {
        for bad in ["10.77.0.0", "10.77.0.0/33", "10.77.0.0/4", "8.8.0.0/16", "x/16", "10.77.1.0/16"] {
            assert!(parse_pool(bad).is_err(), "{bad}");
        }
    }
}
