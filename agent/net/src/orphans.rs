//! Ports of the bridge whose other end nobody has any more.
//!
//! A Docker that is killed leaves the network namespaces of its containers mounted, and takes them away when it is
//! back. A mount namespace that was made meanwhile (`ip netns exec`, a service with a private one) keeps them
//! alive, and the interface in there goes on answering with a task's address, although nothing runs behind it.
//!
//! In: the bridge, how many containers are on it, and Docker's process. Out: the ports that were removed. Invariant:
//! a port stays if its other end is in a namespace that has a process or that Docker has mounted, as it has before
//! it puts a container's port on the bridge.

use crate::kernel::KernelError;
use crate::netlink::link::{self, Port};
use crate::netlink::message::Message;
use crate::netlink::namespace;
use crate::netlink::socket::Connection;
use netlink_sys::protocols::NETLINK_ROUTE;
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Removes them, and says which; `docker` are the processes that may be Docker's.
pub fn remove_orphans(bridge: &str, containers: usize, docker: &[i32]) -> Result<Vec<String>, KernelError> {
    let mut connection = Connection::open(NETLINK_ROUTE)?;
    let ports = link::ports(&mut connection, bridge)?;
    if ports.len() <= containers {
        return Ok(Vec::new());
    }
    let used = used(&mut connection, docker)?;
    let mut removed = Vec::new();
    for port in ports.into_iter().filter(|port| port.namespace.is_some_and(|id| !used.contains(&id))) {
        removed.extend(remove(&mut connection, port)?);
    }
    Ok(removed)
}

/// None if it went by itself.
fn remove(connection: &mut Connection<Message>, port: Port) -> Result<Option<String>, KernelError> {
    match link::remove_index(connection, port.index) {
        Ok(()) => Ok(Some(port.name)),
        Err(error) if error.is_gone() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Namespaces that somebody is in, or that Docker holds.
fn used(connection: &mut Connection<Message>, docker: &[i32]) -> Result<BTreeSet<i32>, KernelError> {
    let mut used = BTreeSet::new();
    for mount in
        docker.iter().map(|pid| mounts(*pid)).collect::<io::Result<Vec<_>>>().map_err(KernelError::Io)?
    {
        for mount in mount {
            let Some(file) = mount.open().map_err(KernelError::Io)? else { continue };
            used.extend(namespace::id_of_file(connection, file.as_fd())?);
        }
    }
    for entry in std::fs::read_dir("/proc").map_err(KernelError::Io)?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        used.extend(namespace::id_of_process(connection, pid)?);
    }
    Ok(used)
}

/// A namespace that a process sees mounted.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    pid: i32,
    inode: u64,
    path: PathBuf,
}

impl Mount {
    /// By this process's own view, if it is the same there; root may take the other's. None if it has gone. One that
    /// cannot be opened is an error, since nothing that may be in use is removed.
    fn open(&self) -> io::Result<Option<File>> {
        let theirs = Path::new("/proc").join(self.pid.to_string()).join("root");
        let theirs = theirs.join(self.path.strip_prefix("/").unwrap_or(&self.path));
        let is_it = |file: &File| file.metadata().is_ok_and(|found| found.ino() == self.inode);
        if let Some(own) = File::open(&self.path).ok().filter(is_it) {
            return Ok(Some(own));
        }
        match File::open(theirs) {
            Ok(file) => Ok(Some(file).filter(is_it)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn mounts(pid: i32) -> io::Result<Vec<Mount>> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/mountinfo"))?;
    Ok(text.lines().filter_map(|line| mount(pid, line)).collect())
}

/// A line of mountinfo, proc_pid_mountinfo(5), if it is of a network namespace: `net:[INODE]` at field 4, the mount
/// point after it, and the type after a hyphen.
fn mount(pid: i32, line: &str) -> Option<Mount> {
    let (fields, kind) = line.split_once(" - ")?;
    let mut fields = fields.split(' ').skip(3);
    let inode = fields.next()?.strip_prefix("net:[")?.strip_suffix(']')?.parse().ok()?;
    let path = unescaped(fields.next()?)?.into();
    kind.starts_with("nsfs ").then_some(Mount { pid, inode, path })
}

/// Blanks and their like are three octal digits.
fn unescaped(text: &str) -> Option<String> {
    let mut parts = text.split('\\');
    let mut whole = parts.next()?.to_owned();
    for part in parts {
        let code = u8::from_str_radix(part.get(..3)?, 8).ok()?;
        whole.push(char::from(code));
        whole.push_str(&part[3..]);
    }
    Some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_of_network_namespaces_are_told_from_others() {
        let line = "88 24 0:4 net:[4026532290] /run/docker/netns/my\\040own rw shared:9 - nsfs nsfs rw";
        let path = "/run/docker/netns/my own".into();
        assert_eq!(mount(7, line), Some(Mount { pid: 7, inode: 4_026_532_290, path }));
        for other in [
            "88 24 0:4 mnt:[4026532290] /run/x rw - nsfs nsfs rw",
            "88 24 0:4 net:[4026532290] /run/x rw - ext4 /dev/sda1 rw",
            "88 24 0:4 net:[x] /run/x rw - nsfs nsfs rw",
            "88 24 0:4 / / rw - ext4 /dev/sda1 rw",
            "",
        ] {
            assert_eq!(mount(7, other), None, "{other}");
        }
    }
}
