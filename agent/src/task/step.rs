//! One task, one step: from what is wanted and what is found to the next action. Pure.
//!
//! The worker carries the action out, looks again and asks again, until the answer is
//! [`Action::Nothing`]. A container that runs with the wanted spec is adopted whoever started it, even
//! while the network is being worked on: nothing healthy is restarted.

use crate::engine::{FoundContainer, FoundState, Hold, Limits};
use edgeloom_common::desired::ContainerSpec;

/// All that decides the next action of one task.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Situation<'a> {
    pub wanted: Option<&'a ContainerSpec>,
    pub found: Option<&'a FoundContainer>,
    pub image: Image,
    /// The kernel carries the flows and routes of the document.
    pub network_applied: bool,
    /// No other container holds the wanted address.
    pub address_free: bool,
    /// A pause after a failure is still running.
    pub pausing: bool,
    /// The controller was not heard of for longer than the task may run without it.
    pub silence: bool,
    /// The container cannot be started again and has to be made anew.
    pub spoilt: bool,
    /// The values of all its secrets are known.
    pub secrets: bool,
    /// It has run to its end and is not started again; or, no longer wanted, it stays for its logs.
    pub over: bool,
}

/// What is known of the wanted image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Image {
    /// Not asked yet.
    Unknown,
    Missing,
    Present,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// As wanted.
    Nothing,
    /// Not now; the worker looks again when what it waits for changes.
    Wait(Waiting),
    /// Ask whether the image is there.
    LookForImage,
    Pull,
    /// Create and start.
    Create,
    /// Start a container that exists: made before a crash, or ended.
    Start,
    /// Change its limits in place.
    Limit,
    /// Stop it, and keep it for a later start.
    Stop,
    /// Stop and remove.
    Remove,
}

/// What a task waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiting {
    Network,
    Pause,
    Address,
    /// The engine is changing the container.
    Engine,
    /// Somebody paused the container.
    Unpause,
    /// The controller's word that the task is still wanted here.
    Controller,
    /// Values of secrets, which only the controller has.
    Secrets,
}

/// The next action.
#[must_use]
pub(crate) fn step(situation: &Situation<'_>) -> Action {
    match (situation.wanted, situation.found) {
        (None, None) => Action::Nothing,
        (None, Some(found)) if situation.over && !found.state.is_up() => Action::Nothing,
        (None, Some(found)) => remove(situation, found),
        (Some(wanted), Some(found)) if wanted.spec_hash != found.spec_hash => remove(situation, found),
        (Some(_), _) if situation.over => Action::Nothing,
        (Some(wanted), Some(found)) => keep(situation, wanted, found),
        (Some(_), None) => make(situation),
    }
}

/// A removal that the engine refused is tried again after a pause, like a start.
fn remove(situation: &Situation<'_>, found: &FoundContainer) -> Action {
    match found.state {
        FoundState::Changing => Action::Wait(Waiting::Engine),
        _ if found.hold != Hold::Free => Action::Wait(Waiting::Engine),
        _ if situation.pausing => Action::Wait(Waiting::Pause),
        _ => Action::Remove,
    }
}

/// The container is the wanted one. Its limits are changed in place, and before it starts again.
fn keep(situation: &Situation<'_>, wanted: &ContainerSpec, found: &FoundContainer) -> Action {
    let limited = found.limits.are(Limits::of(wanted));
    match found.state {
        // Whatever is asked of it would not end.
        state if found.hold != Hold::Free => match state {
            FoundState::Running if !situation.silence => Action::Nothing,
            _ => Action::Wait(Waiting::Engine),
        },
        FoundState::Running | FoundState::Paused if situation.silence => {
            if situation.pausing {
                Action::Wait(Waiting::Pause)
            } else if wanted.to_end.is_none() {
                Action::Stop
            } else {
                // Stopped, it could not be told from one that ended by itself.
                Action::Remove
            }
        }
        FoundState::Created | FoundState::Exited(_) if situation.spoilt => remove(situation, found),
        FoundState::Running | FoundState::Created | FoundState::Exited(_) if !limited => {
            if situation.pausing { Action::Wait(Waiting::Pause) } else { Action::Limit }
        }
        FoundState::Running => Action::Nothing,
        FoundState::Paused => Action::Wait(Waiting::Unpause),
        FoundState::Changing => Action::Wait(Waiting::Engine),
        FoundState::Dead => remove(situation, found),
        FoundState::Created | FoundState::Exited(_) => {
            obstacle(situation).map_or(Action::Start, Action::Wait)
        }
    }
}

/// There is no container yet. The image is fetched while the network is worked on.
fn make(situation: &Situation<'_>) -> Action {
    match (situation.image, obstacle(situation)) {
        (Image::Unknown, _) => Action::LookForImage,
        (Image::Missing, Some(Waiting::Pause)) => Action::Wait(Waiting::Pause),
        (Image::Missing, _) => Action::Pull,
        (Image::Present, Some(waiting)) => Action::Wait(waiting),
        (Image::Present, None) => Action::Create,
    }
}

fn obstacle(situation: &Situation<'_>) -> Option<Waiting> {
    if situation.pausing {
        Some(Waiting::Pause)
    } else if situation.silence {
        Some(Waiting::Controller)
    } else if !situation.network_applied {
        Some(Waiting::Network)
    } else if !situation.address_free {
        Some(Waiting::Address)
    } else if !situation.secrets {
        Some(Waiting::Secrets)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::fake::{found, spec};
    use crate::engine::{FoundLimits, TaskKey};
    use edgeloom_common::desired::ToEnd;
    use edgeloom_common::units::MilliCores;
    use proptest::prelude::*;

    fn situation<'a>(wanted: Option<&'a ContainerSpec>, found: Option<&'a FoundContainer>) -> Situation<'a> {
        Situation {
            wanted,
            found,
            image: Image::Present,
            network_applied: true,
            address_free: true,
            pausing: false,
            silence: false,
            spoilt: false,
            secrets: true,
            over: false,
        }
    }

    #[test]
    fn what_has_run_to_its_end_is_left_alone_whether_it_is_there_or_not() {
        let wanted = spec("t", "h1");
        for state in [FoundState::Exited(Some(0)), FoundState::Exited(Some(3)), FoundState::Created] {
            let found = found("t", "h1", state);
            let over = Situation { over: true, ..situation(Some(&wanted), Some(&found)) };
            assert_eq!(step(&over), Action::Nothing);
            assert_eq!(step(&Situation { wanted: None, ..over }), Action::Nothing, "kept for its logs");
            assert_eq!(step(&Situation { over: false, wanted: None, ..over }), Action::Remove);
        }
        let gone = Situation { over: true, ..situation(Some(&wanted), None) };
        assert_eq!(step(&gone), Action::Nothing, "somebody removed it");
        let runs = found("t", "h1", FoundState::Running);
        let kept = Situation { over: true, ..situation(None, Some(&runs)) };
        assert_eq!(step(&kept), Action::Remove, "somebody started it again");
        let earlier = found("t", "h0", FoundState::Exited(Some(0)));
        let other = Situation { over: true, ..situation(Some(&wanted), Some(&earlier)) };
        assert_eq!(step(&other), Action::Remove, "of an earlier job");
    }

    #[test]
    fn what_runs_to_its_end_begins_anew_after_silence() {
        let to_end = Some(ToEnd { retries: 3, run: 1 });
        let (wanted, found) =
            (ContainerSpec { to_end, ..spec("t", "h1") }, found("t", "h1", FoundState::Running));
        let silent = Situation { silence: true, ..situation(Some(&wanted), Some(&found)) };
        assert_eq!(step(&silent), Action::Remove);
    }

    #[test]
    fn a_running_container_of_the_wanted_spec_is_adopted_before_the_network_is_applied() {
        let (wanted, found) = (spec("t", "h1"), found("t", "h1", FoundState::Running));
        let situation =
            Situation { network_applied: false, pausing: true, ..situation(Some(&wanted), Some(&found)) };
        assert_eq!(step(&situation), Action::Nothing);
    }

    #[test]
    fn nothing_is_asked_of_a_container_that_the_engine_does_not_answer_for() {
        let (wanted, other) = (spec("t", "h1"), spec("t", "h2"));
        let ended =
            [FoundState::Created, FoundState::Exited(Some(1)), FoundState::Exited(None), FoundState::Dead];
        for hold in [Hold::Brief, Hold::Long] {
            let held = |state| FoundContainer { hold, ..found("t", "h1", state) };
            let runs = held(FoundState::Running);
            assert_eq!(step(&situation(Some(&wanted), Some(&runs))), Action::Nothing);
            for found in ended.map(held) {
                assert_eq!(step(&situation(Some(&wanted), Some(&found))), Action::Wait(Waiting::Engine));
            }
            for found in ended.map(held).iter().chain([&runs]) {
                for unwanted in [None, Some(&other)] {
                    assert_eq!(step(&situation(unwanted, Some(found))), Action::Wait(Waiting::Engine));
                }
            }
        }
    }

    #[test]
    fn another_spec_is_removed_first() {
        let (wanted, found) = (spec("t", "h2"), found("t", "h1", FoundState::Running));
        assert_eq!(step(&situation(Some(&wanted), Some(&found))), Action::Remove);
    }

    #[test]
    fn a_task_that_may_not_run_without_the_controller_is_stopped_and_waits_for_it() {
        let wanted = spec("t", "h1");
        for (state, action) in [
            (FoundState::Running, Action::Stop),
            (FoundState::Paused, Action::Stop),
            (FoundState::Exited(Some(0)), Action::Wait(Waiting::Controller)),
            (FoundState::Created, Action::Wait(Waiting::Controller)),
        ] {
            let found = found("t", "h1", state);
            let situation = Situation { silence: true, ..situation(Some(&wanted), Some(&found)) };
            assert_eq!(step(&situation), action, "{state:?}");
        }
        let none = Situation { silence: true, ..situation(Some(&wanted), None) };
        assert_eq!(step(&none), Action::Wait(Waiting::Controller));
        let missing = Situation { image: Image::Missing, ..none };
        assert_eq!(step(&missing), Action::Pull, "what it needs is fetched meanwhile");
    }

    #[test]
    fn without_its_secrets_a_task_does_not_start_but_one_that_runs_goes_on() {
        let wanted = spec("t", "h1");
        for (state, action) in [
            (FoundState::Running, Action::Nothing),
            (FoundState::Exited(Some(0)), Action::Wait(Waiting::Secrets)),
            (FoundState::Created, Action::Wait(Waiting::Secrets)),
        ] {
            let found = found("t", "h1", state);
            let situation = Situation { secrets: false, ..situation(Some(&wanted), Some(&found)) };
            assert_eq!(step(&situation), action, "{state:?}");
        }
        let none = Situation { secrets: false, ..situation(Some(&wanted), None) };
        assert_eq!(step(&none), Action::Wait(Waiting::Secrets));
    }

    #[test]
    fn a_container_that_cannot_be_started_is_made_anew_but_a_running_one_is_left_alone() {
        let wanted = spec("t", "h1");
        for (state, action) in [
            (FoundState::Running, Action::Nothing),
            (FoundState::Exited(Some(0)), Action::Remove),
            (FoundState::Created, Action::Remove),
        ] {
            let found = found("t", "h1", state);
            let situation = Situation { spoilt: true, ..situation(Some(&wanted), Some(&found)) };
            assert_eq!(step(&situation), action, "{state:?}");
        }
    }

    #[test]
    fn a_removal_waits_for_the_end_of_the_pause() {
        let (wanted, other) = (spec("t", "h2"), found("t", "h1", FoundState::Running));
        let dead = found("t", "h2", FoundState::Dead);
        for (wanted, found) in [(None, &other), (Some(&wanted), &other), (Some(&wanted), &dead)] {
            let situation = Situation { pausing: true, ..situation(wanted, Some(found)) };
            assert_eq!(step(&situation), Action::Wait(Waiting::Pause));
        }
    }

    #[test]
    fn nothing_is_created_or_started_before_the_network() {
        let wanted = spec("t", "h1");
        let exited = found("t", "h1", FoundState::Exited(Some(1)));
        for found in [None, Some(&exited)] {
            let situation = Situation { network_applied: false, ..situation(Some(&wanted), found) };
            assert_eq!(step(&situation), Action::Wait(Waiting::Network));
        }
    }

    #[test]
    fn the_image_is_fetched_while_the_network_is_worked_on() {
        let wanted = spec("t", "h1");
        let situation =
            Situation { network_applied: false, image: Image::Missing, ..situation(Some(&wanted), None) };
        assert_eq!(step(&situation), Action::Pull);
    }

    #[test]
    fn other_limits_are_changed_in_place_and_before_a_start() {
        let wanted = ContainerSpec { cpu: MilliCores(900), ..spec("t", "h1") };
        for state in [FoundState::Running, FoundState::Created, FoundState::Exited(Some(1))] {
            let found = found("t", "h1", state);
            let early = Situation { network_applied: false, ..situation(Some(&wanted), Some(&found)) };
            assert_eq!(step(&early), Action::Limit);
            let pausing = Situation { pausing: true, ..early };
            assert_eq!(step(&pausing), Action::Wait(Waiting::Pause));
        }
    }

    #[test]
    fn a_limit_that_the_kernel_cannot_set_is_not_asked_for() {
        let wanted = spec("t", "h1");
        let limits = FoundLimits { cpu: Some(wanted.cpu), memory: None };
        let found = FoundContainer { limits, ..found("t", "h1", FoundState::Running) };
        assert_eq!(step(&situation(Some(&wanted), Some(&found))), Action::Nothing);
    }

    /// A perfect world: carries an action out at once.
    fn carry_out(
        action: Action,
        wanted: Option<&ContainerSpec>,
        found: &mut Option<FoundContainer>,
        image: &mut Image,
    ) {
        match action {
            Action::LookForImage => *image = Image::Missing,
            Action::Pull => *image = Image::Present,
            Action::Remove => *found = None,
            Action::Stop => {
                let state = FoundState::Exited(Some(0));
                *found = found.take().map(|found| FoundContainer { state, ..found });
            }
            Action::Limit => {
                let limits = Limits::of(wanted.expect("only a wanted container is limited"));
                *found = found.take().map(|found| FoundContainer { limits: limits.into(), ..found });
            }
            Action::Create | Action::Start => {
                let spec = wanted.expect("only a wanted container is started");
                let container = self::found("t", &spec.spec_hash, FoundState::Running);
                *found = Some(FoundContainer {
                    key: TaskKey::of(spec),
                    limits: Limits::of(spec).into(),
                    ..container
                });
            }
            Action::Nothing | Action::Wait(_) => {}
        }
    }

    proptest! {
        #[test]
        fn every_situation_settles_within_five_steps(
            wanted in prop::option::of("h[12]"),
            found_hash in prop::option::of("h[12]"),
            state in prop::sample::select(vec![
                FoundState::Created, FoundState::Running, FoundState::Exited(Some(1)), FoundState::Dead,
            ]),
            image in prop::sample::select(vec![Image::Unknown, Image::Missing, Image::Present]),
            cpu in 100u32..102,
        ) {
            let cpu = MilliCores(cpu);
            let wanted = wanted.map(|hash| ContainerSpec { cpu, ..spec("t", &hash) });
            let mut found = found_hash.map(|hash| self::found("t", &hash, state));
            let mut image = image;
            for _ in 0..5 {
                let situation = Situation { image, ..situation(wanted.as_ref(), found.as_ref()) };
                carry_out(step(&situation), wanted.as_ref(), &mut found, &mut image);
            }
            let settled = Situation { image, ..situation(wanted.as_ref(), found.as_ref()) };
            prop_assert_eq!(step(&settled), Action::Nothing);
            prop_assert_eq!(found.as_ref().map(|found| found.limits), wanted.as_ref().map(|spec| Limits::of(spec).into()));
            prop_assert_eq!(found.map(|found| found.spec_hash), wanted.map(|spec| spec.spec_hash));
        }
    }
}
