//! Gives back pages of the program's own code and constants.
//!
//! The kernel maps code in blocks round every page that is used, and keeps it mapped. Most of it serves the start
//! (configuration, keys, databases) or seldom things (pulls, recovery). Twice a minute all of it is unmapped; what is
//! used comes back from the page cache by a fault a block, some microseconds in all, and the rest is memory that the
//! node's tasks may have.

use std::ffi::c_void;
use std::path::Path;
use std::time::Duration;

const PERIOD: Duration = Duration::from_secs(30);

/// Gives back code and constants, for ever.
pub(crate) async fn give_back() {
    loop {
        tokio::time::sleep(PERIOD).await;
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
        let Ok(program) = std::fs::read_link("/proc/self/exe") else { continue };
        for (start, length) in unwritten(&smaps, &program) {
            unmap(start, length);
        }
    }
}

/// Start and length of the program's mappings that cannot be written and never were, as what a loader writes
/// before it takes the right away, proc_pid_smaps(5).
fn unwritten(smaps: &str, program: &Path) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut last = None;
    for line in smaps.lines() {
        match line.strip_prefix("Anonymous:").map(str::trim) {
            Some("0 kB") => found.extend(last.take()),
            Some(_) => last = None,
            None if line.contains('-') => last = mapping(line, program),
            None => {}
        }
    }
    found
}

/// Of a mapping of the program that is private and not writable.
fn mapping(line: &str, program: &Path) -> Option<(usize, usize)> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let is_fixed = matches!(words.next()?, "r-xp" | "r--p");
    let path = words.nth(3)?;
    let [start, end] = [start, end].map(|address| usize::from_str_radix(address, 16).ok());
    (is_fixed && Path::new(path) == program).then_some((start?, end?.checked_sub(start?)?))
}

#[expect(unsafe_code, reason = "no safe wrapper of madvise(2) can know that pages are never written")]
fn unmap(start: usize, length: usize) {
    let start = std::ptr::with_exposed_provenance_mut::<c_void>(start);
    // SAFETY: these pages are private, not writable and none is anonymous, so they are the file's, which cannot be
    // written while it runs (ETXTBSY): whatever touches them next finds the same bytes.
    if let Err(error) = unsafe { rustix::mm::madvise(start, length, rustix::mm::Advice::LinuxDontNeed) } {
        tracing::debug!(%error, "code is not given back");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = "\
55d0000-55d2000 r--p 00000000 fe:00 12 /usr/bin/edgeloom-agent
Rss:                   8 kB
Anonymous:             0 kB
VmFlags: rd mr mw me dw sd
55d2000-55d5000 r-xp 00002000 fe:00 12 /usr/bin/edgeloom-agent
Anonymous:             0 kB
55d5000-55d6000 r--p 00005000 fe:00 12 /usr/bin/edgeloom-agent
Anonymous:             4 kB
55d6000-55d7000 rw-p 00006000 fe:00 12 /usr/bin/edgeloom-agent
Anonymous:             0 kB
7f00000-7f01000 r-xp 00000000 fe:00 13 /usr/lib/libc.so.6
Anonymous:             0 kB
7f02000-7f03000 r-xp 00000000 00:00 0 [vdso]
Anonymous:             0 kB
7f03000-7f04000 rw-p 00000000 00:00 0
Anonymous:             0 kB
";

    #[test]
    fn only_what_the_program_never_wrote_is_given_back() {
        let own = unwritten(SMAPS, Path::new("/usr/bin/edgeloom-agent"));
        assert_eq!(own, [(0x55d_0000, 0x2000), (0x55d_2000, 0x3000)]);
        assert_eq!(unwritten(SMAPS, Path::new("/usr/bin/other")), []);
        assert_eq!(unwritten("nothing that reads\n-\nAnonymous:  0 kB\n", Path::new("/")), []);
    }

    #[test]
    fn a_program_goes_on_without_its_code_in_memory() {
        let program = std::fs::read_link("/proc/self/exe").unwrap();
        let own = || unwritten(&std::fs::read_to_string("/proc/self/smaps").unwrap(), &program);
        let before = own();
        assert!(2 <= before.len(), "code and constants: {before:?}");
        before.iter().for_each(|(start, length)| unmap(*start, *length));
        assert_eq!(own(), before);
    }
}
