//! The receiving side of one link address: answers the neighbours' probes, and passes the answers to
//! our own probes on to the prober.

use super::packet::{Kind, Probe, TRAIN_PAYLOAD};
use super::socket::{Incoming, ProbeSocket, Received, now_ns};
use super::train::Arrivals;
use edgeloom_common::units::BitRate;
use std::net::SocketAddrV4;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// A longer round trip is a stepped clock or a lie.
const RTT_MAX_NS: u64 = 10_000_000_000;

/// What a neighbour answered to our probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Answer {
    /// Position of the link in the prober's list.
    pub(super) link: usize,
    pub(super) measured: Measured,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Measured {
    RoundTrip {
        sequence: u32,
        rtt_us: u32,
    },
    Capacity {
        train: u32,
        rate: Option<BitRate>,
    },
    /// Its agent does not run, but the machine is there.
    Closed,
}

/// A neighbour that is reached from this address.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) link: usize,
    pub(super) address: SocketAddrV4,
    pub(super) arrivals: Arrivals,
}

/// What follows from a datagram.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Reply(Probe),
    Tell(Answer),
    Nothing,
}

/// Serves one socket.
#[derive(Debug)]
pub(super) struct Answerer {
    pub(super) socket: Arc<ProbeSocket>,
    pub(super) peers: Vec<Peer>,
    /// Datagrams from strangers and malformed ones.
    pub(super) ignored: u64,
}

impl Answerer {
    /// Serves until the prober has gone.
    pub(super) async fn run(mut self, answers: mpsc::Sender<Answer>) {
        // One byte more than the longest probe, so that a longer datagram shows.
        let mut buffer = [0; TRAIN_PAYLOAD + 1];
        while !answers.is_closed() {
            match self.socket.receive(&mut buffer).await {
                Ok(Incoming::Datagram(received)) => {
                    self.serve(&received, &buffer[..received.length], &answers);
                }
                Ok(Incoming::Closed(address)) => {
                    let peer = self.peers.iter().find(|peer| peer.address == address);
                    // Like any other answer, one that does not fit only loses a sample.
                    if let Some(peer) = peer {
                        let _ = answers.try_send(Answer { link: peer.link, measured: Measured::Closed });
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot receive link probes");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            }
        }
    }

    fn serve(&mut self, received: &Received, datagram: &[u8], answers: &mpsc::Sender<Answer>) {
        match self.judge(received, datagram) {
            Outcome::Reply(reply) => {
                let mut buffer = [0; TRAIN_PAYLOAD];
                // A lost reply is what the neighbour's loss count is for.
                let _ = self.socket.send(reply.write(&mut buffer), received.from);
            }
            // The prober reads each answer within the second; a full channel only loses a sample.
            Outcome::Tell(answer) => drop(answers.try_send(answer)),
            Outcome::Nothing => {}
        }
    }

    fn judge(&mut self, received: &Received, datagram: &[u8]) -> Outcome {
        let peer = self.peers.iter_mut().find(|peer| peer.address == received.from);
        let (Some(peer), Some(probe)) = (peer, Probe::read(datagram)) else {
            self.ignored = self.ignored.saturating_add(1);
            if self.ignored.is_power_of_two() {
                tracing::warn!(from = %received.from, ignored = self.ignored, "datagrams that are no probe of a neighbour");
            }
            return Outcome::Nothing;
        };
        let tell = |measured| Outcome::Tell(Answer { link: peer.link, measured });
        match probe.kind {
            Kind::Echo => {
                let value = now_ns().unwrap_or(received.at_ns).saturating_sub(received.at_ns);
                Outcome::Reply(Probe { kind: Kind::EchoReply, value, ..probe })
            }
            Kind::Train => {
                peer.arrivals.note(probe.train, probe.sequence, received.at_ns);
                Outcome::Nothing
            }
            Kind::TrainEnd => {
                let value = peer.arrivals.rate(probe.train).map_or(0, |rate| rate.0);
                Outcome::Reply(Probe { kind: Kind::TrainResult, value, ..probe })
            }
            Kind::EchoReply => round_trip_us(&probe, received.at_ns).map_or(Outcome::Nothing, |rtt_us| {
                tell(Measured::RoundTrip { sequence: probe.sequence, rtt_us })
            }),
            Kind::TrainResult => {
                let rate = (probe.value > 0).then_some(BitRate(probe.value));
                tell(Measured::Capacity { train: probe.train, rate })
            }
        }
    }
}

/// Time on the way, without the time that the neighbour's program held the echo.
fn round_trip_us(reply: &Probe, at_ns: u64) -> Option<u32> {
    let total = at_ns.checked_sub(reply.time_ns).filter(|total| *total <= RTT_MAX_NS)?;
    let on_the_way = total.checked_sub(reply.value)?;
    u32::try_from((on_the_way / 1000).max(1)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const PEER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(127, 7, 0, 2), super::super::PORT);

    fn answerer() -> Answerer {
        let socket = ProbeSocket::bind(SocketAddrV4::new(Ipv4Addr::new(127, 7, 0, 1), 0)).unwrap();
        let peers = vec![Peer { link: 3, address: PEER, arrivals: Arrivals::default() }];
        Answerer { socket: Arc::new(socket), peers, ignored: 0 }
    }

    fn judge(answerer: &mut Answerer, from: SocketAddrV4, probe: Probe, at_ns: u64) -> Outcome {
        let mut buffer = [0; TRAIN_PAYLOAD];
        let datagram = probe.write(&mut buffer);
        answerer.judge(&Received { from, length: datagram.len(), at_ns }, datagram)
    }

    const ECHO: Probe = Probe { kind: Kind::Echo, train: 0, sequence: 5, time_ns: 77, value: 0 };

    #[tokio::test]
    async fn strangers_and_garbage_get_no_answer_and_are_counted() {
        let mut answerer = answerer();
        let other_port = SocketAddrV4::new(*PEER.ip(), 9);
        let other_address = SocketAddrV4::new(Ipv4Addr::new(127, 7, 0, 9), PEER.port());
        for from in [other_port, other_address] {
            assert_eq!(judge(&mut answerer, from, ECHO, 100), Outcome::Nothing);
        }
        let garbage = Received { from: PEER, length: 64, at_ns: 1 };
        assert_eq!(answerer.judge(&garbage, &[0; 64]), Outcome::Nothing);
        assert_eq!(answerer.ignored, 3);
    }

    #[tokio::test]
    async fn no_answer_is_longer_than_its_question() {
        let mut answerer = answerer();
        for kind in [Kind::Echo, Kind::Train, Kind::TrainEnd, Kind::EchoReply, Kind::TrainResult] {
            let question = Probe { kind, ..ECHO };
            if let Outcome::Reply(reply) = judge(&mut answerer, PEER, question, 100) {
                let (mut one, mut other) = ([0; TRAIN_PAYLOAD], [0; TRAIN_PAYLOAD]);
                assert!(reply.write(&mut one).len() <= question.write(&mut other).len());
                assert_eq!((reply.sequence, reply.time_ns), (question.sequence, question.time_ns));
            }
        }
    }

    #[tokio::test]
    async fn a_round_trip_leaves_out_what_the_neighbour_held() {
        let mut answerer = answerer();
        let reply = |value| Probe { kind: Kind::EchoReply, time_ns: 1_000_000, value, ..ECHO };
        let told = judge(&mut answerer, PEER, reply(300_000), 1_500_000);
        let measured = Measured::RoundTrip { sequence: 5, rtt_us: 200 };
        assert_eq!(told, Outcome::Tell(Answer { link: 3, measured }));
        for (value, at_ns) in [(0, 999_999), (600_000, 1_500_000), (0, RTT_MAX_NS + 1_000_001)] {
            assert_eq!(judge(&mut answerer, PEER, reply(value), at_ns), Outcome::Nothing);
        }
    }
}
