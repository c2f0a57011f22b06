//! The broker as agents meet it: real sockets, real TLS, the client library of the agents.

mod common;

use common::{Authority, Introduction, broker, connected, subscribe, until};
use edgeloom_bus::{Incoming, Outgoing};
use edgeloom_common::ids::NodeId;
use edgeloom_common::report::{Reply, Status};
use edgeloom_common::topics::{self, PACKET_MAX, Uplink};
use rumqttc::{LastWill, Packet, QoS};
use std::time::Duration;
use tokio::net::TcpStream;

fn node(name: &str) -> NodeId {
    name.parse().unwrap()
}

fn status(online: bool, session: u64) -> Vec<u8> {
    serde_json::to_vec(&Status::new(online, session)).unwrap()
}

fn is_publish(packet: &Packet) -> bool {
    matches!(packet, Packet::Publish(_))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_travel_both_ways() {
    let mut fixture = broker();
    let (client, mut events) = fixture.client("n1");
    connected(&mut events).await;
    assert!(subscribe(&client, &mut events, "edgeloom/v1/n1/cmd/#").await);

    client.publish(Uplink::Status.topic(&node("n1")), QoS::AtLeastOnce, true, status(true, 7)).await.unwrap();
    until(&mut events, |packet| matches!(packet, Packet::PubAck(_))).await.unwrap();
    assert_eq!(fixture.incoming().await, (node("n1"), Incoming::Status(Status::new(true, 7))));

    let topic = topics::command(&node("n1"), "logs", 17);
    let outgoing = Outgoing { topic: topic.clone(), payload: b"{}".to_vec(), retain: false };
    fixture.bus.outgoing.send(outgoing).await.unwrap();
    let Packet::Publish(publish) = until(&mut events, is_publish).await.unwrap() else { unreachable!() };
    assert_eq!((publish.topic, publish.retain), (topic, false));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retained_desired_state_is_delivered_at_subscription() {
    let fixture = broker();
    for text in ["old", "new"] {
        let topic = topics::desired(&node("n1"));
        let outgoing = Outgoing { topic, payload: text.into(), retain: true };
        fixture.bus.outgoing.send(outgoing).await.unwrap();
    }
    let (client, mut events) = fixture.client("n1");
    client.subscribe(topics::desired(&node("n1")), QoS::AtLeastOnce).await.unwrap();
    loop {
        let Packet::Publish(publish) = until(&mut events, is_publish).await.unwrap() else { unreachable!() };
        if publish.payload.as_ref() == b"new" {
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_reads_only_its_own_filters() {
    let fixture = broker();
    let (client, mut events) = fixture.client("n1");
    for filter in ["#", "edgeloom/v1/+/desired", "edgeloom/v1/n2/desired", "edgeloom/v1/n1/#"] {
        assert!(!subscribe(&client, &mut events, filter).await, "{filter}");
    }
    for filter in topics::node_filters(&node("n1")) {
        assert!(subscribe(&client, &mut events, &filter).await, "{filter}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_writes_only_below_its_own_name() {
    let mut fixture = broker();
    for topic in ["edgeloom/v1/n2/status", "edgeloom/v1/n1/desired", "edgeloom/v1/controller/status", "x"] {
        let (client, mut events) = fixture.client("n1");
        connected(&mut events).await;
        client.publish(topic, QoS::AtLeastOnce, false, status(true, 1)).await.unwrap();
        let answer = until(&mut events, |packet| matches!(packet, Packet::PubAck(_))).await;
        assert!(answer.is_err(), "{topic} is refused by ending the connection");
    }
    let (client, mut events) = fixture.client("n1");
    client
        .publish(Uplink::Status.topic(&node("n1")), QoS::AtLeastOnce, false, status(true, 2))
        .await
        .unwrap();
    until(&mut events, |packet| matches!(packet, Packet::PubAck(_))).await.unwrap();
    let got_through = loop {
        match fixture.incoming().await.1 {
            Incoming::Refused(_) => {}
            other => break other,
        }
    };
    assert_eq!(got_through, Incoming::Status(Status::new(true, 2)), "nothing else got through");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_are_refused() {
    let fixture = broker();
    let foreign = Authority::new();
    let ours = &fixture.authority;
    let will = LastWill::new("edgeloom/v1/n2/status", status(false, 1), QoS::AtLeastOnce, true);
    let cases = [
        ("no certificate", None, "n1", "n1", "test", None),
        ("foreign authority", Some(&foreign), "n1", "n1", "test", None),
        ("another cluster's certificate", Some(ours), "n1", "n1", "other", None),
        ("client id of another", Some(ours), "n1", "n2", "test", None),
        ("common name that is no node id", Some(ours), "N 1", "n1", "test", None),
        ("will of another", Some(ours), "n1", "n1", "test", Some(will)),
    ];
    for (case, signed_by, common_name, client_id, cluster, will) in cases {
        let introduction = Introduction { signed_by, common_name, client_id, will, cluster };
        let (_client, mut events) = fixture.client_with(introduction);
        let answer = until(&mut events, |packet| matches!(packet, Packet::ConnAck(_))).await;
        assert!(answer.is_err(), "{case}: {answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_will_speaks_when_a_client_dies_but_not_after_goodbye() {
    let mut fixture = broker();
    let topic = Uplink::Status.topic(&node("n1"));
    let dies = Introduction {
        signed_by: Some(&fixture.authority),
        common_name: "n1",
        client_id: "n1",
        cluster: "test",
        will: Some(LastWill::new(&topic, status(false, 5), QoS::AtLeastOnce, true)),
    };
    let (client, mut events) = fixture.client_with(dies);
    connected(&mut events).await;
    drop((client, events));
    assert_eq!(fixture.incoming().await, (node("n1"), Incoming::Status(Status::new(false, 5))));

    let leaves = Introduction {
        signed_by: Some(&fixture.authority),
        common_name: "n1",
        client_id: "n1",
        cluster: "test",
        will: Some(LastWill::new(&topic, status(false, 6), QoS::AtLeastOnce, true)),
    };
    let (client, mut events) = fixture.client_with(leaves);
    connected(&mut events).await;
    client.disconnect().await.unwrap();
    assert!(until(&mut events, |_| false).await.is_err());
    let (second, mut events) = fixture.client("n1");
    second.publish(&topic, QoS::AtLeastOnce, false, status(true, 7)).await.unwrap();
    until(&mut events, |packet| matches!(packet, Packet::PubAck(_))).await.unwrap();
    assert_eq!(fixture.incoming().await.1, Incoming::Status(Status::new(true, 7)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_connection_takes_over_from_one_that_answers_no_more_and_the_old_will_is_not_spoken() {
    let mut fixture = broker();
    let topic = Uplink::Status.topic(&node("n1"));
    let first = Introduction {
        signed_by: Some(&fixture.authority),
        common_name: "n1",
        client_id: "n1",
        cluster: "test",
        will: Some(LastWill::new(&topic, status(false, 5), QoS::AtLeastOnce, true)),
    };
    let (_first, mut first_events) = fixture.client_with(first);
    connected(&mut first_events).await;
    let (second, mut second_events) = fixture.client("n1");
    connected(&mut second_events).await;
    assert!(until(&mut first_events, |_| false).await.is_err());
    assert!(subscribe(&second, &mut second_events, "edgeloom/v1/n1/desired").await);
    second.publish(&topic, QoS::AtLeastOnce, false, status(true, 5)).await.unwrap();
    until(&mut second_events, |packet| matches!(packet, Packet::PubAck(_))).await.unwrap();
    assert_eq!(fixture.incoming().await.1, Incoming::Status(Status::new(true, 5)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clone_is_refused_while_the_first_one_answers_and_people_are_told() {
    let mut fixture = broker();
    let (client, mut events) = fixture.client("n1");
    connected(&mut events).await;
    let alive = tokio::spawn(async move { until(&mut events, |_| false).await });
    for _ in 0..2 {
        let (_clone, mut clone_events) = fixture.client("n1");
        let answer = until(&mut clone_events, |packet| matches!(packet, Packet::ConnAck(_))).await;
        assert!(answer.is_err(), "{answer:?}");
        let (about, Incoming::Refused(reason)) = fixture.incoming().await else { panic!("nobody is told") };
        assert!(about == node("n1") && reason.contains("node n1 is connected already"), "{reason}");
    }
    assert!(!alive.is_finished(), "the first one has its session still");
    let topic = Uplink::Status.topic(&node("n1"));
    client.publish(&topic, QoS::AtLeastOnce, false, status(true, 5)).await.unwrap();
    assert_eq!(fixture.incoming().await.1, Incoming::Status(Status::new(true, 5)));
    alive.abort();
    assert!(alive.await.unwrap_err().is_cancelled());
    let (_client, mut events) = fixture.client("n1");
    connected(&mut events).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_certificate_loses_its_session_at_once_and_gets_no_other() {
    let mut fixture = broker();
    let (_client, mut events) = fixture.client("n1");
    connected(&mut events).await;
    fixture.revoke();
    assert!(until(&mut events, |_| false).await.is_err());
    let (_client, mut events) = fixture.client("n1");
    assert!(until(&mut events, |packet| matches!(packet, Packet::ConnAck(_))).await.is_err());
    let (_, Incoming::Refused(reason)) = fixture.incoming().await else { panic!("nobody is told") };
    assert!(reason.contains("certificate 41020304 of node n1 was revoked"), "{reason}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stolen_certificate_that_speaks_for_another_node_is_told_with_both_names() {
    let mut fixture = broker();
    let (client, mut events) = fixture.client("n1");
    connected(&mut events).await;
    let of_another = Uplink::Observed.topic(&node("n2"));
    client.publish(of_another, QoS::AtLeastOnce, false, "{}").await.unwrap();
    assert!(until(&mut events, |packet| matches!(packet, Packet::PubAck(_))).await.is_err());
    let (about, Incoming::Refused(reason)) = fixture.incoming().await else { panic!("nobody is told") };
    assert_eq!(about, node("n1"));
    assert!(reason.contains("node n1") && reason.contains("edgeloom/v1/n2/observed"), "{reason}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_falls_silent_is_ended_and_its_will_spoken() {
    let mut fixture = broker();
    let falls_silent = Introduction {
        signed_by: Some(&fixture.authority),
        common_name: "n1",
        client_id: "n1",
        cluster: "test",
        will: Some(LastWill::new(
            Uplink::Status.topic(&node("n1")),
            status(false, 5),
            QoS::AtLeastOnce,
            true,
        )),
    };
    let (_client, mut events) = fixture.client_with(falls_silent);
    events.mqtt_options.set_keep_alive(Duration::from_secs(1));
    connected(&mut events).await;
    // The socket stays open, as after a power loss; nobody polls, so no ping is sent.
    assert_eq!(fixture.incoming().await.1, Incoming::Status(Status::new(false, 5)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_read_holds_up_nobody() {
    let fixture = broker();
    let (slow, mut slow_events) = fixture.client("n1");
    assert!(subscribe(&slow, &mut slow_events, "edgeloom/v1/n1/cmd/#").await);
    let (quick, mut quick_events) = fixture.client("n2");
    assert!(subscribe(&quick, &mut quick_events, "edgeloom/v1/n2/cmd/#").await);
    for id in 0..100 {
        let topic = topics::command(&node("n1"), "logs", id);
        fixture
            .bus
            .outgoing
            .send(Outgoing { topic, payload: vec![0; 1_000_000], retain: false })
            .await
            .unwrap();
    }
    let topic = topics::command(&node("n2"), "logs", 1);
    fixture.bus.outgoing.send(Outgoing { topic, payload: b"{}".to_vec(), retain: false }).await.unwrap();
    until(&mut quick_events, is_publish).await.unwrap();
    // 100 MB fit neither into its queue nor into the sockets: the broker ends the session.
    assert!(until(&mut slow_events, |_| false).await.is_err());
}

fn reply(bytes: usize) -> Vec<u8> {
    let reply = Reply { id: 1, sequence: 0, text: "x".repeat(bytes), last: false, error: String::new() };
    serde_json::to_vec(&reply).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_packets_pass_up_to_the_limit() {
    let mut fixture = broker();
    let topic = Uplink::Reply.topic(&node("n1"));
    let (client, mut events) = fixture.client("n1");
    client.publish(&topic, QoS::AtLeastOnce, false, reply(600_000)).await.unwrap();
    until(&mut events, |packet| matches!(packet, Packet::PubAck(_))).await.unwrap();
    let (_, Incoming::Reply(reply_in)) = fixture.incoming().await else { panic!("no reply") };
    assert_eq!(reply_in.text.len(), 600_000);

    client.publish(&topic, QoS::AtLeastOnce, false, reply(PACKET_MAX)).await.unwrap();
    assert!(until(&mut events, |packet| matches!(packet, Packet::PubAck(_))).await.is_err());

    let (client, mut events) = fixture.client("n1");
    assert!(subscribe(&client, &mut events, "edgeloom/v1/n1/desired").await);
    for (bytes, retain) in [(2 * PACKET_MAX, true), (600_000, true)] {
        let topic = topics::desired(&node("n1"));
        fixture.bus.outgoing.send(Outgoing { topic, payload: vec![b'x'; bytes], retain }).await.unwrap();
    }
    let Packet::Publish(publish) = until(&mut events, is_publish).await.unwrap() else { unreachable!() };
    assert_eq!(publish.payload.len(), 600_000, "the larger one is refused at the source");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_peers_hold_up_nobody() {
    let fixture = broker();
    let mut silent = Vec::new();
    for _ in 0..200 {
        silent.push(TcpStream::connect(fixture.bus.address).await.unwrap());
    }
    let (_client, mut events) = fixture.client("n1");
    connected(&mut events).await;
    // More than the broker lets in: the oldest are sent away, the next client is not.
    for _ in 0..600 {
        silent.push(TcpStream::connect(fixture.bus.address).await.unwrap());
    }
    let (_client, mut events) = fixture.client("n2");
    connected(&mut events).await;
    assert_eq!(silent.len(), 800);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unreadable_payloads_harm_nobody() {
    let mut fixture = broker();
    let (client, mut events) = fixture.client("n1");
    for kind in Uplink::ALL {
        for payload in [&b"\xff\xfe"[..], b"", b"[]", b"{\"schema\":1}", &[b'['; 100_000]] {
            client.publish(kind.topic(&node("n1")), QoS::AtLeastOnce, false, payload).await.unwrap();
            until(&mut events, |packet| matches!(packet, Packet::PubAck(_))).await.unwrap();
        }
    }
    client
        .publish(Uplink::Status.topic(&node("n1")), QoS::AtLeastOnce, false, status(true, 9))
        .await
        .unwrap();
    until(&mut events, |packet| matches!(packet, Packet::PubAck(_))).await.unwrap();
    assert_eq!(fixture.incoming().await.1, Incoming::Status(Status::new(true, 9)));
}
