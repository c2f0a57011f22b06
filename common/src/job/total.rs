//! The job's stated total: what its containers ask for together may not be more.
//!
//! Once a total is stated it binds: memory that a task leaves to the planner counts with the default and stays
//! at it, so that no measured peak lifts the sum over the total later.

use super::Program;
use super::fields::{self, Fields};
use super::problems::{Place, Problems};
use super::tree::Node;
use crate::units::Bytes;

const TOTAL_FIELDS: &[&str] = &["memory"];

/// The most containers that one message lists.
const LISTED_MAX: usize = 8;

/// `resources: { memory: 4GiB }` of the job.
pub(super) fn memory_total(node: &Node, place: &Place, problems: &mut Problems) -> Option<(Bytes, Place)> {
    let fields = Fields::open(node, place, TOTAL_FIELDS, problems)?;
    let remedy = "write the memory of all tasks together, for instance `4GiB`";
    let (node, place) = fields.required("memory", remedy, problems)?;
    let total = fields::parsed(node, &place, remedy, problems)?;
    Some((total, place))
}

/// Holds the containers, each so many times, against the total, and fixes what each asks for.
pub(super) fn hold<'a>(
    (total, copies): (&(Bytes, Place), u32),
    programs: impl Iterator<Item = (&'a str, &'a mut Program)>,
    problems: &mut Problems,
) {
    let (total, place) = total;
    let mut sum = 0_u64;
    let mut requests = Vec::new();
    for (name, program) in programs {
        program.resources.memory_sized = false;
        sum = sum.saturating_add(program.resources.memory.0.saturating_mul(u64::from(copies)));
        requests.push(format!("{name} {}", program.resources.memory));
    }
    if sum > total.0 {
        let more = requests.len().saturating_sub(LISTED_MAX);
        requests.truncate(LISTED_MAX);
        if more > 0 {
            requests.push(format!("{more} more"));
        }
        let (asked, requests) = (Bytes(sum), requests.join(", "));
        let problem = format!("the tasks ask for {asked} together ({requests}), over the total of {total}");
        // Rounded up: what the remedy says has to be enough.
        let enough = sum.div_ceil(1 << 20);
        problems.add(place, problem, format!("write at least `{enough}MiB`, or lower the tasks' memory"));
    }
}
