//! `edgeloom events`: what happened, and with `-f` what happens from now on.

use crate::arguments::Output;
use crate::client::Client;
use crate::error::Error;
use crate::table::Table;
use crate::units::known;
use edgeloom_common::ids::JobName;
use edgeloom_common::view::{EventList, EventView};
use std::io::{self, Write};
use std::thread::sleep;
use std::time::Duration;

/// Pause between two looks.
const INTERVAL: Duration = Duration::from_secs(1);

pub(crate) fn table(list: &EventList) -> String {
    let mut table = Table::new(["TIME", "JOB", "KIND", "EVENT"]);
    for event in &list.events {
        table.row(cells(event));
    }
    table.text()
}

/// Every event that is kept.
pub(crate) fn list(client: &Client, job: Option<&JobName>) -> Result<EventList, Error> {
    after(client, job, 0)
}

/// Prints events as they come, for ever: a line each, as JSON or for people.
pub(crate) fn follow(client: &Client, job: Option<&JobName>, output: Output) -> Result<(), Error> {
    let mut last = 0;
    let mut out = io::stdout().lock();
    loop {
        for event in after(client, job, last)?.events {
            last = event.number;
            let line = match output {
                Output::Json => serde_json::to_string(&event).expect("it was read from JSON before"),
                Output::Table | Output::Csv => cells(&event).join("  ").replace(char::is_control, " "),
            };
            writeln!(out, "{line}")?;
        }
        out.flush()?;
        sleep(INTERVAL);
    }
}

fn after(client: &Client, job: Option<&JobName>, last: u64) -> Result<EventList, Error> {
    let of_job = job.map(|job| format!("&job={job}")).unwrap_or_default();
    client.fetch(&format!("/v1/events?after={last}{of_job}"))
}

fn cells(event: &EventView) -> [String; 4] {
    let job = known(event.job.as_ref(), ToString::to_string);
    [clock(event.at_ms), job, event.kind.clone(), event.text.clone()]
}

/// The time of day, UTC.
pub(crate) fn clock(at_ms: u64) -> String {
    let seconds = at_ms / 1000 % 86_400;
    format!("{:02}:{:02}:{:02}Z", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_a_row_with_its_time_of_day() {
        let event = EventView {
            number: 4,
            at_ms: 1_700_000_000_000,
            job: None,
            kind: "link-down".to_owned(),
            text: "link n1-n2 is down".to_owned(),
        };
        let text = table(&EventList { events: vec![event] });
        assert!(text.ends_with("22:13:20Z  -    link-down  link n1-n2 is down\n"), "{text}");
    }
}
