//! Where the controller is and what to show it: options and environment first, then what was written down.
//!
//! A context file is private to its user. Its token goes to its own server and to no other: who names
//! another server has to give that one's token, too.

use crate::arguments::Arguments;
use crate::error::Error;
use edgeloom_common::join::Context;
use edgeloom_common::secret::Secret;
use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const SERVER: &str = "http://127.0.0.1:7070";
/// The controller's own, on the machine it runs on; root and its user can read it.
const CONTROLLERS: &str = "/var/lib/edgeloom-controller/identity/admin.json";
/// A context is a few kilobytes; so are authorities.
const FILE_MAX: u64 = 1 << 20;

/// What a client works with.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) server: String,
    pub(crate) token: Option<Secret>,
    /// PEM.
    pub(crate) authorities: Option<String>,
}

/// Puts options, environment and context together.
pub(crate) fn target(arguments: &Arguments) -> Result<Target, Error> {
    let ca = arguments.ca.as_deref().map(read).transpose()?;
    let trimmed = |server: &str| server.trim_end_matches('/').to_owned();
    let asked = arguments.server.as_deref().map(trimmed);
    let context = kept()?.filter(|kept| asked.as_ref().is_none_or(|server| *server == trimmed(&kept.server)));
    let (server, token, authorities) = match context {
        Some(Context { server, token, authorities }) => {
            (Some(trimmed(&server)), Some(token), Some(authorities))
        }
        None => (None, None, None),
    };
    Ok(Target {
        server: asked.or(server).unwrap_or_else(|| SERVER.to_owned()),
        token: arguments.token.clone().or(token),
        authorities: ca.or(authorities),
    })
}

/// Where this user's context is.
pub(crate) fn path() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("EDGELOOM_CONTEXT") {
        return Some(path.into());
    }
    let below =
        |variable: &str| std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    let config = below("XDG_CONFIG_HOME").or_else(|| Some(below("HOME")?.join(".config")))?;
    Some(config.join("edgeloom/context.json"))
}

fn kept() -> Result<Option<Context>, Error> {
    let own = path().into_iter();
    for path in own.chain([PathBuf::from(CONTROLLERS)]) {
        let text = match read(&path) {
            Ok(text) => text,
            Err(Error::Input { source, .. })
                if matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) =>
            {
                continue;
            }
            Err(error) => return Err(error),
        };
        let context = serde_json::from_str(&text);
        return context.map(Some).map_err(|_| Error::Context { path });
    }
    Ok(None)
}

fn read(path: &Path) -> Result<String, Error> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(FILE_MAX).read_to_string(&mut text));
    read.map_err(|source| Error::Input { path: path.to_owned(), source })?;
    Ok(text)
}

/// Keeps a target for this user.
pub(crate) fn keep(target: Target) -> Result<PathBuf, Error> {
    let Target { server, token: Some(token), authorities } = target else { return Err(Error::NoToken) };
    let context = Context { server, token, authorities: authorities.unwrap_or_default() };
    let path = path().ok_or(Error::NoHome)?;
    let text = serde_json::to_vec_pretty(&context).expect("a context is texts");
    write(&path, &text).map_err(|source| Error::Create { path: path.clone(), source })?;
    Ok(path)
}

fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    // A new file: one that is there may be readable by others.
    let temporary = path.with_extension("new");
    let _ = std::fs::remove_file(&temporary);
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(&temporary)?;
    file.write_all(text)?;
    file.sync_all()?;
    std::fs::rename(&temporary, path)
}
