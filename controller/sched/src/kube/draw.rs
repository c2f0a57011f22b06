//! A number for a task on a node, as good as drawn.

use crate::one_by_one::Turn;

/// FNV-1a (its published offset and prime) over seed and names, then the finaliser of `SplitMix64`, without
/// which names that differ in their last letter would stay near each other.
pub(super) fn draw(turn: &Turn<'_>, node: usize) -> u64 {
    let graph = turn.case.graph;
    let names = [
        graph.job.name.as_str(),
        graph.vertices[turn.vertex].name.as_str(),
        turn.case.world.name(node).as_str(),
    ];
    let seed = turn.case.world.seed.to_le_bytes();
    let bytes = seed.into_iter().chain(names.into_iter().flat_map(|name| name.bytes().chain([0])));
    let mut hash = bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}
