//! When a process began, by the clock that counts from the boot: nobody sets it, and it tells one run of a
//! container from the next.

use crate::cgroup::CgroupError;
use crate::cgroup::files::text;
use std::path::Path;
use std::time::Duration;

/// Ticks a second in what the kernel tells programs (`USER_HZ`), the same on every architecture we run on.
const TICK: Duration = Duration::from_millis(10);
/// Where the start stands in `stat` behind the name, which may hold anything (proc(5), field 22).
const START_FIELD: usize = 19;

/// Start of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Birth {
    /// Boot and tick of the start, as one number.
    pub(super) run: u64,
    /// How old it was when this was read.
    pub(super) age: Duration,
}

impl Birth {
    pub(super) fn of(proc: &Path, pid: u32) -> Result<Self, CgroupError> {
        let (stat, uptime) = (proc.join(pid.to_string()).join("stat"), proc.join("uptime"));
        let unread = |file: &Path, text: &str| CgroupError::Number {
            file: file.to_owned(),
            text: text.chars().take(40).collect(),
        };
        let line = text(&stat)?;
        let fields = line.rsplit_once(')').map_or("", |(_, fields)| fields);
        let ticks = fields.split_whitespace().nth(START_FIELD).and_then(|field| field.parse::<u32>().ok());
        let ticks = ticks.ok_or_else(|| unread(&stat, fields))?;
        let up = text(&uptime)?;
        let up_s = up.split_whitespace().next().and_then(|seconds| seconds.parse::<f64>().ok());
        let up_s = up_s.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let age = up_s.ok_or_else(|| unread(&uptime, &up))?.saturating_sub(TICK * ticks);
        Ok(Self { run: u64::from(boot(proc)) << 32 | u64::from(ticks), age })
    }
}

/// The first digits of the boot's random id; a kernel without one tells runs apart by their ticks alone.
fn boot(proc: &Path) -> u32 {
    let id = text(&proc.join("sys/kernel/random/boot_id")).unwrap_or_default();
    id.get(..8).and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or(0)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Of process 7 of [`write_all`].
    pub(in crate::container) const AGE: Duration = Duration::from_millis(12_340);

    /// Files of a process whose name looks like the end of it.
    pub(in crate::container) fn write_all(write: impl Fn(&str, &str)) {
        write("proc/7/stat", "7 (a) S 1 (b) S 1 7 7 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 1 0 1000 9 9");
        write("proc/uptime", "22.34 40.00");
        write("proc/sys/kernel/random/boot_id", "0000002a-1111-2222-3333-444444444444");
    }

    fn birth() -> (tempfile::TempDir, Result<Birth, CgroupError>) {
        let root = tempfile::tempdir().unwrap();
        write_all(|name, content| {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        });
        let birth = Birth::of(&root.path().join("proc"), 7);
        (root, birth)
    }

    #[test]
    fn a_run_is_known_by_boot_and_tick() {
        assert_eq!(birth().1.unwrap(), Birth { run: 42 << 32 | 1000, age: AGE });
    }

    #[test]
    fn files_that_do_not_read_are_told() {
        for file in ["7/stat", "uptime"] {
            let (root, _) = birth();
            let proc = root.path().join("proc");
            std::fs::write(proc.join(file), "x").unwrap();
            assert!(matches!(Birth::of(&proc, 7), Err(CgroupError::Number { .. })), "{file}");
        }
    }

    #[test]
    fn our_own_process_has_an_age() {
        let own = Birth::of(Path::new("/proc"), std::process::id()).unwrap();
        assert!(own.age < Duration::from_hours(1), "{own:?}");
    }
}
