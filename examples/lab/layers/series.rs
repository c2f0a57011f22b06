//! One profile: the requests one after the other, each measured before the next is made.

use super::Contender;
use super::cell::Cell;
use super::load::{self, Load};
use super::pull::{self, Outcome};
use super::report::{ContainerRow, SeriesRow};
use super::requests::{Request, Requests};
use crate::ground::Ground;
use anyhow::{Context, Result};

/// Plays it on empty image stores; what it leaves there is not taken away.
pub(super) fn play(
    ground: &Ground,
    cell: &Cell,
    contender: &Contender<'_>,
    requests: &Requests,
) -> Result<SeriesRow> {
    let disk_before = load::disks(ground)?;
    let mut rows: Vec<ContainerRow> = Vec::new();
    for request in &requests.list {
        let outcome = pull::run(ground, &request.document(contender.profile));
        let outcome = outcome.with_context(|| format!("{} under {}", request.job(), contender.name))?;
        if let Outcome::NoRoom(_) = &outcome {
            // One that waits would take room as soon as there is some.
            ground.api.request(&crate::api::Request::Delete(&format!("/v1/jobs/{}", request.job())))?;
        }
        let so_far = rows.last().map_or(0, |row| row.cumulative_bytes);
        let mut row = measured(ground, request, outcome)?;
        row.cumulative_bytes = so_far + row.pull.uplink_bytes();
        row.disk_bytes = load::disks(ground)?.saturating_sub(disk_before);
        row.print();
        rows.push(row);
    }
    let row = SeriesRow::new(cell, contender.name, rows);
    Ok(SeriesRow { order: requests.order, bytes_least: requests.bytes_least, ..row })
}

fn measured(ground: &Ground, request: &Request, outcome: Outcome) -> Result<ContainerRow> {
    let (pull, detail) = match outcome {
        Outcome::Runs(pull) => (Some(pull), String::new()),
        Outcome::NoRoom(why) => (None, why),
    };
    Ok(ContainerRow {
        number: request.number,
        image: request.image.clone(),
        cpu_millicores: request.cpu_m,
        memory_bytes: request.memory.0,
        placed: pull.is_some(),
        detail,
        load: Load::with(ground, pull.as_ref().map(|pull| pull.node.as_str()))?,
        pull: pull.unwrap_or_default(),
        disk_bytes: 0,
        cumulative_bytes: 0,
    })
}
