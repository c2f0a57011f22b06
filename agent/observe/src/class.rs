//! The hardware class: one word for machines that compute alike, so that what is measured on one of them
//! holds for all.
//!
//! The board's name where the firmware tells it (device tree), else the processor's; then the architecture and
//! the CPU that containers may use, since a share of a machine does not run as the whole of it.

use crate::machine::{Machine, MachineError};
use edgeloom_common::units::MilliCores;
use std::path::Path;

/// Where the firmware's device tree names the board (Devicetree Specification, property `model`).
const BOARD: &str = "/proc/device-tree/model";
/// Words that say nothing about the machine.
const EMPTY_WORDS: [&str; 5] = ["r", "tm", "cpu", "processor", "core"];
/// The model's part of the word.
const MODEL_MAX: usize = 48;

/// The class of this machine, or of the share of it that has so much CPU.
///
/// # Errors
/// When the machine does not read.
pub fn class(cpu: MilliCores) -> Result<String, MachineError> {
    let model = match std::fs::read(Path::new(BOARD)) {
        Ok(board) => String::from_utf8_lossy(&board).into_owned(),
        Err(_) => Machine::open()?.cpu_model().to_owned(),
    };
    Ok(word(&model, std::env::consts::ARCH, cpu))
}

fn word(model: &str, architecture: &str, cpu: MilliCores) -> String {
    let lower = model.to_ascii_lowercase();
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty() && !EMPTY_WORDS.contains(word)).collect();
    let mut name = words.join("-");
    name.truncate(MODEL_MAX);
    let name = name.trim_end_matches('-');
    let name = if name.is_empty() { "unknown" } else { name };
    format!("{name}-{architecture}-{}m", cpu.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_becomes_one_word() {
        let cases = [
            ("Raspberry Pi 4 Model B Rev 1.4\0", "raspberry-pi-4-model-b-rev-1-4-aarch64-400m"),
            ("Intel(R) Xeon(R) CPU @ 2.20GHz", "intel-xeon-2-20ghz-aarch64-400m"),
            ("AMD EPYC 7B13", "amd-epyc-7b13-aarch64-400m"),
            (" \u{fffd}/../ ", "unknown-aarch64-400m"),
        ];
        for (model, wanted) in cases {
            assert_eq!(word(model, "aarch64", MilliCores(400)), wanted);
        }
        assert!(word(&"x y ".repeat(100), "a", MilliCores(1)).len() < 60);
    }

    #[test]
    fn this_machine_has_a_class() {
        let class = class(MilliCores(2000)).unwrap();
        assert!(class.ends_with("-2000m") && !class.starts_with('-'), "{class}");
    }
}
