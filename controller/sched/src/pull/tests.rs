//! The measured table of pulls, and laws over random images.

use super::*;
use proptest::prelude::*;

/// Layers of the measured table, in bytes: base 6 MB, base2 2.4 MB and small ones above.
const SIZES: [(&str, u64); 7] = [
    ("base", 6_000_000),
    ("base2", 2_400_000),
    ("L1", 2_100_000),
    ("L2", 2_000_000),
    ("L3", 1_000_000),
    ("L4", 700_000),
    ("L5", 700_000),
];
const CONFIG: u64 = 500;
const STORES: [ImageStore; 2] = [ImageStore::Graphdriver, ImageStore::Containerd];

fn image(name: &str, layers: &[&str]) -> Image {
    let size = |layer: &str| SIZES.iter().find(|(known, _)| *known == layer).unwrap().1;
    let sized: Vec<(&str, u64)> = layers.iter().map(|layer| (*layer, size(layer))).collect();
    stacked(name, &sized)
}

/// Chains are named by all the layers they hold.
fn stacked(name: &str, layers: &[(&str, u64)]) -> Image {
    let mut chain = String::new();
    let layers = layers.iter().map(|(layer, size)| {
        chain.push_str(layer);
        chain.push(' ');
        Layer { digest: format!("blob-{layer}"), chain: chain.clone(), size: Bytes(*size) }
    });
    Image { config: format!("config-{name}"), config_size: Bytes(CONFIG), layers: layers.collect() }
}

fn holding(store: ImageStore, images: &[Image]) -> Held {
    let mut held = Held::new(store, &LayerInventory::default());
    images.iter().for_each(|image| held.add(image));
    held
}

fn missing(held: &Held, image: &Image) -> u64 {
    held.fetch(image).bytes().0
}

fn abcde() -> [Image; 5] {
    [
        image("a", &["base", "L1", "L2"]),
        image("b", &["base", "L1", "L3"]),
        image("c", &["base2", "L2", "L4"]),
        image("d", &["base", "L2", "L5"]),
        image("e", &["base2", "base", "L1"]),
    ]
}

#[test]
fn a_graph_driver_fetches_everything_above_the_first_miss() {
    let [a, b, c, d, e] = abcde();
    let held = holding(ImageStore::Graphdriver, std::slice::from_ref(&a));
    assert_eq!(missing(&held, &b), 1_000_000 + CONFIG);
    assert_eq!(missing(&held, &c), 5_100_000 + CONFIG);
    assert_eq!(missing(&held, &a), 0);
    let held = holding(ImageStore::Graphdriver, &[a, c]);
    assert_eq!(missing(&held, &d), 2_700_000 + CONFIG);
    assert_eq!(missing(&held, &e), 8_100_000 + CONFIG);
}

#[test]
fn containerd_fetches_exactly_the_absent_blobs() {
    let [a, _, c, d, e] = abcde();
    let held = holding(ImageStore::Containerd, std::slice::from_ref(&a));
    assert_eq!(missing(&held, &c), 3_100_000 + CONFIG);
    let held = holding(ImageStore::Containerd, &[a, c]);
    assert_eq!(missing(&held, &d), 700_000 + CONFIG);
    assert_eq!(missing(&held, &e), CONFIG);
}

#[test]
fn an_image_whose_record_is_gone_fetches_no_blob_that_is_left() {
    let [a, ..] = abcde();
    let blobs = a.layers.iter().map(|layer| layer.digest.clone()).chain([a.config.clone()]);
    let inventory = LayerInventory { known_digests: blobs.collect(), ..LayerInventory::default() };
    assert_eq!(missing(&Held::new(ImageStore::Containerd, &inventory), &a), 0);
}

#[test]
fn a_loaded_image_has_chains_but_no_known_digests() {
    let [a, b, ..] = abcde();
    let inventory = LayerInventory {
        image_ids: vec![a.config.clone()],
        chain_ids: a.layers.iter().map(|layer| layer.chain.clone()).collect(),
        ..LayerInventory::default()
    };
    let held = Held::new(ImageStore::Graphdriver, &inventory);
    assert_eq!((missing(&held, &b), missing(&held, &a)), (9_100_000 + CONFIG, 0));
}

#[test]
fn a_removed_image_leaves_digests_without_chains() {
    let [a, b, ..] = abcde();
    let known_digests = a.layers.iter().map(|layer| layer.digest.clone()).collect();
    let inventory = LayerInventory { known_digests, ..LayerInventory::default() };
    let held = Held::new(ImageStore::Graphdriver, &inventory);
    assert_eq!(missing(&held, &b), 9_100_000 + CONFIG);
}

#[test]
fn a_layer_that_comes_thrice_is_fetched_once() {
    let thrice = image("t", &["L1", "L1", "L1"]);
    for store in STORES {
        assert_eq!(missing(&holding(store, &[]), &thrice), 2_100_000 + CONFIG);
        assert_eq!(thrice.layer_bytes(), Bytes(2_100_000));
    }
}

#[test]
fn the_time_of_a_pull_is_as_measured() {
    let line = Goodput::declared(BitRate(20_000_000));
    // 28.1 MB in 12 layers over 20 Mbit/s took 12.3 s; 0.44 MB in 7 layers, of which the unpacking takes longest, 0.8 s.
    for (layers, bytes, took_s) in [(12, 28_100_000, 12.3), (7, 440_000, 0.8)] {
        let seconds = Fetch::even(layers, Bytes(bytes)).seconds(line, Bytes(0));
        assert!((seconds / took_s - 1.0_f64).abs() < 0.12, "{seconds} of {took_s}");
    }
    let fetch = Fetch::even(12, Bytes(28_100_000));
    assert!(fetch.seconds(line, Bytes(1_000_000)) > fetch.seconds(line, Bytes(0)) + 0.4);
    assert_eq!(Fetch::default().seconds(line, Bytes(1_000_000)), 0.0);
}

#[test]
fn the_topmost_layers_are_found_by_their_bytes() {
    let [a, ..] = abcde();
    let held = holding(ImageStore::Graphdriver, &[image("below", &["base"])]);
    let [missing, top] = [held.fetch(&a), a.topmost(Bytes(4_100_000)).unwrap()];
    assert_eq!((top.layers, top.layer_bytes), (missing.layers, missing.layer_bytes));
    let line = Goodput::declared(BitRate(20_000_000));
    assert!((top.seconds(line, Bytes(CONFIG)) - missing.seconds(line, Bytes(0))).abs() < 1e-9);
    assert_eq!(a.topmost(Bytes(0)), Some(Fetch::default()));
    assert_eq!(a.topmost(Bytes(5)), None);
}

/// Images of up to six of the table's layers.
fn images() -> impl Strategy<Value = Vec<Image>> {
    let layers = prop::collection::vec(0..SIZES.len(), 1..6);
    prop::collection::vec(layers, 1..6).prop_map(|images| {
        let one = |(at, layers): (usize, Vec<usize>)| {
            let names: Vec<&str> = layers.iter().map(|layer| SIZES[*layer].0).collect();
            image(&format!("i{at}"), &names)
        };
        images.into_iter().enumerate().map(one).collect()
    })
}

proptest! {
    /// A blob that containerd fetches is fetched by a graph driver too.
    #[test]
    fn chains_never_fetch_less_than_sets(images in images()) {
        let (wanted, held) = images.split_first().unwrap();
        let [chain, set] = STORES.map(|store| holding(store, held).fetch(wanted));
        prop_assert!(set.layer_bytes <= chain.layer_bytes && set.layers <= chain.layers);
        prop_assert!(chain.layer_bytes <= wanted.layer_bytes());
    }

    /// What is held more makes no pull dearer, and a pulled image is there.
    #[test]
    fn holding_more_fetches_no_more(images in images()) {
        let (wanted, held) = images.split_first().unwrap();
        for store in STORES {
            let mut before = None;
            for count in 0..=held.len() {
                let bytes = missing(&holding(store, &held[..count]), wanted);
                prop_assert!(before.is_none_or(|before| bytes <= before));
                before = Some(bytes);
            }
            prop_assert_eq!(missing(&holding(store, &images), wanted), 0);
        }
    }

    /// Eq. 1 and 2 add up to the image, and what is stored is what was fetched.
    #[test]
    fn local_and_fetched_make_the_image(images in images()) {
        let (wanted, held) = images.split_first().unwrap();
        for store in STORES {
            let mut node = holding(store, held);
            let fetch = node.fetch(wanted);
            prop_assert_eq!(fetch.layer_bytes.0 + node.local(wanted).0, wanted.layer_bytes().0);
            let before = node.stored().0;
            node.add(wanted);
            prop_assert_eq!(node.stored().0 - before, fetch.layer_bytes.0);
        }
    }
}
