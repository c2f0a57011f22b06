//! Gives back pages of the program's own code.
//!
//! The kernel maps code in blocks round every page that is used, and keeps it mapped. Most of it serves the start
//! (configuration, keys, databases) or seldom things (pulls, recovery). Once a minute all of it is unmapped; what is
//! used comes back from the page cache by a fault a block, some microseconds in all, and the rest is memory that the
//! node's tasks may have.

use std::ffi::c_void;
use std::path::Path;
use std::time::Duration;

const PERIOD: Duration = Duration::from_secs(60);

/// Gives back code each minute, for ever.
pub(crate) async fn give_back() {
    loop {
        tokio::time::sleep(PERIOD).await;
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let Ok(program) = std::fs::read_link("/proc/self/exe") else { continue };
        for (start, length) in code(&maps, &program) {
            unmap(start, length);
        }
    }
}

/// Start and length of the program's mappings that are executable, private and never written, proc(5).
fn code(maps: &str, program: &Path) -> Vec<(usize, usize)> {
    let mapping = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let is_code = words.next()? == "r-xp";
        let path = words.nth(3)?;
        let [start, end] = [start, end].map(|address| usize::from_str_radix(address, 16).ok());
        (is_code && Path::new(path) == program).then_some((start?, end?.checked_sub(start?)?))
    };
    maps.lines().filter_map(mapping).collect()
}

#[expect(unsafe_code, reason = "no safe wrapper of madvise(2) can know that pages are never written")]
fn unmap(start: usize, length: usize) {
    let start = std::ptr::with_exposed_provenance_mut::<c_void>(start);
    // SAFETY: these pages are private and not writable, so they are the file's, which cannot be written while it
    // runs (ETXTBSY): whatever touches them next finds the same bytes.
    if let Err(error) = unsafe { rustix::mm::madvise(start, length, rustix::mm::Advice::LinuxDontNeed) } {
        tracing::debug!(%error, "code is not given back");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
55d0000-55d2000 r--p 00000000 fe:00 12 /usr/bin/edgeloom-agent
55d2000-55d5000 r-xp 00002000 fe:00 12 /usr/bin/edgeloom-agent
55d5000-55d6000 r--p 00005000 fe:00 12 /usr/bin/edgeloom-agent
55d6000-55d7000 rw-p 00006000 fe:00 12 /usr/bin/edgeloom-agent
7f00000-7f01000 r-xp 00000000 fe:00 13 /usr/lib/libc.so.6
7f02000-7f03000 r-xp 00000000 00:00 0 [vdso]
7f03000-7f04000 rw-p 00000000 00:00 0
";

    #[test]
    fn only_the_programs_code_is_given_back() {
        assert_eq!(code(MAPS, Path::new("/usr/bin/edgeloom-agent")), [(0x55d_2000, 0x3000)]);
        assert_eq!(code(MAPS, Path::new("/usr/bin/other")), []);
        assert_eq!(code("nothing that reads\n-\n", Path::new("/")), []);
    }

    #[test]
    fn a_program_goes_on_without_its_code_in_memory() {
        let program = std::fs::read_link("/proc/self/exe").unwrap();
        let own = || code(&std::fs::read_to_string("/proc/self/maps").unwrap(), &program);
        let before = own();
        assert!(!before.is_empty());
        before.iter().for_each(|(start, length)| unmap(*start, *length));
        assert_eq!(own(), before);
    }
}
