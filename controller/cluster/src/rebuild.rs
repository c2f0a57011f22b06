//! The state out of what lies on the disk: the journal's records, and the copy of the state that the store
//! keeps of some sequence. Pure.
//!
//! The store's copy has its own checksum, so where the journal lost records in both files and the copy
//! stands for all of them, nothing is lost either.

use crate::error::StartError;
use crate::journal::{Found, Record};
use crate::model::{Event, Model};

/// The state, and where it comes from.
#[derive(Debug)]
pub(crate) struct Rebuilt {
    pub(crate) model: Model,
    /// The journal's records from this one on are complete and lead there; none where some are lost and
    /// the store's copy stands in for them.
    pub(crate) from: Option<u64>,
}

/// The state after every acknowledged change, or what is missing.
pub(crate) fn rebuild(found: &Found, stored: Option<(u64, Model)>) -> Result<Rebuilt, StartError> {
    let base = found.base(Event::is_snapshot);
    let complete = found.complete_after(base.saturating_sub(1));
    match (complete, stored) {
        (_, Some((sequence, _))) if found.last() < sequence => {
            let missing = vec![(found.last() + 1, Some(sequence))];
            Err(StartError::Lost(Box::new(found.loss(base.saturating_sub(1), missing))))
        }
        (Ok(()), Some((sequence, model))) if base <= sequence => {
            Ok(Rebuilt { model: replay(model, found.after(sequence))?, from: Some(base.max(1)) })
        }
        (Ok(()), _) => {
            let records = found.after(base.saturating_sub(1));
            Ok(Rebuilt { model: replay(Model::first(), records)?, from: Some(base.max(1)) })
        }
        (Err(loss), Some((sequence, model))) => match found.complete_after(sequence) {
            Ok(()) => Ok(Rebuilt { model: replay(model, found.after(sequence))?, from: None }),
            Err(_) => Err(StartError::Lost(loss)),
        },
        (Err(loss), None) => Err(StartError::Lost(loss)),
    }
}

/// `model` after these records.
pub(crate) fn replay<'a>(
    mut model: Model,
    records: impl Iterator<Item = &'a Record>,
) -> Result<Model, StartError> {
    for record in records {
        model.apply(event(record)?);
    }
    Ok(model)
}

pub(crate) fn event(record: &Record) -> Result<Event, StartError> {
    serde_json::from_slice(&record.payload)
        .map_err(|source| StartError::Record { sequence: record.sequence, source })
}
