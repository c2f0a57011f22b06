//! `edgeloom logs`: as the log comes; followed, it goes on where it was when the controller comes back.
//!
//! Lines of a followed log come with the times at which the nodes took them: what was printed before a cut is known
//! by them, and comes once. In: the stream. Out: its lines, with their times only where those were asked for.

use crate::client::{Client, LogSelection};
use crate::error::Error;
use crate::patience::Patience;
use crate::usage::moment;
use edgeloom_common::view::{JobView, NodeList};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Length of a time: `2026-11-22T06:00:00.123456789Z`.
const TIME: usize = 30;
/// Nodes come back to a restarted controller within seconds; the log of one that does not is given up.
const NODES_LIMIT: Duration = Duration::from_secs(30);
const NODES_INTERVAL: Duration = Duration::from_millis(500);

/// Copies the log to standard output.
pub(crate) fn logs(client: &Client, selection: LogSelection<'_>) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    if !selection.follow {
        return copy(client.logs(&selection)?, &mut out);
    }
    let mut reader =
        Reader { prefixed: selection.task.is_none(), times: selection.timestamps, ..Reader::default() };
    let (mut patience, mut wanted) = (Patience::default(), LogSelection { timestamps: true, ..selection });
    let mut stream = client.logs(&wanted)?;
    loop {
        match reader.copy(stream, &mut out)? {
            Ending::Whole => return Ok(()),
            Ending::Cut(reason) => patience.bear(client.cut_off(&reason))?,
        }
        patience.until_answered(|| nodes_of(client, &wanted))?;
        reader.resume();
        wanted.since_s = reader.since_s();
        // Of a task that has said something, all that came after it; of others what was asked for first.
        wanted.tail = selection.tail.filter(|_| wanted.since_s.is_none());
        stream = patience.until_answered(|| client.logs(&wanted))?;
    }
}

fn copy(mut stream: impl Read, out: &mut impl Write) -> Result<(), Error> {
    let mut chunk = vec![0; 16 * 1024];
    loop {
        let read = stream.read(&mut chunk)?;
        if read == 0 {
            return Ok(());
        }
        out.write_all(&chunk[..read])?;
        out.flush()?;
    }
}

/// Waits until the nodes of the job's tasks are there, or for long enough.
fn nodes_of(client: &Client, selection: &LogSelection<'_>) -> Result<(), Error> {
    let begun = Instant::now();
    loop {
        let view: JobView = client.fetch(&format!("/v1/jobs/{}", selection.job))?;
        let nodes: NodeList = client.fetch("/v1/nodes")?;
        let online: BTreeSet<_> =
            nodes.nodes.iter().filter(|node| node.online).map(|node| &node.name).collect();
        let mut tasks =
            view.tasks.iter().filter(|task| selection.task.is_none_or(|wanted| task.name == *wanted));
        if tasks.all(|task| online.contains(&task.node)) || NODES_LIMIT < begun.elapsed() {
            return Ok(());
        }
        sleep(NODES_INTERVAL);
    }
}

/// How a stream ended.
enum Ending {
    Whole,
    /// In the middle, for this reason.
    Cut(String),
}

/// What was printed so far.
#[derive(Default)]
struct Reader {
    /// Lines begin with the task's name.
    prefixed: bool,
    /// Their times are printed, too.
    times: bool,
    /// Each task's last time.
    last: BTreeMap<String, String>,
    /// The same when the stream began; what is not later was printed before.
    before: BTreeMap<String, String>,
}

impl Reader {
    fn resume(&mut self) {
        self.before.clone_from(&self.last);
    }

    /// From where on everything is needed again, in whole seconds since 1970.
    fn since_s(&self) -> Option<u64> {
        let earliest = self.last.values().min()?;
        Some(moment::at(&format!("{}Z", earliest.get(..19)?))? / 1_000)
    }

    fn copy(&mut self, stream: impl Read, out: &mut impl Write) -> Result<Ending, Error> {
        let mut stream = BufReader::new(stream);
        let mut line = Vec::new();
        loop {
            line.clear();
            match stream.read_until(b'\n', &mut line) {
                Ok(0) => return Ok(Ending::Whole),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                // What came of a line comes again with the rest of it.
                Err(error) => return Ok(Ending::Cut(error.to_string())),
            }
            if let Some(text) = self.news(&line) {
                out.write_all(&text)?;
                out.flush()?;
            }
        }
    }

    /// The line as it is printed; none if it was before.
    fn news(&mut self, line: &[u8]) -> Option<Vec<u8>> {
        let (task, rest) = if self.prefixed { task(line) } else { (&[][..], line) };
        let Some((time, text)) = time(rest) else { return Some(line.to_vec()) };
        let name = String::from_utf8_lossy(task).into_owned();
        if self.before.get(&name).is_some_and(|before| time <= before.as_str()) {
            return None;
        }
        self.last.insert(name, time.to_owned());
        let time = if self.times { format!("{time} ") } else { String::new() };
        Some([task, time.as_bytes(), text].concat())
    }
}

/// `detect | ` and what follows.
fn task(line: &[u8]) -> (&[u8], &[u8]) {
    let separator = line.windows(3).position(|three| three == b" | ");
    line.split_at(separator.map_or(0, |at| at + 3))
}

/// The time that a line begins with, and the text after it; none of a line that no node sent.
fn time(line: &[u8]) -> Option<(&str, &[u8])> {
    let time = std::str::from_utf8(line.get(..TIME)?).ok()?;
    let rest = line[TIME..].strip_prefix(b" ")?;
    let is_time = time.ends_with('Z') && time.as_bytes()[10] == b'T' && time.as_bytes()[19] == b'.';
    (is_time && time.starts_with(|first: char| first.is_ascii_digit())).then_some((time, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(second: u32, text: &str) -> String {
        format!("2026-11-22T06:00:{second:02}.000000001Z {text}\n")
    }

    /// What is printed of a stream that is cut after this.
    fn printed(reader: &mut Reader, text: &str) -> String {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(ErrorKind::UnexpectedEof.into())
            }
        }
        let mut out = Vec::new();
        let ending = reader.copy(text.as_bytes().chain(Broken), &mut out).unwrap();
        assert!(matches!(ending, Ending::Cut(_)));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_line_comes_once_whatever_was_cut() {
        let mut reader = Reader::default();
        assert_eq!(
            printed(&mut reader, &(line(1, "one") + &line(2, "two") + "2026-11-22T06:00:03.0")),
            "one\ntwo\n"
        );
        assert_eq!(reader.since_s(), Some(1_795_327_202));
        reader.resume();
        assert_eq!(printed(&mut reader, &(line(2, "two") + &line(3, "two") + &line(3, "two"))), "two\ntwo\n");
    }

    #[test]
    fn each_task_goes_on_where_it_was() {
        let mut reader = Reader { prefixed: true, times: true, ..Reader::default() };
        let first = format!("a | {}b | {}edgeloom: no log of c\n", line(5, "x | y"), line(1, "z"));
        assert_eq!(printed(&mut reader, &first), first);
        assert_eq!(reader.since_s(), Some(1_795_327_201), "the earliest of them");
        reader.resume();
        let again = format!("a | {}b | {}", line(5, "x | y"), line(2, "new"));
        assert_eq!(printed(&mut reader, &again), format!("b | {}", line(2, "new")));
    }
}
