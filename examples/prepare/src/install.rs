//! Programs that are missing, from Debian's packages, without the services that come with them.

use crate::{Missing, PrepareError, asked, file_error, is_root};
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Held while installing: the tests of several packages run as processes side by side.
const LOCK: &str = "/run/edgeloom-prepare.lock";
/// Debian asks it whether a service may be started; 101 says no (invoke-rc.d(8)).
const POLICY: &str = "/usr/sbin/policy-rc.d";
/// Its text tells an own file, left by a run that was killed, from the administrator's.
const POLICY_TEXT: &str = "#!/bin/sh\n# edgeloom-prepare\nexit 101\n";
/// Where Debian puts root's programs, which PATH lacks after a plain `su`.
const ROOTS_FOLDERS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Program and package.
type Listed<'a> = (&'a str, &'a str);

/// Installs those of `wanted` that are not there, unless that is forbidden.
pub(crate) fn programs(wanted: &[&str], listed: &[Listed<'_>]) -> Result<(), PrepareError> {
    if let Some(missing) = missing(wanted, listed)? {
        if asked("EDGELOOM_NO_INSTALL") {
            return Err(PrepareError::Forbidden(missing));
        }
        if !is_root() {
            return Err(PrepareError::NotRoot(missing));
        }
        let lock = File::create(LOCK).map_err(file_error(Path::new(LOCK)))?;
        lock.lock().map_err(file_error(Path::new(LOCK)))?;
        install_rest(wanted, listed)?;
    }
    Ok(())
}

/// What is missing still, now that the lock is ours.
fn install_rest(wanted: &[&str], listed: &[Listed<'_>]) -> Result<(), PrepareError> {
    let Some(absent) = missing(wanted, listed)? else { return Ok(()) };
    eprintln!("installing {}", absent.packages.join(" "));
    let _policy = Policy::refuse_services()?;
    apt(&["update", "-q"])?;
    let packages = absent.packages.iter().map(String::as_str);
    let words = ["install", "-q", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300"];
    apt(&words.into_iter().chain(packages).collect::<Vec<_>>())?;
    missing(wanted, listed)?.map_or(Ok(()), |missing| Err(PrepareError::StillMissing(missing)))
}

fn missing(wanted: &[&str], listed: &[Listed<'_>]) -> Result<Option<Missing>, PrepareError> {
    let mut missing = Missing { programs: Vec::new(), packages: Vec::new() };
    for program in wanted {
        let found = listed.iter().find(|(listed, _)| listed == program);
        let (_, package) = found.ok_or_else(|| PrepareError::Unlisted { program: (*program).to_owned() })?;
        if !present(program)? {
            missing.programs.push((*program).to_owned());
            missing.packages.push((*package).to_owned());
        }
    }
    missing.packages.sort_unstable();
    missing.packages.dedup();
    Ok((!missing.programs.is_empty()).then_some(missing))
}

fn present(program: &str) -> Result<bool, PrepareError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|folder| folder.join(program).exists()) {
        return Ok(true);
    }
    match ROOTS_FOLDERS.into_iter().find(|folder| Path::new(folder).join(program).exists()) {
        Some(folder) => Err(PrepareError::NotOnPath { program: program.to_owned(), folder }),
        None => Ok(false),
    }
}

/// Debian starts services as it installs them, not while this lives; the lab and the tests run their own.
struct Policy {
    ours: bool,
}

impl Policy {
    fn refuse_services() -> Result<Self, PrepareError> {
        let path = Path::new(POLICY);
        let ours = fs::read(path).map_or(!path.exists(), |text| text == POLICY_TEXT.as_bytes());
        if ours {
            fs::write(path, POLICY_TEXT).map_err(file_error(path))?;
            fs::set_permissions(path, Permissions::from_mode(0o755)).map_err(file_error(path))?;
        }
        Ok(Self { ours })
    }
}

impl Drop for Policy {
    fn drop(&mut self) {
        if self.ours
            && let Err(error) = fs::remove_file(POLICY)
        {
            eprintln!("{POLICY}: {error}; it keeps Debian from starting services: remove it");
        }
    }
}

fn apt(words: &[&str]) -> Result<(), PrepareError> {
    let status = Command::new("apt-get")
        .args(words)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdout(std::io::stderr())
        .status()
        .map_err(|source| PrepareError::AptMissing { source })?;
    if status.success() {
        return Ok(());
    }
    Err(PrepareError::Apt { words: words.join(" "), status })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTED: [Listed<'_>; 4] = [
        ("sh", "dash"),
        ("edgeloom-absent-b", "edgeloom-absent"),
        ("edgeloom-absent-a", "edgeloom-absent"),
        ("edgeloom-absent-c", "another-absent"),
    ];

    #[test]
    fn programs_that_are_there_are_not_missing() {
        assert_eq!(missing(&["sh"], &LISTED).unwrap(), None);
        programs(&["sh"], &LISTED).unwrap();
    }

    #[test]
    fn each_package_of_the_missing_programs_is_named_once() {
        let wanted = ["sh", "edgeloom-absent-b", "edgeloom-absent-a", "edgeloom-absent-c"];
        let missing = missing(&wanted, &LISTED).unwrap().unwrap();
        assert_eq!(missing.programs, wanted[1..]);
        assert_eq!(missing.packages, ["another-absent", "edgeloom-absent"]);
    }

    #[test]
    fn a_program_without_a_package_is_told() {
        let error = programs(&["edgeloom-unlisted"], &LISTED).unwrap_err();
        assert!(matches!(error, PrepareError::Unlisted { program } if program == "edgeloom-unlisted"));
    }

    #[test]
    fn with_installing_forbidden_what_is_missing_is_named() {
        const NAME: &str = "install::tests::with_installing_forbidden_what_is_missing_is_named";
        if !asked("EDGELOOM_NO_INSTALL") {
            return run_again(NAME, "EDGELOOM_NO_INSTALL", "1");
        }
        let error = programs(&["sh", "edgeloom-absent-a"], &LISTED).unwrap_err();
        assert!(matches!(error, PrepareError::Forbidden(_)), "{error}");
        let text = error.to_string();
        assert!(text.contains("missing: edgeloom-absent-a (Debian packages: edgeloom-absent)"), "{text}");
    }

    #[test]
    fn a_program_that_path_does_not_reach_is_told() {
        const NAME: &str = "install::tests::a_program_that_path_does_not_reach_is_told";
        if std::env::var_os("PATH").is_some_and(|path| path != "/nowhere") {
            return run_again(NAME, "PATH", "/nowhere");
        }
        // Every Debian has it, in a folder of root's.
        let error = programs(&["ldconfig"], &[("ldconfig", "libc-bin")]).unwrap_err();
        assert!(matches!(error, PrepareError::NotOnPath { .. }), "{error}");
    }

    /// Runs a test of this program in a process of its own, whose environment can be set.
    fn run_again(test: &str, variable: &str, value: &str) {
        let mut again = Command::new(std::env::current_exe().unwrap());
        let output = again.args(["--exact", test]).env(variable, value).output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && told.contains("1 passed"), "{told}");
    }
}
