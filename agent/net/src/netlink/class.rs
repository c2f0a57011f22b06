//! HTB classes: written, read back and counted.
//!
//! `tc_htb_opt` is two rate specifications, then burst and ceiling burst in scheduler ticks of 64 ns at
//! the class's rate, quantum, level and priority (`linux/pkt_sched.h`).

use super::message::Message;
use super::qdisc::{ROOT, kind, message, raw_options};
use super::socket::Connection;
use crate::kernel::KernelError;
use crate::object::{Class, Counter};
use crate::tag::{HTB_MAJOR, LINK_MINOR};
use netlink_packet_core::{DefaultNla, NLM_F_CREATE, NlasIterator};
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcOption, TcStats2};

/// `TCA_HTB_PARMS`
const PARMS: u16 = 1;
/// `TCA_HTB_RATE64` and `TCA_HTB_CEIL64`, for rates that 32 bits do not hold.
const RATE64: u16 = 6;
const CEIL64: u16 = 7;
/// Length of `tc_htb_opt` and the offsets of its fields.
const PARMS_LEN: usize = 44;
const RATE_AT: usize = 8;
const CEIL_AT: usize = 20;
const BUFFER_AT: usize = 24;
const PRIORITY_AT: usize = 40;
/// `TC_LINKLAYER_ETHERNET`: with it the kernel needs no rate table.
const LINKLAYER_ETHERNET: u8 = 1;
/// Bytes that a class may send in its turn: two full frames.
const QUANTUM: u32 = 2 * 1514;

/// Makes a class under the link's class, or changes it in place.
pub(crate) fn put(
    connection: &mut Connection<Message>,
    index: u32,
    minor: u16,
    class: Class,
) -> Result<(), KernelError> {
    let above = if minor == LINK_MINOR { ROOT } else { TcHandle { major: HTB_MAJOR, minor: LINK_MINOR } };
    let mut request = message(index, above, TcHandle { major: HTB_MAJOR, minor });
    request.attributes.push(TcAttribute::Kind("htb".to_owned()));
    request.attributes.push(TcAttribute::Options(options(class)));
    connection.request(Message::NewTrafficClass(request), NLM_F_CREATE)
}

/// Removes a class with its queue.
pub(crate) fn remove(
    connection: &mut Connection<Message>,
    index: u32,
    minor: u16,
) -> Result<(), KernelError> {
    let request = message(index, TcHandle::UNSPEC, TcHandle { major: HTB_MAJOR, minor });
    connection.request(Message::DelTrafficClass(request), 0)
}

/// Our classes of one interface with what they count.
pub(crate) fn list(
    connection: &mut Connection<Message>,
    index: u32,
) -> Result<Vec<(u16, Class, Counter)>, KernelError> {
    let request = || Message::GetTrafficClass(message(index, TcHandle::UNSPEC, TcHandle::UNSPEC));
    connection.dump(request, |answer| match answer {
        Message::NewTrafficClass(class) => read(&class),
        _ => None,
    })
}

fn read(message: &TcMessage) -> Option<(u16, Class, Counter)> {
    if kind(message)? != "htb" || message.header.handle.major != HTB_MAJOR {
        return None;
    }
    let class = parse(&raw_options(message)?)?;
    Some((message.header.handle.minor, class, counter(message)))
}

fn counter(message: &TcMessage) -> Counter {
    let mut counter = Counter::default();
    let stats = message.attributes.iter().find_map(|attribute| match attribute {
        TcAttribute::Stats2(stats) => Some(stats),
        _ => None,
    });
    for stat in stats.into_iter().flatten() {
        match stat {
            TcStats2::Basic(basic) => counter.bytes = basic.bytes,
            TcStats2::Queue(queue) => {
                counter.backlog = u64::from(queue.backlog);
                counter.packets = queue.qlen;
            }
            _ => {}
        }
    }
    counter
}

fn options(class: Class) -> Vec<TcOption> {
    let mut parms = [0u8; PARMS_LEN];
    put_rate(&mut parms, RATE_AT, class.rate);
    put_rate(&mut parms, CEIL_AT, class.ceil);
    let fields = [class.burst_ticks, class.ceil_burst_ticks, QUANTUM, 0, class.priority];
    for (place, field) in fields.into_iter().enumerate() {
        let at = BUFFER_AT + 4 * place;
        parms[at..at + 4].copy_from_slice(&field.to_ne_bytes());
    }
    let mut options = vec![TcOption::Other(DefaultNla::new(PARMS, parms.to_vec()))];
    for (kind, rate) in [(RATE64, class.rate), (CEIL64, class.ceil)] {
        if u32::try_from(rate).is_err() {
            options.push(TcOption::Other(DefaultNla::new(kind, rate.to_ne_bytes().to_vec())));
        }
    }
    options
}

/// A `tc_ratespec` ends with its rate; the link layer is its second byte.
fn put_rate(parms: &mut [u8; PARMS_LEN], at: usize, rate: u64) {
    parms[at - 7] = LINKLAYER_ETHERNET;
    let rate = u32::try_from(rate).unwrap_or(u32::MAX);
    parms[at..at + 4].copy_from_slice(&rate.to_ne_bytes());
}

fn parse(options: &[u8]) -> Option<Class> {
    let mut parms = None;
    let (mut rate64, mut ceil64) = (None, None);
    for attribute in NlasIterator::new(options) {
        let attribute = attribute.ok()?;
        let value = attribute.value();
        match attribute.kind() {
            PARMS => parms = Some(<[u8; PARMS_LEN]>::try_from(value).ok()?),
            RATE64 => rate64 = Some(u64::from_ne_bytes(value.try_into().ok()?)),
            CEIL64 => ceil64 = Some(u64::from_ne_bytes(value.try_into().ok()?)),
            _ => {}
        }
    }
    let parms = parms?;
    let field = |at: usize| u32::from_ne_bytes(parms[at..at + 4].try_into().expect("four bytes"));
    let rate = rate64.unwrap_or_else(|| u64::from(field(RATE_AT)));
    let ceil = ceil64.unwrap_or_else(|| u64::from(field(CEIL_AT)));
    let (burst_ticks, ceil_burst_ticks) = (field(BUFFER_AT), field(BUFFER_AT + 4));
    Some(Class { rate, ceil, burst_ticks, ceil_burst_ticks, priority: field(PRIORITY_AT) })
}
