//! The run for the profiler: the work of a stated number of items and nothing else, then the end.

use crate::noise::Noise;
use crate::settings::{SettingError, Settings};
use crate::work::Work;
use std::ffi::OsString;

/// The variable that says how many items.
pub const ITEMS: &str = "EDGELOOM_ITEMS";

/// Burns the work of so many items of a stage.
///
/// # Errors
/// The number is missing or does not read.
pub fn measure(settings: &Settings, items: Option<OsString>) -> Result<u32, SettingError> {
    let key = || ITEMS.to_owned();
    let text = items.ok_or_else(|| SettingError::Missing { key: key() })?.to_string_lossy().into_owned();
    let items = text.parse().map_err(|_| SettingError::Unreadable { key: key(), value: text })?;
    let mut work = Work::new(settings.work_ns, Noise::new(&settings.task, settings.work_noise));
    (0..items).for_each(|_| work.burn());
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_items_are_worked_on_and_no_number_is_told() {
        let settings = Settings::read([("EDGELOOM_TASK".into(), "a".into())].into_iter()).unwrap();
        assert_eq!(measure(&settings, Some("3".into())), Ok(3));
        assert_eq!(measure(&settings, None), Err(SettingError::Missing { key: ITEMS.to_owned() }));
        assert!(matches!(measure(&settings, Some("few".into())), Err(SettingError::Unreadable { .. })));
    }
}
