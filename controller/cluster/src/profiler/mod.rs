//! What was measured of programs, and what to measure next.
//!
//! A profile belongs to a program as it would run (image digest, command, environment, declared work, CPU
//! limit) and to a hardware class. It is kept until the image changes, since then nothing asks for it any
//! more; the oldest give way when there are too many. In: jobs with resolved images, nodes, measurements. Out:
//! [`Trial`]s for the agents, and the [`Profiles`] that every decision is made with.

mod candidate;
mod subject;
mod survey;

pub use survey::{Run, SurveyRequest, Trial, Verdict};

pub(crate) use subject::Subject;
pub(crate) use survey::survey;

use crate::model::{JobRecord, Model};
use edgeloom_common::ids::NodeId;
use edgeloom_common::measure::{Measured, ProfileView};
use edgeloom_sched::snapshot::{Profiles, TaskProfile};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Profiles kept, over all programs and classes; one has some 500 bytes.
const KEPT_MAX: usize = 4096;

/// One measurement that was kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Kept {
    pub(crate) subject: Subject,
    pub(crate) node: NodeId,
    pub(crate) profile: TaskProfile,
    pub(crate) measured_ms: u64,
}

impl Kept {
    /// What was measured on a node of this core speed.
    pub(crate) fn of(run: &Run, measured: &Measured, core_speed: f64, measured_ms: u64) -> Self {
        let profile = TaskProfile {
            work_s: measured.cpu_s * core_speed,
            wall_s: measured.wall_s,
            core_speed,
            memory_peak: measured.memory_peak,
        };
        Self { subject: run.subject.clone(), node: run.node.clone(), profile, measured_ms }
    }

    pub(crate) fn view(&self) -> ProfileView {
        let Self { subject, node, profile, measured_ms } = self;
        ProfileView {
            image: subject.image.clone(),
            digest: subject.digest.clone(),
            command: subject.command.clone(),
            cpu_millicores: subject.cpu.0,
            class: subject.class.clone(),
            node: node.clone(),
            wall_s_measured: profile.wall_s,
            cpu_s_measured: profile.work_s / profile.core_speed,
            work_s: profile.work_s,
            core_speed: profile.core_speed,
            memory_peak_bytes: profile.memory_peak.0,
            items: subject.items,
            measured_ms: *measured_ms,
        }
    }
}

/// Kept profiles by program and class.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Book(BTreeMap<String, BTreeMap<String, Kept>>);

impl Book {
    /// Keeps a profile in the place of an older one, and drops the oldest where there are too many.
    pub(crate) fn keep(&mut self, kept: Kept) {
        let subject = &kept.subject;
        self.0.entry(subject.program.clone()).or_default().insert(subject.class.clone(), kept);
        while self.all().count() > KEPT_MAX {
            let oldest = self.all().min_by_key(|kept| (kept.measured_ms, &kept.subject.program));
            let Some(Subject { program, class, .. }) = oldest.map(|kept| kept.subject.clone()) else {
                return;
            };
            if let Some(classes) = self.0.get_mut(&program) {
                classes.remove(&class);
            }
            self.0.retain(|_, classes| !classes.is_empty());
        }
    }

    /// The profile that makes a measurement needless.
    fn of(&self, subject: &Subject) -> Option<&Kept> {
        let kept = self.0.get(&subject.program)?.get(&subject.class)?;
        (kept.subject.measure == subject.measure).then_some(kept)
    }

    /// Every kept profile.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Kept> {
        self.0.values().flat_map(BTreeMap::values)
    }
}

/// What is known of a job's tasks, for a decision.
pub(crate) fn profiles(model: &Model, record: &JobRecord) -> Profiles {
    let of_task = |(name, task)| {
        let image = record.images.get(name)?;
        let classes = model.profiles.0.get(&subject::program(task, &image.reference))?;
        let by_class = classes.iter().map(|(class, kept)| (class.clone(), kept.profile));
        Some((edgeloom_common::ids::TaskName::clone(name), by_class.collect()))
    };
    record.job.tasks.iter().filter_map(of_task).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgeloom_common::units::{Bytes, MilliCores};

    fn kept(program: usize, measured_ms: u64) -> Kept {
        let subject = Subject {
            program: format!("{program:05}"),
            class: "pi4".to_owned(),
            image: "r/app:1".to_owned(),
            digest: "sha256:m".to_owned(),
            command: String::new(),
            cpu: MilliCores(100),
            measure: "m".to_owned(),
            items: 20,
        };
        let profile = TaskProfile { work_s: 1.0, wall_s: 1.0, core_speed: 1.0, memory_peak: Bytes(1) };
        Kept { subject, node: "n1".parse().unwrap(), profile, measured_ms }
    }

    #[test]
    fn the_oldest_profiles_give_way_when_there_are_too_many() {
        let mut book = Book::default();
        for program in 0..KEPT_MAX + 5 {
            book.keep(kept(program, 1000 - program as u64 / 5));
        }
        assert_eq!(book.all().count(), KEPT_MAX);
        let oldest = kept(KEPT_MAX + 3, 0).subject;
        assert!(book.of(&oldest).is_some(), "it came last and is its own age");
    }

    #[test]
    fn another_measure_of_the_same_program_does_not_count_as_kept() {
        let mut book = Book::default();
        book.keep(kept(1, 1));
        let subject = kept(1, 1).subject;
        assert!(book.of(&subject).is_some());
        assert!(book.of(&Subject { measure: "other".to_owned(), ..subject.clone() }).is_none());
        assert!(book.of(&Subject { class: "nano".to_owned(), ..subject }).is_none());
    }
}
