//! Containers over time, read from a file: in a form of our own, or as the publishers of a trace give it.
//!
//! | form | columns | what counts |
//! |---|---|---|
//! | own | 4 | every line: submitted s, duration s, CPU, memory, the last two as parts of the largest machine |
//! | Google 2011, `task_events` | 13 | tasks that were submitted, scheduled and finished |
//! | Alibaba 2018, `batch_task` | 9 | tasks that terminated, each of their instances |
//!
//! Which it is is seen by the first line. The publishers' traces begin with their first task; where a sample is asked
//! for, containers are drawn from all of them.

use edgeloom_sched::batch::{Machine, Request};
use std::collections::{BTreeMap, BTreeSet};

use super::cluster::whole;
use super::trace::{Arrival, float, largest};
use crate::random::Draw;
use crate::{SimError, within};

/// The largest number of containers that a sample is drawn from, and that are simulated.
const DRAWN_FROM_MAX: usize = 100_000_000;
const CONTAINERS_MAX: usize = 1_000_000;
/// Characters of a line that an error quotes.
const EXCERPT: usize = 80;
/// Of Google's: microseconds, and codes of events.
const MICROSECONDS: f64 = 1e6;
const SUBMIT: &str = "0";
const SCHEDULE: &str = "1";
const FINISH: &str = "4";
/// Of Alibaba's: hundredths of a core, of machines with 96, and hundredths of a machine's memory.
const ALIBABA_CPU: f64 = 9600.0;
const ALIBABA_MEMORY: f64 = 100.0;
const TERMINATED: &str = "Terminated";

/// A line that is split.
struct Line<'t> {
    number: usize,
    text: &'t str,
    fields: Vec<&'t str>,
}

/// Equal containers.
#[derive(Debug, Clone, Copy)]
struct Group {
    at_s: f64,
    duration_s: f64,
    /// Of the largest machine's CPU and memory.
    parts: [f64; 2],
    count: usize,
}

#[derive(Debug, Clone, Copy)]
enum Form {
    Own,
    Google,
    Alibaba,
}

impl Line<'_> {
    fn refused(&self) -> SimError {
        SimError::Trace { line: self.number, text: self.text.chars().take(EXCERPT).collect() }
    }

    /// A number that is neither below nothing nor infinite.
    fn number(&self, field: usize) -> Result<f64, SimError> {
        let number = self.fields.get(field).and_then(|text| text.parse().ok());
        number.filter(|number| (0.0..f64::INFINITY).contains(number)).ok_or_else(|| self.refused())
    }

    fn form(&self) -> Result<Form, SimError> {
        match self.fields.len() {
            4 => Ok(Form::Own),
            13 => Ok(Form::Google),
            9 => Ok(Form::Alibaba),
            _ => Err(self.refused()),
        }
    }
}

impl Form {
    /// The column with a time, by which a head line is told from the others.
    const fn time(self) -> usize {
        match self {
            Self::Own | Self::Google => 0,
            Self::Alibaba => 5,
        }
    }
}

/// All containers, or a sample, in the order of arrival.
///
/// # Errors
/// The first line that does not read, or too many containers.
pub(super) fn read(
    text: &str,
    machines: &[Machine],
    sample: Option<(usize, &mut Draw)>,
) -> Result<Vec<Arrival>, SimError> {
    let mut groups = groups(text)?;
    groups.sort_by(|x, y| x.at_s.total_cmp(&y.at_s));
    let all: usize = groups.iter().map(|group| group.count).sum();
    within("containers of the trace", float_count(all), (0.0, float_count(DRAWN_FROM_MAX)))?;
    let chosen = sample.filter(|(wanted, _)| *wanted < all).map(|(wanted, draw)| {
        let mut chosen = BTreeSet::new();
        while chosen.len() < wanted {
            chosen.insert(draw.below(all));
        }
        chosen
    });
    let count = chosen.as_ref().map_or(all, BTreeSet::len);
    within("containers of the trace", float_count(count), (0.0, float_count(CONTAINERS_MAX)))?;
    let most = largest(machines);
    let arrival = |group: &Group| {
        let amount = |at: usize| whole(group.parts[at] * float(most[at]));
        let request = Request { demand: [amount(0), amount(1), 0], ..Request::default() };
        Arrival { at_s: group.at_s, duration_s: group.duration_s, request }
    };
    let each = groups.iter().flat_map(|group| std::iter::repeat_n(group, group.count)).enumerate();
    let taken = each.filter(|(at, _)| chosen.as_ref().is_none_or(|chosen| chosen.contains(at)));
    Ok(taken.map(|(_, group)| arrival(group)).collect())
}

fn groups(text: &str) -> Result<Vec<Group>, SimError> {
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).map(|(at, text)| {
        let mut fields: Vec<&str> = text.split(',').map(str::trim).collect();
        // Some copies of Alibaba's end each line with a comma.
        if fields.len() == 10 && fields[9].is_empty() {
            fields.pop();
        }
        Line { number: at + 1, text, fields }
    });
    let Some(first) = lines.next() else { return Ok(Vec::new()) };
    let form = first.form()?;
    let is_head = first.fields[form.time()].parse::<f64>().is_err();
    let lines: Vec<Line<'_>> = (!is_head).then_some(first).into_iter().chain(lines).collect();
    let same = |line: &&Line<'_>| line.fields.len() != lines[0].fields.len();
    if let Some(other) = lines.iter().find(same) {
        return Err(other.refused());
    }
    match form {
        Form::Own => lines.iter().map(own).collect(),
        Form::Google => Ok(from_first(google(&lines)?)),
        Form::Alibaba => Ok(from_first(alibaba(&lines)?)),
    }
}

/// Times from the first one on.
fn from_first(mut groups: Vec<Group>) -> Vec<Group> {
    let first = groups.iter().map(|group| group.at_s).fold(f64::INFINITY, f64::min);
    groups.iter_mut().for_each(|group| group.at_s -= first);
    groups
}

fn own(line: &Line<'_>) -> Result<Group, SimError> {
    let duration_s = line.number(1)?;
    let parts = [line.number(2)?, line.number(3)?];
    if duration_s <= 0.0 || parts.iter().any(|part| *part > 1.0) {
        return Err(line.refused());
    }
    Ok(Group { at_s: line.number(0)?, duration_s, parts, count: 1 })
}

/// What is known of one of Google's tasks so far.
#[derive(Debug, Default)]
struct Seen {
    submitted_s: Option<f64>,
    scheduled_s: Option<f64>,
    parts: Option<[f64; 2]>,
}

/// A task that was evicted runs from when it was last scheduled.
fn google(lines: &[Line<'_>]) -> Result<Vec<Group>, SimError> {
    let mut tasks: BTreeMap<(&str, &str), Seen> = BTreeMap::new();
    let mut found = Vec::new();
    for line in lines {
        let at_s = line.number(0)? / MICROSECONDS;
        let task = (line.fields[2], line.fields[3]);
        let seen = tasks.entry(task).or_default();
        match line.fields[5] {
            SUBMIT => {
                seen.submitted_s.get_or_insert(at_s);
                // What some requests asked for was left out by the publisher.
                let asked = !line.fields[9].is_empty() && !line.fields[10].is_empty();
                let parts = asked.then(|| Ok([line.number(9)?.min(1.0), line.number(10)?.min(1.0)]));
                seen.parts = parts.transpose()?;
            }
            SCHEDULE => seen.scheduled_s = Some(at_s),
            FINISH => {
                let Seen { submitted_s, scheduled_s, parts } = tasks.remove(&task).unwrap_or_default();
                if let (Some(submitted_s), Some(scheduled_s), Some(parts)) = (submitted_s, scheduled_s, parts)
                    && at_s > scheduled_s
                {
                    let duration_s = at_s - scheduled_s;
                    found.push(Group { at_s: submitted_s, duration_s, parts, count: 1 });
                }
            }
            code if code.parse::<u8>().is_ok_and(|code| code <= 8) => {}
            _ => return Err(line.refused()),
        }
    }
    Ok(found)
}

/// Times are whole seconds, so what ended as it began ran for half of one.
fn alibaba(lines: &[Line<'_>]) -> Result<Vec<Group>, SimError> {
    let mut found = Vec::new();
    for line in lines.iter().filter(|line| line.fields[4] == TERMINATED) {
        let (at_s, end_s) = (line.number(5)?, line.number(6)?);
        let count: u32 = line.fields[1].parse().map_err(|_| line.refused())?;
        let asked = !line.fields[7].is_empty() && !line.fields[8].is_empty();
        if end_s < at_s || !asked {
            continue;
        }
        let parts =
            [line.number(7)? / ALIBABA_CPU, line.number(8)? / ALIBABA_MEMORY].map(|part| part.min(1.0));
        found.push(Group { at_s, duration_s: (end_s - at_s).max(0.5), parts, count: count as usize });
    }
    Ok(found)
}

#[expect(clippy::cast_precision_loss, reason = "what is beyond 2^52 is out of bounds before and after")]
fn float_count(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: Machine = Machine { capacity: [96_000, 1_000_000, 0], free: [0; 3] };

    /// Submitted, duration, CPU and memory.
    fn read_all(text: &str) -> Result<Vec<(f64, f64, i64, i64)>, SimError> {
        let all = read(text, &[MACHINE], None)?;
        let one = |arrival: &Arrival| {
            let [cpu, memory, _] = arrival.request.demand;
            (arrival.at_s, arrival.duration_s, cpu, memory)
        };
        Ok(all.iter().map(one).collect())
    }

    #[test]
    fn of_googles_events_those_count_that_make_a_finished_task() {
        let event = |at_us: u64, task: u8, code: u8, asked: &str| {
            format!("{at_us},,7,{task},,{code},user,0,9,{asked},0.1,0\n")
        };
        let text = [
            event(600_000_000, 0, 0, "0.5,0.25"),
            event(601_000_000, 0, 1, "0.5,0.25"),
            event(602_000_000, 1, 0, ","),
            event(603_000_000, 0, 2, "0.5,0.25"),
            event(604_000_000, 0, 1, "0.5,0.25"),
            event(605_000_000, 1, 1, ","),
            event(609_000_000, 1, 4, ","),
            event(614_000_000, 0, 4, "0.5,0.25"),
            event(615_000_000, 2, 4, "0.5,0.25"),
        ];
        assert_eq!(read_all(&text.concat()).unwrap(), [(0.0, 10.0, 48_000, 250_000)]);
        let wrong = read_all(&event(1, 0, 9, "0.5,0.25")).unwrap_err();
        assert!(matches!(wrong, SimError::Trace { line: 1, .. }), "{wrong}");
    }

    #[test]
    fn of_alibabas_tasks_each_instance_is_a_container() {
        let text = "M1,2,j_1,1,Terminated,100,130,50,0.5\nR2_1,1,j_1,1,Terminated,90,90,100,1,\n\
                    M1,9,j_2,1,Failed,95,99,100,1\nM1,9,j_3,1,Running,95,0,100,1\n";
        let instance = (10.0, 30.0, 500, 5000);
        assert_eq!(read_all(text).unwrap(), [(0.0, 0.5, 1000, 10_000), instance, instance]);
        let head = format!("task,instances,job,type,status,start,end,cpu,memory\n{text}");
        assert_eq!(read_all(&head).unwrap().len(), 3);
        let count = |count: &str| read_all(&format!("M1,{count},j_1,1,Terminated,100,130,50,0.5"));
        for wrong in ["many", "-1", "18446744073709551615"] {
            assert!(matches!(count(wrong), Err(SimError::Trace { line: 1, .. })), "{wrong}");
        }
        for huge in ["9999999", "4294967295"] {
            assert!(matches!(count(huge), Err(SimError::Setting { .. })), "{huge}");
        }
    }

    #[test]
    fn what_is_no_trace_is_refused_at_its_line() {
        for (text, at) in [("hello", 1), ("-1,2,0.5,0.5", 1), ("0,1,0,0\n0,1,0", 2), ("h,e,a,d\n1,2,3", 2)] {
            let refused = read_all(text);
            assert!(
                matches!(refused, Err(SimError::Trace { line, .. }) if line == at),
                "{text}: {refused:?}"
            );
        }
        assert_eq!(read_all("\n\n").unwrap(), []);
    }

    #[test]
    fn a_sample_is_drawn_by_the_seed() {
        let text: String = (0..100).map(|at| format!("{at},1,0.5,0.5\n")).collect();
        let times = |seed: u64| -> Vec<f64> {
            let some = read(&text, &[MACHINE], Some((10, &mut Draw::new(seed)))).unwrap();
            some.iter().map(|arrival| arrival.at_s).collect()
        };
        assert!(times(1).len() == 10 && times(1) == times(1) && times(1) != times(2));
        assert!(times(1).is_sorted());
    }
}
