use super::*;
use std::sync::atomic::{AtomicU64, Ordering};

const MBIT: u64 = 1_000_000;
const FRAME: usize = 16 * 1024;
/// What the interface of the tests has received.
static RECEIVED: AtomicU64 = AtomicU64::new(0);

fn pace(interfaces: &[&str], reserved: u64) -> Pace {
    let meter = Meter {
        interface_of: |address| match address {
            IpAddr::V4(address) if address.is_loopback() => None,
            IpAddr::V4(_) => Some("eth0".to_owned()),
            IpAddr::V6(_) => Some("uncounted".to_owned()),
        },
        received: |name| (name == "eth0").then(|| RECEIVED.load(Ordering::Relaxed)),
    };
    let pace = Pace::new(meter);
    let lane = Lane { capacity: Some(BitRate(20 * MBIT)), reserved: BitRate(reserved) };
    pace.set(interfaces.iter().map(|name| ((*name).to_owned(), lane)).collect());
    pace
}

fn toll(pace: &Pace) -> Option<Toll> {
    pace.toll([10, 61, 1, 1].into(), Sender::Registry)
}

/// Wire rate that a download reaches in so many seconds while others receive at `others` bits a second.
async fn reached(toll: &Toll, seconds: u64, others: u64) -> f64 {
    let (began, mut read, mut beside) = (Instant::now(), 0_usize, 0);
    while began.elapsed() < Duration::from_secs(seconds) {
        toll.pay(FRAME).await;
        read += FRAME;
        let own = (FRAME as f64 / TCP_GOODPUT) as u64;
        let all = (began.elapsed().as_secs_f64() * others as f64 / 8.0) as u64;
        RECEIVED.fetch_add(own + all - beside, Ordering::Relaxed);
        beside = all;
    }
    read as f64 * 8.0 / TCP_GOODPUT / began.elapsed().as_secs_f64() / MBIT as f64
}

#[tokio::test(start_paused = true)]
async fn a_pull_gets_what_flows_leave_and_what_they_do_not_use() {
    let pace = pace(&["eth0"], 12 * MBIT);
    let toll = toll(&pace).unwrap();
    let beside = reached(&toll, 20, 12 * MBIT).await;
    assert!((0.90..=0.96).contains(&(beside / 8.0)), "{beside} of the 8 Mbit/s that are left");
    reached(&toll, 5, 0).await;
    let alone = reached(&toll, 20, 0).await;
    assert!((0.90..=0.96).contains(&(alone / 20.0)), "{alone} of 20 Mbit/s of which nobody uses any");
    reached(&toll, 3, 12 * MBIT).await;
    let again = reached(&toll, 20, 12 * MBIT).await;
    assert!((0.90..=0.96).contains(&(again / 8.0)), "{again}: the flow is back");
    pace.set(BTreeMap::from([(
        "eth0".to_owned(),
        Lane { capacity: Some(BitRate(20 * MBIT)), reserved: BitRate(MBIT) },
    )]));
    let freed = reached(&toll, 2, 12 * MBIT).await;
    assert!(freed > 18.0, "{freed}: the job is gone");
}

#[tokio::test(start_paused = true)]
async fn downloads_share_a_rate_and_are_never_starved() {
    let pace = pace(&["uncounted"], 30 * MBIT);
    let toll = || pace.toll([0xfd00, 0, 0, 0, 0, 0, 0, 1].into(), Sender::Registry).unwrap();
    let (one, two) = (toll(), toll());
    let began = Instant::now();
    for _ in 0..50 {
        tokio::join!(one.pay(FRAME), two.pay(FRAME));
    }
    let bps = 100.0 * FRAME as f64 * 8.0 / TCP_GOODPUT / began.elapsed().as_secs_f64();
    assert!((0.9..=1.06).contains(&(bps / MBIT as f64)), "{bps} of a twentieth of 20 Mbit/s");
}

#[tokio::test(start_paused = true)]
async fn what_nobody_knows_of_is_not_held_back() {
    let pace = pace(&["wlan0"], 0);
    assert!(toll(&pace).is_none() && pace.toll([127, 0, 0, 1].into(), Sender::Registry).is_none());
    assert!(pace.used().is_empty());
    let pace = self::pace(&["eth0"], 0);
    let toll = toll(&pace).unwrap();
    assert_eq!(pace.used(), BTreeSet::from(["eth0".to_owned()]));
    let began = Instant::now();
    toll.pay(1 << 30).await;
    assert_eq!(began.elapsed(), Duration::ZERO, "no flow has any of it");
    pace.set(BTreeMap::new());
    toll.pay(1 << 30).await;
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert!(pace.used().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_neighbour_is_held_back_where_nobody_declared_what_its_kernel_should_leave() {
    let pace = pace(&["uncounted"], 10 * MBIT);
    let toll = || pace.toll([0xfd00, 0, 0, 0, 0, 0, 0, 1].into(), Sender::Neighbour);
    assert!(toll().is_none(), "its kernel knows");
    let reserved = BitRate(10 * MBIT);
    pace.set(BTreeMap::from([("uncounted".to_owned(), Lane { capacity: None, reserved })]));
    let (toll, began) = (toll().unwrap(), Instant::now());
    toll.pay(FRAME).await;
    assert_eq!(began.elapsed(), Duration::ZERO, "nothing is known yet");
    pace.measured("uncounted", BitRate(20 * MBIT));
    for _ in 0..100 {
        toll.pay(FRAME).await;
    }
    let bps = 100.0 * FRAME as f64 * 8.0 / TCP_GOODPUT / began.elapsed().as_secs_f64();
    assert!((0.9..=1.0).contains(&(bps / 10e6)), "{bps} of the 10 Mbit/s that are left");
    assert!(pace.used().is_empty(), "no registry was read");
}
