//! The hottest thermal zone (kernel documentation, driver-api/thermal/sysfs-api).

use std::path::Path;

const ZONES: &str = "/sys/class/thermal";
/// Boards have a handful.
const ZONES_MAX: usize = 64;

/// Thousandths of a degree Celsius of the hottest zone; none where the machine has no sensor that reads.
#[must_use]
pub fn millicelsius() -> Option<i32> {
    below(Path::new(ZONES))
}

fn below(zones: &Path) -> Option<i32> {
    let entries = std::fs::read_dir(zones).ok()?.flatten().take(ZONES_MAX);
    let zone = |name: &std::ffi::OsStr| name.as_encoded_bytes().starts_with(b"thermal_zone");
    entries
        .filter(|entry| zone(&entry.file_name()))
        .filter_map(|entry| std::fs::read_to_string(entry.path().join("temp")).ok()?.trim().parse().ok())
        .max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_hottest_zone_counts_and_a_dead_sensor_does_not() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(below(root.path()), None);
        let zones = [("thermal_zone0", "41000\n"), ("thermal_zone1", "57500\n"), ("thermal_zone2", "\n")];
        for (name, text) in zones.into_iter().chain([("cooling_device0", "99000\n")]) {
            fs::create_dir(root.path().join(name)).unwrap();
            fs::write(root.path().join(name).join("temp"), text).unwrap();
        }
        assert_eq!(below(root.path()), Some(57_500));
        assert_eq!(below(&root.path().join("none")), None);
    }
}
