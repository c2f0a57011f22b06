//! `edgeloom token`, `node`, `authority` and `login`: who may do what.

use crate::arguments::{AuthorityCommand, NodeCommand, TokenCommand};
use crate::client::Client;
use crate::commands::Printer;
use crate::context::{self, Target};
use crate::error::Error;
use crate::table::Table;
use edgeloom_common::join::{
    AuthorityView, RevokedView, TokenCreated, TokenList, TokenPurpose, TokenRequest, TokenView,
};
use edgeloom_common::view::{ForgottenView, NodeList};
use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) fn token(client: &Client, printer: &Printer, command: TokenCommand) -> Result<(), Error> {
    match command {
        TokenCommand::Create { api, nodes, uses, replace, lifetime, note } => {
            let purpose = match api {
                Some(scope) => TokenPurpose::Api { scope: scope.into() },
                None => TokenPurpose::Join { nodes, uses, replace },
            };
            let request = TokenRequest { purpose, note, lifetime_s: lifetime };
            let created: TokenCreated = client.post_json("/v1/tokens", &request)?;
            // The token alone, so that a shell can take it as it is.
            printer.print(&created, |created| format!("{}\n", created.text.expose()))
        }
        TokenCommand::List => printer.print(&client.fetch::<TokenList>("/v1/tokens")?, list),
        TokenCommand::Revoke { id } => client.remove(&format!("/v1/tokens/{id}")),
    }
}

pub(crate) fn node(client: &Client, printer: &Printer, command: NodeCommand) -> Result<(), Error> {
    match command {
        NodeCommand::Revoke { name } => {
            let revoked: RevokedView = client.delete(&format!("/v1/nodes/{name}/certificate"))?;
            printer.print(&revoked, |revoked| {
                format!("node {}: {} certificate(s) revoked\n", revoked.node, revoked.serials.len())
            })
        }
        NodeCommand::Forget { name } => {
            let forgotten: ForgottenView = client.delete(&format!("/v1/nodes/{name}"))?;
            printer.print(&forgotten, told_of_forgotten)
        }
    }
}

fn told_of_forgotten(view: &ForgottenView) -> String {
    let mut text =
        format!("node {} is forgotten, {} certificate(s) revoked\n", view.node, view.serials.len());
    if !view.may_run.is_empty() {
        let names: Vec<_> = view.may_run.iter().map(|it| format!("{}/{}", it.job, it.task)).collect();
        let names = names.join(", ");
        text += &format!("it may still run {names}; `edgeloom-agent purge` there removes all that is ours\n");
    }
    text
}

pub(crate) fn authority(
    (client, target): (&Client, &Target),
    printer: &Printer,
    command: &AuthorityCommand,
) -> Result<(), Error> {
    match command {
        AuthorityCommand::Show => {
            let authorities = target.authorities.as_deref().ok_or(Error::NoAuthority)?;
            Ok(io::stdout().write_all(authorities.as_bytes())?)
        }
        AuthorityCommand::Rotate => {
            let view: AuthorityView = client.post_json("/v1/authority", &())?;
            printer.print(&view, |view| {
                let waiting = view.nodes_waiting.len();
                format!("a second authority signs from now on; {waiting} node(s) renew at it by themselves\n")
            })
        }
    }
}

/// Keeps what works.
pub(crate) fn login(client: &Client, target: Target) -> Result<(), Error> {
    if target.token.is_none() {
        return Err(Error::NoToken);
    }
    client.fetch::<NodeList>("/v1/nodes")?;
    let path = context::keep(target)?;
    Ok(writeln!(io::stdout(), "kept in {}", path.display())?)
}

fn list(list: &TokenList) -> String {
    let mut table = Table::new(["ID", "FOR", "USED BY", "EXPIRES", "NOTE"]);
    for token in &list.tokens {
        table.row(row(token));
    }
    table.text()
}

fn row(token: &TokenView) -> [String; 5] {
    let purpose = match &token.purpose {
        TokenPurpose::Api { scope } => format!("api {}", scope.word()),
        TokenPurpose::Join { nodes, uses, replace } => {
            let names: Vec<_> = nodes.iter().map(ToString::to_string).collect();
            let names = if names.is_empty() { "any node".to_owned() } else { names.join(",") };
            let replacing = if *replace { ", replacing" } else { "" };
            format!("joining: {names}, {uses} use(s){replacing}")
        }
    };
    let used: Vec<_> = token.used_by.iter().map(ToString::to_string).collect();
    let used = if used.is_empty() { "-".to_owned() } else { used.join(",") };
    [token.id.to_string(), purpose, used, expiry(token.expires_s), token.note.clone()]
}

fn expiry(expires_s: Option<u64>) -> String {
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    match expires_s.map(|end| end.checked_sub(now_s)) {
        None => "never".to_owned(),
        Some(None | Some(0)) => "expired".to_owned(),
        Some(Some(left)) if left < 7200 => format!("in {} min", left.div_ceil(60)),
        Some(Some(left)) if left < 172_800 => format!("in {} h", left / 3600),
        Some(Some(left)) => format!("in {} d", left / 86_400),
    }
}
