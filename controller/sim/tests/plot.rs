//! Figures: read as XML, with a mark or a bar for every row.

use edgeloom_sim::layers::{Settings as LayerSettings, run_layers};
use edgeloom_sim::plot::{layers_svg, svg};
use edgeloom_sim::streaming::{Execution, Experiment, Settings, run_streaming};
use quick_xml::Reader;
use quick_xml::events::Event;
use std::collections::BTreeMap;

fn experiment(sweep: Option<&str>) -> Experiment {
    let profiles = ["lr", "tp", "edgeloom"].map(str::to_owned).to_vec();
    let sweep = sweep.map(|sweep| sweep.parse().unwrap());
    let settings = Settings { seeds: 2, nodes: 6, jobs: 4, profiles, sweep, ..Settings::default() };
    run_streaming(&settings, &Execution { threads: 2, progress: &|_| () }).unwrap()
}

/// How often each element occurs, and all text. Tags that do not match are an error of the reader.
fn elements(svg: &str) -> (BTreeMap<String, usize>, String) {
    let mut reader = Reader::from_str(svg);
    reader.config_mut().check_end_names = true;
    let (mut counts, mut text, mut depth) = (BTreeMap::new(), String::new(), 0);
    loop {
        let name = match reader.read_event().unwrap() {
            Event::Eof => break,
            Event::Start(tag) => {
                depth += 1;
                String::from_utf8(tag.name().as_ref().to_vec()).unwrap()
            }
            Event::Empty(tag) => String::from_utf8(tag.name().as_ref().to_vec()).unwrap(),
            Event::End(_) => {
                depth -= 1;
                continue;
            }
            Event::Text(words) => {
                text.push_str(std::str::from_utf8(&words).unwrap());
                continue;
            }
            _ => continue,
        };
        *counts.entry(name).or_default() += 1;
    }
    assert_eq!(depth, 0);
    (counts, text)
}

#[test]
fn bars_stand_for_the_profiles() {
    let (counts, text) = elements(&svg(&experiment(None)));
    // The ground, and three in each of four panels.
    assert_eq!(counts["rect"], 1 + 4 * 3);
    for word in ["edgeloom", "tp", "items/s", "Mean waiting time", "95%", "1 Mbit/s"] {
        assert!(text.contains(word), "{word}");
    }
}

#[test]
fn a_sweep_draws_marked_lines_over_its_axis() {
    let (counts, text) = elements(&svg(&experiment(Some("bandwidth=1Mbit/s,5Mbit/s"))));
    // The mark of lr is a disc, the others' are polygons: one in the legend, two in each panel.
    assert_eq!((counts["circle"], counts["polygon"]), (1 + 4 * 2, 2 * (1 + 4 * 2)));
    assert!(text.contains("mean link bandwidth (Mbit/s)"), "{text}");
    assert!(!svg(&experiment(None)).contains("NaN"));
}

#[test]
fn layers_have_a_bar_a_profile_and_a_line_over_the_containers() {
    let settings = LayerSettings { seeds: 2, containers: 5, ..LayerSettings::default() };
    let experiment = run_layers(&settings, &Execution { threads: 2, progress: &|_| () }).unwrap();
    let (counts, text) = elements(&layers_svg(&experiment));
    assert_eq!(counts["rect"], 1 + 7 * 4);
    // The mark of kube is a disc: one in the legend, one a container.
    assert_eq!(counts["circle"], 1 + 5);
    assert!(text.contains("Downloaded after each container") && text.contains("4 nodes"), "{text}");
}
