//! Containers of a run: whose, and when.
//!
//! The two traces are drawn: the Google trace of May 2011 lists 672,074 jobs in 29 days, one in 3.73 s on
//! average, taken as a Poisson process here (the trace itself comes more in bursts; its times can be given
//! instead). For Prezi's no figures are published: one a second is assumed. Whose a container is is a
//! shuffle of the paper's numbers.

use edgeloom_common::job::Service;
use edgeloom_common::view::ProblemItem;

use super::settings::{ARRIVAL_MAX_S, CONTAINERS};
use super::{Pattern, Settings};
use crate::random::Draw;

/// Seconds between groups of three, and how many come in one.
const PERIOD_S: f64 = 3.0;
const USERS: usize = 3;
/// 29 days over 672,074 jobs.
const GOOGLE_GAP_S: f64 = 29.0 * 86_400.0 / 672_074.0;
const PREZI_GAP_S: f64 = 1.0;

/// Characters of a line that a problem quotes.
const EXCERPT: usize = 40;

/// Reads times of arrival: a number of seconds a line, `#` begins a comment.
///
/// # Errors
/// Every line that is no such number, and a file of too few.
pub fn arrivals(text: &str) -> Result<Vec<f64>, Vec<ProblemItem>> {
    let (mut times, mut problems) = (Vec::new(), Vec::new());
    let mut tell = |line: usize, problem: String, remedy: &str| {
        let (field, remedy) = (String::new(), remedy.to_owned());
        problems.push(ProblemItem { line, field, problem, remedy });
    };
    for (at, line) in text.lines().enumerate() {
        let number = line.split('#').next().unwrap_or_default().trim();
        match number.parse::<f64>() {
            _ if number.is_empty() => {}
            Ok(at_s) if (0.0..=ARRIVAL_MAX_S).contains(&at_s) => times.push(at_s),
            _ => {
                let excerpt: String = number.chars().take(EXCERPT).collect();
                tell(at + 1, format!("{excerpt:?} is no time"), "write seconds, as 12.5");
            }
        }
    }
    if times.len() < CONTAINERS {
        tell(0, format!("there are {} times", times.len()), "write at least 90, one a line");
    }
    if problems.is_empty() { Ok(times) } else { Err(problems) }
}

/// One container, with the user's service in every class.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Container {
    pub(super) at_s: f64,
    pub(super) service: Service,
}

/// All containers of a run, in the order in which they arrive.
pub(super) fn containers(settings: &Settings, pattern: Pattern, draw: &mut Draw) -> Vec<Container> {
    let (times, services) = match pattern {
        Pattern::AtOnce => (vec![0.0; CONTAINERS], in_turn()),
        #[expect(clippy::cast_precision_loss, reason = "90 containers")]
        Pattern::Fixed => ((0..CONTAINERS).map(|at| (at / USERS) as f64 * PERIOD_S).collect(), in_turn()),
        Pattern::Google => {
            let given = settings.arrivals_s.as_deref().map(first);
            (given.unwrap_or_else(|| poisson(GOOGLE_GAP_S, draw)), shuffled([2, 88, 0], draw))
        }
        Pattern::Prezi => (poisson(PREZI_GAP_S, draw), shuffled([10, 13, 67], draw)),
    };
    times.into_iter().zip(services).map(|(at_s, service)| Container { at_s, service }).collect()
}

/// The first of the given times, from the first one on.
fn first(times: &[f64]) -> Vec<f64> {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    let start = sorted.first().copied().unwrap_or(0.0);
    sorted.into_iter().take(CONTAINERS).map(|at_s| at_s - start).collect()
}

fn in_turn() -> Vec<Service> {
    Service::ALL.into_iter().cycle().take(CONTAINERS).collect()
}

fn poisson(gap_s: f64, draw: &mut Draw) -> Vec<f64> {
    let mut at_s = 0.0;
    let mut next = || {
        at_s += draw.exponential(gap_s);
        at_s
    };
    (0..CONTAINERS).map(|_| next()).collect()
}

/// So many premium, advanced and best effort ones, by Fisher and Yates.
fn shuffled(counts: [usize; 3], draw: &mut Draw) -> Vec<Service> {
    let each = Service::ALL.into_iter().zip(counts);
    let mut all: Vec<Service> =
        each.flat_map(|(service, count)| std::iter::repeat_n(service, count)).collect();
    for last in (1..all.len()).rev() {
        all.swap(last, draw.below(last + 1));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(pattern: Pattern, settings: &Settings) -> Vec<Container> {
        containers(settings, pattern, &mut Draw::new(1))
    }

    #[test]
    fn patterns_have_the_papers_numbers() {
        let settings = Settings::default();
        let of = |pattern| {
            let all = made(pattern, &settings);
            assert!(all.windows(2).all(|pair| pair[0].at_s <= pair[1].at_s));
            Service::ALL.map(|service| all.iter().filter(|one| one.service == service).count())
        };
        let numbers = Pattern::ALL.map(of);
        assert_eq!(numbers, [[30, 30, 30], [30, 30, 30], [2, 88, 0], [10, 13, 67]]);
        assert_eq!(made(Pattern::Fixed, &settings)[89].at_s, 87.0);
    }

    #[test]
    fn a_file_of_times_is_read_and_every_bad_line_told() {
        let text: String = (0..90).map(|at| format!("{at}.5 # job {at}\n\n")).collect();
        assert_eq!(arrivals(&text).unwrap()[89], 89.5);
        let problems = arrivals("1\nsoon\n-3\nNaN\n").unwrap_err();
        let lines: Vec<usize> = problems.iter().map(|problem| problem.line).collect();
        assert_eq!(lines, [2, 3, 4, 0]);
        assert_eq!(problems[3].problem, "there are 1 times");
    }

    #[test]
    fn given_times_start_at_nothing_and_the_first_ninety_count() {
        let times: Vec<f64> = (0..100).rev().map(|at| 1000.0 + f64::from(at)).collect();
        let settings = Settings { arrivals_s: Some(times), ..Settings::default() };
        let all = made(Pattern::Google, &settings);
        assert_eq!((all.len(), all[0].at_s, all[89].at_s), (90, 0.0, 89.0));
    }
}
