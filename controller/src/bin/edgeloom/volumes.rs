//! `edgeloom volume`: what nodes keep for tasks.

use crate::arguments::VolumeCommand;
use crate::client::Client;
use crate::commands::Printer;
use crate::error::Error;
use crate::table::Table;
use edgeloom_common::volume::VolumeList;

pub(crate) fn volume(client: &Client, printer: &Printer, command: VolumeCommand) -> Result<(), Error> {
    match command {
        VolumeCommand::List => printer.print(&client.fetch::<VolumeList>("/v1/volumes")?, table),
        VolumeCommand::Remove { node, volume } => client.remove(&format!("/v1/volumes/{node}/{volume}")),
    }
}

fn table(list: &VolumeList) -> String {
    let mut table = Table::new(["VOLUME", "NODE", "STATE"]);
    for view in &list.volumes {
        let state = match (view.used, view.online) {
            (true, _) => "of a job that is there",
            (false, true) => "kept",
            (false, false) => "kept, node offline",
        };
        table.row([view.volume.to_string(), view.node.to_string(), state.to_owned()]);
    }
    table.text()
}
