//! What a real containerd keeps is what is read of it.

use edgeloom_common::report::LayerInventory;
use edgeloom_observe::layers::{LayersError, Stored, read_content};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Ended on drop.
struct Containerd {
    daemon: Child,
    folder: tempfile::TempDir,
}

impl Containerd {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        let config = format!(
            "version = 2\nroot = {:?}\nstate = {:?}\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n\
             [grpc]\naddress = {:?}\n[ttrpc]\naddress = {:?}\n",
            at("root"),
            at("state"),
            at("socket"),
            at("ttrpc")
        );
        std::fs::write(at("config.toml"), config).unwrap();
        let daemon = Command::new("setpriv")
            .args([
                "--pdeathsig",
                "KILL",
                "containerd",
                "--config",
                &at("config.toml"),
                "--log-level",
                "error",
            ])
            .spawn()
            .unwrap();
        let mut containerd = Self { daemon, folder };
        while !containerd.ctr(&["version"], b"") {
            assert!(containerd.daemon.try_wait().unwrap().is_none(), "containerd ended");
            std::thread::sleep(Duration::from_millis(100));
        }
        containerd
    }

    fn root(&self) -> std::path::PathBuf {
        self.folder.path().join("root")
    }

    fn ctr(&self, words: &[&str], input: &[u8]) -> bool {
        let mut ctr = Command::new("ctr")
            .arg("--address")
            .arg(self.folder.path().join("socket"))
            .args(["--namespace", "moby"])
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // One that does not read has failed already.
        let _ = ctr.stdin.take().unwrap().write_all(input);
        ctr.wait().unwrap().success()
    }
}

impl Drop for Containerd {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

/// As `sha256sum` counts it.
fn digest(file: &Path) -> String {
    let told = Command::new("sha256sum").arg(file).output().unwrap().stdout;
    format!("sha256:{}", String::from_utf8(told).unwrap().split(' ').next().unwrap())
}

#[test]
fn blobs_are_seen_when_they_are_whole_and_until_they_are_removed() {
    // `ctr` comes with containerd.
    if !edgeloom_prepare::lab_allowed(&["containerd", "setpriv"]) {
        return;
    }
    let containerd = Containerd::start();
    assert!(matches!(read_content(&containerd.folder.path().join("none")), Err(LayersError::Layout { .. })));
    let blob = b"a layer".as_slice();
    let file = containerd.folder.path().join("blob");
    std::fs::write(&file, blob).unwrap();
    let digest = digest(&file);
    let ingest = |name: &str, text: &[u8]| {
        let words = ["content", "ingest", "--expected-digest", &digest, "--expected-size", "7", name];
        containerd.ctr(&words, text)
    };
    assert!(!ingest("half", &blob[..3]), "half of it is no blob");
    assert_eq!(read_content(&containerd.root()).unwrap().layers, LayerInventory::default());
    assert!(ingest("whole", blob));
    let Stored { layers, bytes } = read_content(&containerd.root()).unwrap();
    assert_eq!((layers.known_digests.as_slice(), bytes.0), ([digest.clone()].as_slice(), 7));
    assert!(containerd.ctr(&["content", "rm", &digest], b""));
    // Its garbage is collected a moment later.
    while read_content(&containerd.root()).unwrap() != Stored::default() {
        std::thread::sleep(Duration::from_millis(100));
    }
}
