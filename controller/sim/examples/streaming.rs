//! Prints the streaming experiment as JSON: `streaming [SEEDS [NODES [LINK_MBIT [RAW_MBIT [PROFILES]]]]]`. It
//! needs nothing but the scheduler to build; `edgeloom sim streaming` has all options.

use edgeloom_sim::streaming::{Execution, Settings, run_streaming};

fn main() -> Result<(), edgeloom_sim::SimError> {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<u32>().unwrap_or(0));
    let mut settings = Settings::default();
    if let Some(seeds) = numbers.next() {
        settings.seeds = u64::from(seeds);
    }
    if let Some(nodes) = numbers.next() {
        settings.nodes = nodes as usize;
    }
    if let Some(rate) = numbers.next() {
        settings.link_bps = f64::from(rate) * 1e6;
    }
    if let Some(raw) = numbers.next() {
        settings.raw_bits = f64::from(raw) * 1e6;
    }
    if let Some(profiles) = std::env::args().nth(5) {
        settings.profiles = profiles.split(',').map(str::to_owned).collect();
    }
    let execution = Execution { threads: edgeloom_sim::available_threads(), progress: &|_| () };
    let experiment = run_streaming(&settings, &execution)?;
    println!(
        "{}",
        serde_json::to_string_pretty(&experiment).expect("an experiment is plain numbers and names")
    );
    Ok(())
}
