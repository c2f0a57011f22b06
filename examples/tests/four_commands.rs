//! From two bare machines to a running job in the four commands that README.md and systemd/README.md print,
//! typed as they stand there. Each machine is a systemd of its own with the files that are shipped; the
//! job's container really runs, and whoever shows no certificate and no token stays outside.

#[path = "four_commands/outsider.rs"]
mod outsider;
#[path = "four_commands/site.rs"]
mod site;

use site::Site;

const OVERVIEW: &str = include_str!("../../README.md");
const OPERATING: &str = include_str!("../../systemd/README.md");
/// Stands for what `token create` prints.
const TOKEN: &str = "el1.…";

/// A command and the machine it is typed on.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Typed {
    machine: String,
    command: String,
}

/// The commands of the one block with prompts, without what explains them.
fn commands(text: &str) -> Vec<Typed> {
    let blocks = text.split("```").skip(1).step_by(2);
    let mut prompted = blocks.filter(|block| block.contains("\nmaster# "));
    let block = prompted.next().expect("the commands are there");
    assert!(prompted.next().is_none(), "and nowhere else");
    let read = |line: &str| {
        let (machine, command) = line.split_once('#').expect("every line has a prompt");
        let command = command.split("  #").next().unwrap_or_default().trim();
        Typed { machine: machine.to_owned(), command: command.to_owned() }
    };
    block.lines().skip(1).filter(|line| !line.is_empty()).map(read).collect()
}

#[test]
fn the_same_four_commands_are_printed_everywhere() {
    assert_eq!(commands(OVERVIEW), commands(OPERATING));
    assert_eq!(commands(OPERATING).len(), 4);
}

#[test]
fn four_commands_lead_from_two_bare_machines_to_a_running_job() {
    let Some(site) = Site::make() else { return };
    let mut token = TOKEN.to_owned();
    for Typed { machine, command } in commands(OPERATING) {
        let printed = site.type_in(&machine, &command.replace(TOKEN, &token));
        if command == "edgeloom token create" {
            token = printed.trim().to_owned();
        }
    }
    site.units_come_back_after_a_boot();
    site.container_works();
    site.only_tokens_open_the_api();
    site.only_certificates_open_the_broker();
}
