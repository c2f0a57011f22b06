//! Docker's times of a container's run. What never happened has one of the year 1.

use crate::engine::Times;
use bollard::models::ContainerState;
use std::time::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Since 1970; none for what never happened.
pub(super) fn since_1970(text: Option<&str>) -> Option<Duration> {
    let time = OffsetDateTime::parse(text?, &Rfc3339).ok()?;
    u64::try_from(time.unix_timestamp_nanos()).ok().map(Duration::from_nanos)
}

/// Of the last run: while it goes on, Docker still tells the end of the one before.
pub(super) fn of(state: &ContainerState) -> Times {
    let ms = |text: &Option<String>| u64::try_from(since_1970(text.as_deref())?.as_millis()).ok();
    let started_ms = ms(&state.started_at);
    let finished_ms = ms(&state.finished_at).filter(|_| state.running != Some(true));
    Times { started_ms, finished_ms: finished_ms.filter(|end| started_ms.is_some_and(|start| start <= *end)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_told_only_after_the_last_start() {
        let state = |started: &str, finished: &str, running| ContainerState {
            started_at: Some(started.to_owned()),
            finished_at: Some(finished.to_owned()),
            running: Some(running),
            ..Default::default()
        };
        let (never, early, late) = ("0001-01-01T00:00:00Z", "2026-01-01T00:00:01Z", "2026-01-01T00:00:02.5Z");
        let (early_ms, late_ms) = (1_767_225_601_000, 1_767_225_602_500);
        assert_eq!(of(&state(never, never, false)), Times::default());
        assert_eq!(of(&state(late, early, true)), Times { started_ms: Some(late_ms), finished_ms: None });
        let ended = Times { started_ms: Some(early_ms), finished_ms: Some(late_ms) };
        assert_eq!(of(&state(early, late, false)), ended);
    }
}
