//! What administrators do at the command line: trusting, beginning, logging in.

use super::*;

#[test]
fn the_command_line_trusts_no_other_authority_than_its_own() {
    if !own_network() {
        return;
    }
    // Even the name of the cluster is the same.
    let (master, elsewhere) = (Master::start("home"), Master::start("home"));
    let asked = Command::new(COMMAND_LINE)
        .args(["--server", &format!("https://{}", master.api), "nodes"])
        .env("EDGELOOM_CONTEXT", elsewhere.context())
        .env("EDGELOOM_CA", ca_of(&elsewhere))
        .env("EDGELOOM_TOKEN", "ela1.000000000000.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
        .output()
        .unwrap();
    assert!(!asked.status.success() && errors(&asked).contains("cannot reach"), "{}", errors(&asked));
}

#[test]
fn init_makes_the_authority_once_and_prints_no_secret() {
    let folder = configure("home", [0, 0]);
    let init = || {
        let config = folder.path().join("controller.toml");
        let output = Command::new(DAEMON).args(["init", "--config"]).arg(config).output().unwrap();
        assert!(output.status.success(), "{}", errors(&output));
        errors(&output) + std::str::from_utf8(&output.stdout).unwrap()
    };
    let said = init();
    let context = folder.path().join("state/identity/admin.json");
    let made = std::fs::read_to_string(&context).unwrap();
    let token: Value = serde_json::from_str(&made).unwrap();
    let secret = token["token"].as_str().unwrap().rsplit('.').next().unwrap();
    assert!(said.contains(context.to_str().unwrap()) && !said.contains(secret), "{said}");
    init();
    assert_eq!(std::fs::read_to_string(&context).unwrap(), made);
    assert!(is_private(&context));
}

/// The authorities of a master as a file.
fn ca_of(master: &Master) -> PathBuf {
    let context: Value = serde_json::from_slice(&std::fs::read(master.context()).unwrap()).unwrap();
    let path = master.folder.path().join("ca.pem");
    std::fs::write(&path, context["authorities"].as_str().unwrap()).unwrap();
    path
}

#[test]
fn a_login_is_kept_private_and_its_token_goes_to_no_other_server() {
    if !own_network() {
        return;
    }
    let (master, elsewhere) = (Master::start("home"), Master::start("away"));
    let token = master.token(&["--api", "read", "--note", "dashboard"]);
    let kept = master.folder.path().join("user/context.json");
    let server = format!("https://{}", master.api);
    let user = |arguments: &[&str]| {
        let mut command = Command::new(COMMAND_LINE);
        command.args(arguments).env("EDGELOOM_CONTEXT", &kept);
        command
    };
    let login = user(&["--server", &server, "login"])
        .env("EDGELOOM_TOKEN", token.expose())
        .env("EDGELOOM_CA", ca_of(&master))
        .output()
        .unwrap();
    assert!(login.status.success(), "{}", errors(&login));
    assert!(is_private(&kept));
    let nodes = user(&["nodes"]).output().unwrap();
    assert!(nodes.status.success(), "{}", errors(&nodes));
    let more = user(&["token", "list"]).output().unwrap();
    assert!(errors(&more).contains("scope admin"), "{}", errors(&more));
    let other = format!("https://{}", elsewhere.api);
    let other = user(&["--server", &other, "nodes"]).env("EDGELOOM_CA", ca_of(&elsewhere)).output().unwrap();
    assert!(errors(&other).contains("shows no token"), "{}", errors(&other));
    let listed = master.edgeloom(&["token", "list"]);
    assert!(listed.contains("api read") && listed.contains("dashboard"), "{listed}");
    assert!(!listed.contains(token.expose().rsplit('.').next().unwrap()));
}

fn is_private(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777 == 0o600
}
