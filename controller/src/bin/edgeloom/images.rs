//! `edgeloom images`: what the registries have, and which nodes hold it.

use crate::events::clock;
use crate::table::Table;
use crate::units::{bytes, known};
use edgeloom_common::images::{ImageList, ImageView, WatchView};

/// Hexadecimal digits of a digest that people need: Docker's own short form.
const SHORT: usize = "sha256:".len() + 12;

/// One row a platform of each image, and below it what is not as it should be with a registry.
pub(crate) fn table(list: &ImageList) -> String {
    let mut table = Table::new([
        "IMAGE",
        "PLATFORM",
        "DIGEST",
        "LAYERS",
        "COMPRESSED",
        "NODES",
        "SEEN",
        "STATE",
        "REASON",
    ]);
    for image in &list.images {
        let mut platforms = image.platforms.iter();
        // An image of which nothing is known has a row, too.
        let mut platform = platforms.next();
        loop {
            table.row([
                image.name.clone(),
                known(platform, |it| it.architecture.clone()),
                known(image.digest.as_deref(), short),
                known(platform, |it| it.layers.len().to_string()),
                known(platform, |it| bytes(it.compressed_bytes)),
                nodes(image),
                known(Some(image.seen_ms).filter(|ms| *ms > 0), clock),
                image.state.word().to_owned(),
                image.reason.clone(),
            ]);
            platform = platforms.next();
            if platform.is_none() {
                break;
            }
        }
    }
    let troubled = list.registries.iter().filter(|registry| !registry.reason.is_empty()).map(trouble);
    troubled.fold(table.text(), |text, line| text + &line)
}

fn short(digest: &str) -> String {
    digest.get(..SHORT).unwrap_or(digest).to_owned()
}

fn nodes(image: &ImageView) -> String {
    let nodes: Vec<_> = image.nodes.iter().map(ToString::to_string).collect();
    if nodes.is_empty() { "-".to_owned() } else { nodes.join(",") }
}

fn trouble(registry: &WatchView) -> String {
    let reason = registry.reason.replace(char::is_control, " ");
    match registry.away_since_ms {
        Some(since_ms) => {
            format!("registry {} is away since {}: {reason}\n", registry.registry, clock(since_ms))
        }
        None => format!("registry {}: {reason}\n", registry.registry),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgeloom_common::images::ImageState;
    use edgeloom_common::images::{LayerView, PlatformView};

    #[test]
    fn an_image_has_a_row_for_each_platform_or_one_with_its_reason() {
        let layer = LayerView { digest: "sha256:l".to_owned(), compressed_bytes: 5_000_000 };
        let platform = |architecture: &str| PlatformView {
            architecture: architecture.to_owned(),
            image_id: "sha256:i".to_owned(),
            compressed_bytes: 5_000_000,
            layers: vec![layer.clone()],
        };
        let image = |name: &str, platforms: Vec<PlatformView>| ImageView {
            name: name.to_owned(),
            registry: "reg.lan".parse().unwrap(),
            repository: "app".to_owned(),
            tag: "1".to_owned(),
            state: if platforms.is_empty() { ImageState::Broken } else { ImageState::Current },
            reason: if platforms.is_empty() { "no\u{1b} manifest".to_owned() } else { String::new() },
            digest: (!platforms.is_empty()).then(|| format!("sha256:{}", "0".repeat(64))),
            platforms,
            seen_ms: 0,
            nodes: vec!["n1".parse().unwrap()],
        };
        let away = WatchView {
            registry: "reg.lan".parse().unwrap(),
            images: 2,
            away_since_ms: None,
            notifies: false,
            reason: "gone".to_owned(),
        };
        let images =
            vec![image("reg.lan/app:1", vec![platform("amd64"), platform("arm64")]), image("x", Vec::new())];
        let text = table(&ImageList { images, registries: vec![away] });
        let lines: Vec<_> =
            text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(lines[1], "reg.lan/app:1 amd64 sha256:000000000000 1 5 MB n1 - current");
        assert_eq!(lines[2], "reg.lan/app:1 arm64 sha256:000000000000 1 5 MB n1 - current");
        assert!(lines[3].starts_with("x - - - - n1 - broken no"), "{}", lines[3]);
        assert_eq!(lines[4], "registry reg.lan: gone");
    }
}
