//! Containers over time, drawn.
//!
//! Drawn ones follow the statistics that are published of the Google trace of 2011: sizes and durations over several
//! orders of magnitude (log-normal), CPU and memory loosely linked, few large ones making most of the load; the paper
//! adds the mean duration, 764 s, and affinities of 6%.

use edgeloom_sched::batch::{Machine, Request, Vector};

use super::cluster::whole;
use super::{Mix, Scenario, Settings};
use crate::random::Draw;
use crate::statistics::mean;

/// Deviation of the logarithm of a size.
const SIZE_DEVIATION: f64 = 0.9;
/// How far memory follows CPU.
const CORRELATION: f64 = 0.5;
/// How much of CPU and of memory is asked for, over the load: memory is the scarcer one.
const SCARCITY: [f64; 2] = [0.75, 1.0];
/// No container asks for more than one over this of the largest machine.
const LARGEST: i64 = 2;
/// Deviation of the logarithm of a duration: half of all end within a third of the mean.
const DURATION_DEVIATION: f64 = 1.5;
/// On instances of a cloud: millicores and bytes of the median container.
const EC2_MEDIAN: [f64; 2] = [500.0, 1.5e9];
/// Rounds in which the load is met although the largest are cut off.
const CUTS: usize = 8;
/// Machines that an affinity leaves.
const AFFINE: usize = 3;

/// A container that arrives.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Arrival {
    pub(super) at_s: f64,
    pub(super) duration_s: f64,
    pub(super) request: Request,
}

/// In the order of arrival.
pub(super) fn arrivals(settings: &Settings, machines: &[Machine], draw: &mut Draw) -> Vec<Arrival> {
    let most = largest(machines).map(|amount| (amount / LARGEST).max(1));
    let durations = durations(settings, draw);
    let sizes = sizes(settings, machines, (&durations, most), draw);
    let mut at_s = 0.0;
    let mut all: Vec<Arrival> = Vec::new();
    for (number, ([cpu, memory], duration_s)) in sizes.into_iter().zip(durations).enumerate() {
        at_s += draw.exponential(settings.span_s / count(settings.containers));
        let mut request = Request { demand: [whole(cpu), whole(memory), 0], ..Request::default() };
        affinity(settings, machines, (number, &mut request, &mut all[..]), draw);
        // Containers that belong together come together.
        let partner =
            all.last().filter(|last| request.together.is_some() && last.request.together == request.together);
        let comes_s = partner.map_or(at_s, |last| last.at_s);
        all.push(Arrival { at_s: comes_s, duration_s, request });
    }
    all.sort_by(|x, y| x.at_s.total_cmp(&y.at_s));
    all
}

/// Their mean is the settings'.
fn durations(settings: &Settings, draw: &mut Draw) -> Vec<f64> {
    let mut all: Vec<f64> =
        (0..settings.containers).map(|_| (DURATION_DEVIATION * draw.normal(0.0, 1.0)).exp()).collect();
    let factor = settings.duration_s / mean(&all).max(f64::MIN_POSITIVE);
    all.iter_mut().for_each(|duration| *duration = (*duration * factor).max(1.0));
    all
}

/// With half of the settings' probability to a few machines that are large enough, with the other half to the container
/// before it, if one machine can be large enough for both.
fn affinity(
    settings: &Settings,
    machines: &[Machine],
    (number, request, before): (usize, &mut Request, &mut [Arrival]),
    draw: &mut Draw,
) {
    let drawn = draw.uniform(0.0, 1.0);
    let room = |demand: &Vector| -> Vec<usize> {
        let holds = |at: &usize| machines[*at].capacity.iter().zip(demand).all(|(has, asked)| has >= asked);
        (0..machines.len()).filter(holds).collect()
    };
    if drawn < settings.affinity / 2.0 {
        let large = room(&request.demand);
        let mut one = || Some(*large.get(draw.below(large.len().max(1)))?);
        let some: Vec<usize> = (0..AFFINE).filter_map(|_| one()).collect();
        request.machines = (!some.is_empty()).then_some(some);
    } else if drawn < settings.affinity
        && let Some(last) = before.last_mut().filter(|last| last.request.together.is_none())
    {
        let both = std::array::from_fn(|at| request.demand[at] + last.request.demand[at]);
        if last.request.machines.is_none() && !room(&both).is_empty() {
            (request.together, last.request.together) = (Some(number), Some(number));
        }
    }
}

/// In millicores and bytes, none above `most`; what that cuts off is made up for by the others.
fn sizes(
    settings: &Settings,
    machines: &[Machine],
    (durations, most): (&[f64], Vector),
    draw: &mut Draw,
) -> Vec<[f64; 2]> {
    let drawn: Vec<[f64; 2]> = durations.iter().map(|_| size(draw)).collect();
    let part = |duration_s: &f64| match settings.scenario {
        Scenario::OneShot => 1.0,
        Scenario::Online | Scenario::Drain => duration_s / settings.span_s,
    };
    let has = total(machines);
    let cut = |size: &[f64; 2], factors: &[f64; 2]| -> [f64; 2] {
        std::array::from_fn(|at| (size[at] * factors[at]).clamp(1.0, float(most[at])))
    };
    let mut factors = EC2_MEDIAN;
    if settings.mix == Mix::Paper {
        for _ in 0..CUTS {
            let mut asked = [0.0; 2];
            for (size, duration_s) in drawn.iter().zip(durations) {
                let size = cut(size, &factors);
                (0..2).for_each(|at| asked[at] += size[at] * part(duration_s));
            }
            let wanted = |at: usize| settings.load * SCARCITY[at] * has[at];
            (0..2).for_each(|at| factors[at] *= wanted(at) / asked[at].max(f64::MIN_POSITIVE));
        }
    }
    drawn.iter().map(|size| cut(size, &factors)).collect()
}

/// Around 1.
fn size(draw: &mut Draw) -> [f64; 2] {
    let (common, own) = (draw.normal(0.0, 1.0), draw.normal(0.0, 1.0));
    let other = CORRELATION * common + (1.0 - CORRELATION * CORRELATION).sqrt() * own;
    [(SIZE_DEVIATION * common).exp(), (SIZE_DEVIATION * other).exp()]
}

/// What all machines have, in millicores and bytes.
pub(super) fn total(machines: &[Machine]) -> [f64; 2] {
    std::array::from_fn(|at| machines.iter().map(|machine| float(machine.capacity[at])).sum())
}

pub(super) fn largest(machines: &[Machine]) -> Vector {
    std::array::from_fn(|at| machines.iter().map(|machine| machine.capacity[at]).fold(1, i64::max))
}

#[expect(clippy::cast_precision_loss, reason = "sums of amounts need no 53 bits")]
pub(super) fn float(amount: i64) -> f64 {
    amount as f64
}

#[expect(clippy::cast_precision_loss, reason = "containers are few")]
fn count(containers: usize) -> f64 {
    containers.max(1) as f64
}
