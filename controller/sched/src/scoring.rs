//! What the profiles that score nodes go by: weights of the Kubernetes plugins, thresholds, and the layer
//! score's weight. The defaults are those of Kubernetes and of the LRScheduler paper.

use edgeloom_common::units::Bytes;

/// All settings of scores.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scoring {
    pub plugins: Plugins,
    pub locality: Locality,
    pub layers: LayerScoring,
    pub room: Room,
}

/// What the default profile would rather pull than fill a node up or use it one-sidedly, for tasks that exchange
/// nothing: bytes of layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// For a node whose scarcer resource is full over one that is empty.
    pub fill: Bytes,
    /// For an imbalance of CPU and memory (Eq. 11) of 1 over none.
    pub imbalance: Bytes,
}

impl Default for Room {
    /// Found by trying 30 to 500 MB on 300 random orders of requests for images of 195 MB on average.
    fn default() -> Self {
        Self { fill: Bytes(60_000_000), imbalance: Bytes(200_000_000) }
    }
}

/// What each plugin's score of 0 to 100 counts for; 0 switches it off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plugins {
    pub image_locality: i64,
    pub taint_toleration: i64,
    pub node_affinity: i64,
    pub pod_topology_spread: i64,
    pub node_resources_fit: i64,
    pub balanced_allocation: i64,
    /// Off by default, as the alpha gate VolumeCapacityPriority of Kubernetes is.
    pub volume_binding: i64,
    pub inter_pod_affinity: i64,
}

impl Plugins {
    /// The default weights of `kubescheduler.config.k8s.io/v1beta2`.
    pub const V1BETA2: Self = Self {
        image_locality: 1,
        taint_toleration: 1,
        node_affinity: 1,
        pod_topology_spread: 2,
        node_resources_fit: 1,
        balanced_allocation: 1,
        volume_binding: 0,
        inter_pod_affinity: 1,
    };
    /// Those of `v1beta3` and `v1`.
    pub const V1: Self =
        Self { taint_toleration: 3, node_affinity: 2, inter_pod_affinity: 2, ..Self::V1BETA2 };
}

impl Default for Plugins {
    fn default() -> Self {
        Self::V1
    }
}

/// Between which sizes ImageLocality rises from 0 to 100.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Locality {
    pub least: Bytes,
    pub most: Bytes,
}

impl Default for Locality {
    fn default() -> Self {
        Self { least: Bytes(23 << 20), most: Bytes(1000 << 20) }
    }
}

/// How much the layer score counts beside another (LRScheduler, Eq. 4 and 13).
#[derive(Debug, Clone, PartialEq)]
pub struct LayerScoring {
    /// The weight of `layer`.
    pub fixed: f64,
    /// The weight of `lrs` where all conditions hold: that of the last step whose score is reached.
    pub steps: Vec<Step>,
    /// The weight of `lrs` elsewhere: the paper's `w2`.
    pub otherwise: f64,
    pub conditions: Vec<Condition>,
    /// What the layer score is added to.
    pub base: Base,
}

/// From this layer score on, this weight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    pub score: f64,
    pub weight: f64,
}

/// What has to hold of a node, with the container placed there, for the layer score to count more.
#[derive(Debug, Clone, PartialEq)]
pub enum Condition {
    /// More of the image's layers are there: `h_size`.
    LocalAbove(Bytes),
    /// A smaller share of the CPU is requested: `h_cpu`.
    CpuBelow(f64),
    MemoryBelow(f64),
    StorageBelow(f64),
    /// Half the difference of the CPU's and the memory's share (Eq. 11) is smaller: `h_std`.
    ImbalanceBelow(f64),
    Label {
        key: String,
        value: String,
    },
}

/// A score that layers are added to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    Kube,
    MostLoaded,
    LeastLoaded,
}

impl Default for LayerScoring {
    fn default() -> Self {
        Self {
            fixed: 4.0,
            steps: vec![Step { score: 0.0, weight: 2.0 }],
            otherwise: 0.5,
            conditions: vec![
                Condition::LocalAbove(Bytes(10_000_000)),
                Condition::CpuBelow(0.6),
                Condition::ImbalanceBelow(0.16),
            ],
            base: Base::Kube,
        }
    }
}
