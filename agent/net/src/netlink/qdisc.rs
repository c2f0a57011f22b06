//! Queueing disciplines: the HTB root of an interface and the leaf queue of a class.
//!
//! Attributes as in `linux/pkt_sched.h`. A fifo's options are a bare struct, HTB's are nested.

use super::message::Message;
use super::socket::Connection;
use crate::kernel::KernelError;
use crate::object::{Leaf, Root};
use crate::tag::{DEFAULT_MINOR, HTB_MAJOR};
use netlink_packet_core::{DefaultNla, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcOption};

/// `TCA_OPTIONS`
pub(super) const OPTIONS: u16 = 2;
/// `TCA_HTB_INIT`
const HTB_INIT: u16 = 2;
/// `tc_htb_glob.version` that the kernel accepts.
const HTB_VERSION: u32 = 3;
/// `tc_htb_glob.rate2quantum`, its usual value; every class sets its quantum itself.
const RATE_TO_QUANTUM: u32 = 10;

/// Our HTB root.
pub(crate) const ROOT: TcHandle = TcHandle { major: HTB_MAJOR, minor: 0 };

/// One discipline as listed.
#[derive(Debug)]
pub(crate) enum Listed {
    Root { index: u32, root: Root },
    Leaf { index: u32, minor: u16, leaf: Leaf },
}

/// Roots of all interfaces and leaves below our roots.
pub(crate) fn list(connection: &mut Connection<Message>) -> Result<Vec<Listed>, KernelError> {
    connection.dump(
        || Message::GetQueueDiscipline(TcMessage::default()),
        |message| match message {
            Message::NewQueueDiscipline(qdisc) => read(&qdisc),
            _ => None,
        },
    )
}

fn read(qdisc: &TcMessage) -> Option<Listed> {
    let index = u32::try_from(qdisc.header.index).ok()?;
    let kind = kind(qdisc)?;
    if qdisc.header.parent == TcHandle::ROOT {
        let root = match qdisc.header.handle {
            // Only what the kernel attached by itself has no handle.
            handle if handle == TcHandle::UNSPEC => Root::Kernel,
            handle if handle == ROOT && kind == "htb" => Root::Ours,
            _ => Root::Foreign { kind: kind.to_owned() },
        };
        return Some(Listed::Root { index, root });
    }
    if qdisc.header.parent.major != HTB_MAJOR {
        return None;
    }
    let leaf = match kind {
        "fq_codel" => Leaf::FqCodel,
        "bfifo" => fifo_limit(qdisc).map_or(Leaf::Other, |limit| Leaf::Bfifo { limit }),
        _ => Leaf::Other,
    };
    Some(Listed::Leaf { index, minor: qdisc.header.parent.minor, leaf })
}

pub(super) fn kind(message: &TcMessage) -> Option<&str> {
    message.attributes.iter().find_map(|attribute| match attribute {
        TcAttribute::Kind(kind) => Some(kind.as_str()),
        _ => None,
    })
}

/// The bytes of `TCA_OPTIONS` of a kind that the packet library does not know.
pub(super) fn raw_options(message: &TcMessage) -> Option<Vec<u8>> {
    use netlink_packet_core::Nla;
    let options = message.attributes.iter().find_map(|attribute| match attribute {
        TcAttribute::Options(options) => options.first(),
        _ => None,
    })?;
    let TcOption::Other(raw) = options else {
        return None;
    };
    let mut bytes = vec![0; raw.value_len()];
    raw.emit_value(&mut bytes);
    Some(bytes)
}

fn fifo_limit(qdisc: &TcMessage) -> Option<u32> {
    let options = raw_options(qdisc)?;
    Some(u32::from_ne_bytes(options.get(..4)?.try_into().ok()?))
}

/// Puts our HTB at the root; refused when someone else's is there.
pub(crate) fn add_root(connection: &mut Connection<Message>, index: u32) -> Result<(), KernelError> {
    let global = [HTB_VERSION, RATE_TO_QUANTUM, u32::from(DEFAULT_MINOR), 0, 0];
    let global: Vec<u8> = global.into_iter().flat_map(u32::to_ne_bytes).collect();
    let mut qdisc = message(index, TcHandle::ROOT, ROOT);
    qdisc.attributes.push(TcAttribute::Kind("htb".to_owned()));
    qdisc.attributes.push(TcAttribute::Options(vec![TcOption::Other(DefaultNla::new(HTB_INIT, global))]));
    connection.request(Message::NewQueueDiscipline(qdisc), NLM_F_CREATE | NLM_F_EXCL)
}

/// Removes our HTB with all below; the kernel's default comes back.
pub(crate) fn remove_root(connection: &mut Connection<Message>, index: u32) -> Result<(), KernelError> {
    let qdisc = message(index, TcHandle::ROOT, ROOT);
    connection.request(Message::DelQueueDiscipline(qdisc), 0)
}

/// Gives a class its queue; one of the same kind is changed in place.
pub(crate) fn put_leaf(
    connection: &mut Connection<Message>,
    index: u32,
    minor: u16,
    leaf: Leaf,
) -> Result<(), KernelError> {
    let mut qdisc = message(index, TcHandle { major: HTB_MAJOR, minor }, TcHandle::UNSPEC);
    match leaf {
        Leaf::FqCodel => qdisc.attributes.push(TcAttribute::Kind("fq_codel".to_owned())),
        Leaf::Bfifo { limit } => {
            qdisc.attributes.push(TcAttribute::Kind("bfifo".to_owned()));
            let limit = limit.to_ne_bytes().to_vec();
            qdisc.attributes.push(TcAttribute::Other(DefaultNla::new(OPTIONS, limit)));
        }
        Leaf::Other => return Ok(()),
    }
    connection.request(Message::NewQueueDiscipline(qdisc), NLM_F_CREATE | NLM_F_REPLACE)
}

pub(super) fn message(index: u32, parent: TcHandle, handle: TcHandle) -> TcMessage {
    let mut message =
        TcMessage::with_index(i32::try_from(index).expect("interface indices are positive ints"));
    message.header.parent = parent;
    message.header.handle = handle;
    message
}
