//! The agent is killed in the middle of a pull: what crosses the line twice, by the kernel's count of a real
//! registry's bytes.

use super::private::{DaemonNetwork, PrivateDocker};
use super::site::Site;
use super::{DOCUMENT, TRIAL_MAX};
use bollard::query_parameters::{
    CreateImageOptionsBuilder, PushImageOptionsBuilder, RemoveImageOptionsBuilder, TagImageOptionsBuilder,
};
use bollard::{Docker as Client, body_full};
use edgeloom_common::desired::{DesiredState, ImageRef};
use futures_util::StreamExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The registry, on the node's loopback interface: Docker trusts that without TLS.
const REGISTRY: &str = "127.0.0.1:5000";
const REPOSITORY: &str = "127.0.0.1:5000/large";
/// Random bytes of the image's one layer: whatever is not kept of it is lost as a whole.
const LAYER_BYTES: usize = 16 << 20;
/// What the registry sends in a second.
const LINE: &str = "40mbit";
const CONVERGED: &str = "the node is as desired";

/// The registry, killed on drop.
struct Registry(Child);

impl Registry {
    /// Its bytes have a class of their own, which limits and counts them.
    fn start(site: &Site) -> Self {
        for line in [
            "tc qdisc add dev lo root handle 1: htb default 2",
            "tc class add dev lo parent 1: classid 1:2 htb rate 10gbit",
            &format!("tc class add dev lo parent 1: classid 1:1 htb rate {LINE} burst 64k"),
            "tc filter add dev lo parent 1: protocol ip u32 match ip sport 5000 0xffff flowid 1:1",
        ] {
            site.inside(line);
        }
        let config = site.write(
            "registry.yml",
            &format!(
                "version: 0.1\nlog: {{level: error}}\nhttp: {{addr: \"{REGISTRY}\"}}\n\
                 storage: {{filesystem: {{rootdirectory: {:?}}}}}\n",
                site.path("registry")
            ),
        );
        let mut command = Command::new("nsenter");
        command.arg(site.entry()).args(["docker-registry", "serve"]).arg(config);
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Trial {
    site: Site,
    client: Client,
    image: ImageRef,
}

/// Pushes an image of random bytes and takes it from Docker again.
async fn publish(client: &Client) -> ImageRef {
    let mut seed = 5_u64;
    let mut random = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as u8
    };
    let data: Vec<u8> = (0..LAYER_BYTES).map(|_| random()).collect();
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(data.len() as u64);
    header.set_mode(0o644);
    archive.append_data(&mut header, "data", data.as_slice()).unwrap();
    let options = CreateImageOptionsBuilder::new().from_src("-").build();
    let body = body_full(archive.into_inner().unwrap().into());
    let lines: Vec<_> = client.create_image(Some(options), Some(body), None).collect().await;
    let ids = lines.into_iter().filter_map(|line| line.unwrap().status);
    let id = ids.filter(|status| status.starts_with("sha256:")).last().unwrap();
    let options = TagImageOptionsBuilder::new().repo(REPOSITORY).tag("1").build();
    client.tag_image(&id, Some(options)).await.unwrap();
    let options = PushImageOptionsBuilder::new().tag("1").build();
    let lines: Vec<_> = client.push_image(REPOSITORY, Some(options), None).collect().await;
    lines.into_iter().for_each(|line| drop(line.unwrap()));
    let names = client.inspect_image(&id).await.unwrap().repo_digests.unwrap_or_default();
    let digest = names[0].split_once('@').unwrap().1.to_owned();
    remove(client, &id).await;
    ImageRef { repository: REPOSITORY.to_owned(), digest, name: format!("{REPOSITORY}:1") }
}

async fn remove(client: &Client, image: &str) {
    let options = RemoveImageOptionsBuilder::new().force(true).build();
    client.remove_image(image, Some(options), None).await.unwrap();
}

impl Trial {
    /// Bytes that the registry has sent.
    fn sent(&self) -> u64 {
        let class = self.site.inside("tc -s class show dev lo classid 1:1");
        let count = class.split_once("Sent ").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
        count.unwrap_or_else(|| panic!("no count: {class}"))
    }

    /// Nothing of the image is on the node.
    async fn forget(&self) {
        let tag = format!("{REPOSITORY}:edgeloom-{}", &self.image.digest[7..39]);
        remove(&self.client, &tag).await;
        std::fs::remove_dir_all(self.site.path("state/layers")).unwrap();
    }
}

async fn trial() {
    let site = Site::new();
    let registry = Registry::start(&site);
    let network = DaemonNetwork { enter: ["nsenter", &site.entry()], tables: "--iptables=true" };
    let mut docker = PrivateDocker::start(network).expect("the lab is allowed");
    let client = docker.client().await;
    let image = publish(&client).await;
    site.configure(&docker.socket());
    site.configure_further("[layers]\nbudget = \"1GiB\"\n");
    let document: DesiredState = serde_json::from_str(DOCUMENT).unwrap();
    site.hold(&DesiredState { images: vec![image.clone()], flows: vec![], routes: vec![], ..document });
    let trial = Trial { site, client, image };

    let before = trial.sent();
    trial.site.run().says(CONVERGED);
    let once = trial.sent() - before;
    assert!(once > LAYER_BYTES as u64, "{once} bytes");
    trial.forget().await;

    let before = trial.sent();
    let agent = trial.site.run();
    while trial.sent() - before < once / 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // With SIGKILL.
    drop(agent);
    trial.site.run().says(CONVERGED);
    let killed = trial.sent() - before;
    let twice = killed.saturating_sub(once);
    println!(
        "a pull of {once} bytes, its agent killed once: {killed} bytes, {:.2}% twice",
        twice as f64 * 100.0 / once as f64
    );
    assert!(twice * 20 < once, "{twice} of {once} bytes came twice");
    drop(registry);
}

#[tokio::test]
async fn an_agent_killed_in_mid_pull_has_next_to_nothing_fetched_twice() {
    let programs = ["docker-registry", "ip", "iptables", "nft", "nsenter", "tc"];
    if edgeloom_prepare::lab_allowed(&programs) {
        tokio::time::timeout(TRIAL_MAX, trial()).await.expect("a daemon that hangs fails the test");
    }
}
