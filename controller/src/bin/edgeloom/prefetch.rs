//! `edgeloom prefetch`: images that nodes hold ready.

use crate::client::Client;
use crate::commands::Printer;
use crate::error::Error;
use crate::table::Table;
use clap::Args;
use edgeloom_common::ids::NodeId;
use edgeloom_common::prefetch::{
    Hold, PrefetchList, PrefetchNode, PrefetchOn, PrefetchRequest, PrefetchView,
};
use edgeloom_common::report::PrefetchPhase;

#[derive(Debug, Args)]
pub(crate) struct PrefetchArguments {
    /// As in job documents; none: list what is held ready.
    image: Option<String>,
    /// Only on this node; may be given several times. Without it where it was before, a new image everywhere.
    #[arg(long = "node", value_name = "NAME", requires = "image")]
    nodes: Vec<NodeId>,
    /// On every node, those to come too.
    #[arg(long, requires = "image", conflicts_with = "nodes")]
    all: bool,
    /// It may go when room is needed.
    #[arg(long, requires = "image")]
    unpin: bool,
    /// Hold it ready no more.
    #[arg(long, requires = "image", conflicts_with_all = ["nodes", "all", "unpin"])]
    release: bool,
}

pub(crate) fn prefetch(
    client: &Client,
    printer: &Printer,
    arguments: PrefetchArguments,
) -> Result<(), Error> {
    const PATH: &str = "/v1/images/prefetch";
    let PrefetchArguments { image, nodes, all, unpin, release } = arguments;
    let Some(image) = image else {
        return printer.print(&client.fetch::<PrefetchList>(PATH)?, |list| table(&list.images));
    };
    let on = match nodes.is_empty() {
        true if all => PrefetchOn::All,
        true => PrefetchOn::Same,
        false => PrefetchOn::Nodes(nodes),
    };
    let hold = match (release, unpin) {
        (true, _) => Hold::Released,
        (false, true) => Hold::Unpinned,
        (false, false) => Hold::Pinned,
    };
    let view: PrefetchView = client.post_json(PATH, &PrefetchRequest { image, on, hold })?;
    printer.print(&view, |view| match hold {
        Hold::Released => format!("{}: not held ready any more\n", view.image),
        Hold::Pinned | Hold::Unpinned => table(std::slice::from_ref(view)),
    })
}

fn table(images: &[PrefetchView]) -> String {
    let mut table = Table::new(["IMAGE", "PINNED", "NODE", "STATE"]);
    for image in images {
        let pinned = if image.pinned { "yes" } else { "no" };
        for node in &image.nodes {
            table.row([image.image.clone(), pinned.to_owned(), node.node.to_string(), state(node)]);
        }
        if image.nodes.is_empty() {
            table.row([image.image.clone(), pinned.to_owned(), "-".to_owned(), "no node yet".to_owned()]);
        }
    }
    table.text()
}

fn state(node: &PrefetchNode) -> String {
    match node.phase {
        PrefetchPhase::Waiting => "waiting".to_owned(),
        PrefetchPhase::Pulling => match node.bytes_total {
            Some(total) => format!("pulling {} of {total}", node.bytes_fetched),
            None => "pulling".to_owned(),
        },
        PrefetchPhase::Present => "present".to_owned(),
        PrefetchPhase::Failed => format!("failed: {}", node.error),
        PrefetchPhase::Removed => "removed to make room".to_owned(),
        PrefetchPhase::Unknown => "unknown".to_owned(),
    }
}
