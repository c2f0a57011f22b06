//! Scores of nodes for one task: the plugins of the Kubernetes scheduler, and how loaded nodes are.
//!
//! In: one task's turn. Out: whole numbers of 0 to 100, one an open node, with Go's integer divisions where
//! Kubernetes has them (v1.23 to v1.32). The formulas stand in files of their own over plain numbers, held
//! against Kubernetes' own test tables; `kube` adds them up with their weights.

mod affinity;
pub(crate) mod kube;
pub(crate) mod load;
mod locality;
mod normal;
pub(crate) mod resources;
mod spread;
mod volume;

#[cfg(test)]
mod composite;
#[cfg(test)]
mod golden;

/// The best score of a plugin.
pub(crate) const BEST: i64 = 100;
