//! `edgeloom secret` and `edgeloom registry`: what jobs and pulls are given; no value is ever shown.

use crate::arguments::{RegistryCommand, SecretCommand};
use crate::client::Client;
use crate::commands::Printer;
use crate::error::Error;
use crate::table::Table;
use edgeloom_common::confidential::{
    LOGIN_TEXT_MAX, Login, RegistryList, RegistryView, SecretList, SecretView, VALUE_MAX,
};
use edgeloom_common::secret::Secret;
use std::io::{self, Read};
use std::path::Path;
use zeroize::Zeroizing;

pub(crate) fn secret(client: &Client, printer: &Printer, command: SecretCommand) -> Result<(), Error> {
    match command {
        SecretCommand::Create { name, file, replace } => {
            let value = value(&file, VALUE_MAX)?;
            let path = format!("/v1/secrets/{name}?replace={replace}");
            let view: SecretView = client.put(&path, &value)?;
            printer.print(&view, |view| format!("secret {}: {} bytes kept\n", view.name, view.bytes))
        }
        SecretCommand::List => printer.print(&client.fetch::<SecretList>("/v1/secrets")?, secrets),
        SecretCommand::Remove { name } => client.remove(&format!("/v1/secrets/{name}")),
    }
}

pub(crate) fn registry(client: &Client, printer: &Printer, command: RegistryCommand) -> Result<(), Error> {
    match command {
        RegistryCommand::Login { registry, username, .. } => {
            let login = Login { username, password: password()? };
            let view: RegistryView = client.put_json(&format!("/v1/registries/{registry}"), &login)?;
            printer.print(&view, |view| format!("{}: logged in as {}\n", view.registry, view.username))
        }
        RegistryCommand::List => printer.print(&client.fetch::<RegistryList>("/v1/registries")?, registries),
        RegistryCommand::Logout { registry } => client.remove(&format!("/v1/registries/{registry}")),
    }
}

/// One byte more than is allowed is read, so that the controller refuses what is too long.
fn value(file: &Path, max: usize) -> Result<Zeroizing<Vec<u8>>, Error> {
    let read = || {
        // Room for all of it: a buffer that grows leaves copies behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(max + 2));
        let limit = max as u64 + 1;
        if file.as_os_str() == "-" {
            io::stdin().lock().take(limit).read_to_end(&mut bytes)?;
        } else {
            std::fs::File::open(file)?.take(limit).read_to_end(&mut bytes)?;
        }
        Ok(bytes)
    };
    read().map_err(|source| Error::Input { path: file.to_owned(), source })
}

/// Standard input without the end of its line.
fn password() -> Result<Secret, Error> {
    let bytes = value(Path::new("-"), LOGIN_TEXT_MAX)?;
    let text = std::str::from_utf8(&bytes).map_err(io::Error::other);
    let text = text.map_err(|source| Error::Input { path: "-".into(), source })?;
    let line = text.strip_suffix('\n').unwrap_or(text);
    Ok(line.strip_suffix('\r').unwrap_or(line).to_owned().into())
}

fn secrets(list: &SecretList) -> String {
    let mut table = Table::new(["NAME", "BYTES", "USED BY"]);
    for secret in &list.secrets {
        let used: Vec<_> = secret.used_by.iter().map(ToString::to_string).collect();
        let used = if used.is_empty() { "-".to_owned() } else { used.join(",") };
        table.row([secret.name.to_string(), secret.bytes.to_string(), used]);
    }
    table.text()
}

fn registries(list: &RegistryList) -> String {
    let mut table = Table::new(["REGISTRY", "USER"]);
    for registry in &list.registries {
        table.row([registry.registry.to_string(), registry.username.clone()]);
    }
    table.text()
}
