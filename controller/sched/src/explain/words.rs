//! Numbers and limits as the explanation writes them.

use crate::job_graph::{Edge, JobGraph};
use crate::streaming::Case;
use crate::streaming::predict::Limiter;
use crate::world::World;

/// Items a second with three or four figures that count.
pub(super) fn items(items_per_s: f64) -> String {
    match items_per_s {
        large if large >= 1000.0 => format!("{large:.0}"),
        large if large >= 100.0 => format!("{large:.1}"),
        small if small < 0.1 => format!("{small:.4}"),
        middle => format!("{middle:.2}"),
    }
}

/// `detect->track`.
pub(super) fn edge(graph: &JobGraph<'_>, edge: &Edge) -> String {
    format!("{}->{}", graph.vertices[edge.from].name, graph.vertices[edge.to].name)
}

/// `n1->n2`, of an arc.
pub(super) fn arc(world: &World<'_>, arc: usize) -> String {
    let arc = world.graph.arcs[arc];
    format!("{}->{}", world.name(arc.from), world.name(arc.to))
}

/// What source or processor a limit is; empty for the network and for nothing at all.
pub(super) fn compute(case: &Case<'_>, by: Limiter) -> String {
    match by {
        Limiter::Source => "the source's rate".to_owned(),
        Limiter::Task(vertex) => format!("the CPU of {}", case.graph.vertices[vertex].name),
        Limiter::Node(node) => format!("node {}", case.world.name(node)),
        Limiter::Nothing | Limiter::Flow(_) => String::new(),
    }
}
