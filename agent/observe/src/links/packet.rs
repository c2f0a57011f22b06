//! The wire form of a link probe: one UDP datagram with a fixed 32-byte header, big-endian.
//!
//! | bytes | field |
//! |---|---|
//! | 0-3 | magic `ELlp` |
//! | 4 | version, 1 |
//! | 5 | kind |
//! | 6-7 | zero |
//! | 8-11 | train number; zero for an echo |
//! | 12-15 | sequence number of the echo, or index within the train |
//! | 16-23 | time of the asker in nanoseconds, returned as it came |
//! | 24-31 | value: nanoseconds that the answerer held an echo, or the rate that a train had |
//!
//! The rest is padding. An answer is as long as its question, so nobody can be flooded through a node.

/// Length of everything but the packets of a train.
pub(super) const SMALL: usize = 64;

/// UDP payload of a train's packet, so that it makes a full frame at an MTU of 1500.
pub(super) const TRAIN_PAYLOAD: usize = 1472;

/// What a train's packet is on the wire: UDP 8, IPv4 20, Ethernet 14 bytes more.
pub(super) const TRAIN_FRAME: usize = TRAIN_PAYLOAD + 42;

const MAGIC: [u8; 4] = *b"ELlp";
const VERSION: u8 = 1;

/// What a probe asks or answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Echo,
    EchoReply,
    /// A packet of a train; its arrival is noted.
    Train,
    /// Asks what the train was measured as.
    TrainEnd,
    TrainResult,
}

impl Kind {
    const ALL: [Self; 5] = [Self::Echo, Self::EchoReply, Self::Train, Self::TrainEnd, Self::TrainResult];

    fn code(self) -> u8 {
        self as u8 + 1
    }

    fn length(self) -> usize {
        if self == Self::Train { TRAIN_PAYLOAD } else { SMALL }
    }
}

/// One probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Probe {
    pub(super) kind: Kind,
    pub(super) train: u32,
    pub(super) sequence: u32,
    pub(super) time_ns: u64,
    pub(super) value: u64,
}

impl Probe {
    /// Writes the probe with its padding and returns the part of `buffer` to send.
    pub(super) fn write<'a>(&self, buffer: &'a mut [u8; TRAIN_PAYLOAD]) -> &'a [u8] {
        let length = self.kind.length();
        buffer[..length].fill(0);
        buffer[..4].copy_from_slice(&MAGIC);
        buffer[4..6].copy_from_slice(&[VERSION, self.kind.code()]);
        buffer[8..12].copy_from_slice(&self.train.to_be_bytes());
        buffer[12..16].copy_from_slice(&self.sequence.to_be_bytes());
        buffer[16..24].copy_from_slice(&self.time_ns.to_be_bytes());
        buffer[24..32].copy_from_slice(&self.value.to_be_bytes());
        &buffer[..length]
    }

    /// Reads a datagram; none when it is no probe of this version or not of its kind's length.
    pub(super) fn read(datagram: &[u8]) -> Option<Self> {
        let rest = datagram.strip_prefix(&MAGIC)?;
        let (&[version, code, 0, 0], rest) = rest.split_first_chunk::<4>()? else {
            return None;
        };
        let kind = Kind::ALL.into_iter().find(|kind| kind.code() == code)?;
        if version != VERSION || datagram.len() != kind.length() {
            return None;
        }
        let (train, rest) = rest.split_first_chunk()?;
        let (sequence, rest) = rest.split_first_chunk()?;
        let (time_ns, rest) = rest.split_first_chunk()?;
        let (value, _) = rest.split_first_chunk()?;
        Some(Self {
            kind,
            train: u32::from_be_bytes(*train),
            sequence: u32::from_be_bytes(*sequence),
            time_ns: u64::from_be_bytes(*time_ns),
            value: u64::from_be_bytes(*value),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_reads_back_at_its_own_length_only() {
        for kind in Kind::ALL {
            let probe = Probe { kind, train: 7, sequence: 0xdead_beef, time_ns: u64::MAX - 1, value: 3 };
            let mut buffer = [0xff; TRAIN_PAYLOAD];
            let written = probe.write(&mut buffer).to_vec();
            assert_eq!(Probe::read(&written), Some(probe));
            assert_eq!(Probe::read(&written[..written.len() - 1]), None);
            assert_eq!(Probe::read(&[written.as_slice(), &[0]].concat()), None);
        }
    }

    #[test]
    fn anything_else_is_no_probe() {
        let probe = Probe { kind: Kind::Echo, train: 0, sequence: 1, time_ns: 2, value: 0 };
        let mut buffer = [0; TRAIN_PAYLOAD];
        let good = probe.write(&mut buffer).to_vec();
        for (position, value) in [(0, b'X'), (4, 2), (5, 0), (5, 6), (6, 1)] {
            let mut bad = good.clone();
            bad[position] = value;
            assert_eq!(Probe::read(&bad), None, "byte {position} = {value}");
        }
        for length in 0..32 {
            assert_eq!(Probe::read(&good[..length]), None);
        }
    }
}
