//! What containers used, and what it costs: a record each, as `GET /v1/usage` lists them.

use crate::ids::{JobName, NodeId, TaskName};
use crate::job::Sla;
use crate::price::{Micros, Prices};
use serde::{Deserialize, Serialize};

/// The most closed records that one answer holds.
pub const PAGE_MAX: usize = 1000;

/// One task's container on one node, through its restarts, for as long as it stays there or until the day ends:
/// the next record goes on where this one ends, and nothing is in two.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageView {
    /// Rises with each record that is closed; none while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    pub job: JobName,
    pub task: TaskName,
    pub node: NodeId,
    /// Docker's id, the last one if it was made anew there.
    pub container: String,
    /// Containers of the same task in all, this one counted; the task that it is a further one of.
    pub copies: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_of: Option<TaskName>,
    /// The services that the job asks for.
    #[serde(default, skip_serializing_if = "Sla::is_default")]
    pub sla: Sla,
    /// When the job was accepted; tells jobs of one name apart. All times are the controller's, in milliseconds
    /// since 1970.
    pub accepted_ms: u64,
    /// What was used between these two is in the record; none: to this moment.
    pub from_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<u64>,
    pub end: UsageEnd,
    /// When the node last told of it.
    pub heard_ms: u64,
    /// How often it was seen to start.
    pub runs: u32,
    /// From acceptance to a place, and from there until it ran: once a container, in its first record.
    pub queued_ms: u64,
    pub starting_ms: u64,
    /// For how long it ran, by the node's steady clock; and that its counters tell of.
    pub running_ms: u64,
    /// Processor time, as the kernel counted it.
    pub cpu_us: u64,
    /// Bytes of memory times seconds.
    pub memory_byte_s: u64,
    /// What its limits let it use meanwhile.
    pub reserved_cpu_us: u64,
    pub reserved_memory_byte_s: u64,
    /// What its own interface sent and received.
    pub sent_bytes: u64,
    pub received_bytes: u64,
    /// Of its image, fetched for it.
    pub pulled_bytes: u64,
    /// None without a price table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub charge: Option<Charge>,
}

impl UsageView {
    /// How long it waited.
    #[must_use]
    pub fn waited_ms(&self) -> u64 {
        self.queued_ms.saturating_add(self.starting_ms)
    }

    /// Something was used, or waited for.
    #[must_use]
    pub fn tells_something(&self) -> bool {
        let figures = [self.running_ms, self.cpu_us, self.sent_bytes, self.received_bytes, self.pulled_bytes];
        self.waited_ms() > 0 || figures.iter().any(|figure| *figure > 0)
    }
}

/// Why a record ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UsageEnd {
    /// It goes on.
    Open,
    /// The container is there no more.
    Ended,
    /// Its node cannot be heard: all until it was last heard is in the record.
    UntilLastHeard,
    /// The day, UTC.
    Day,
    /// Other prices hold from then on.
    Prices,
    /// A word of a later version.
    #[serde(other)]
    Unknown,
}

/// What a record costs; amounts are rounded down to the millionth.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charge {
    pub currency: String,
    /// The price table that held.
    pub prices_version: u32,
    pub cpu_micros: Micros,
    pub memory_micros: Micros,
    pub sent_micros: Micros,
    pub pulled_micros: Micros,
    /// Less this, for waiting longer than was promised; never more than the rest together.
    pub credit_micros: Micros,
    pub total_micros: Micros,
}

/// Prices, and which table they are: it rises with each change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tariff {
    pub version: u32,
    pub prices: Prices,
}

/// `GET /v1/usage`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageList {
    /// Closed ones by their numbers, then those that are open.
    pub records: Vec<UsageView>,
    /// There are more: ask again with `after` set to this. Open ones come with the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
    /// Nothing used before is here, but for closed records: accounts begin with the controller's state, and again when it
    /// is lost or replaced.
    pub counted_since_ms: u64,
    /// Kept records that are damaged on the disk.
    #[serde(default)]
    pub unreadable: u64,
    /// What holds now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tariff: Option<Tariff>,
}
