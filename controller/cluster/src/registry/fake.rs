//! A registry of a few fixed answers on a socket, for the cases a real one does not show.

use std::collections::BTreeMap;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Status and body by path.
pub type Answers = BTreeMap<String, (u16, Vec<u8>)>;

/// Serves until the test's runtime ends; hands back host:port.
pub async fn serve(answers: Answers) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("the loopback has a free port");
    let address = listener.local_addr().expect("a bound socket has an address").to_string();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = Vec::new();
            while !request.windows(4).any(|end| end == b"\r\n\r\n") {
                let mut piece = [0; 2048];
                match stream.read(&mut piece).await {
                    Ok(read) if read > 0 => request.extend_from_slice(&piece[..read]),
                    _ => break,
                }
            }
            let text = String::from_utf8_lossy(&request).into_owned();
            let path = text.split(' ').nth(1).unwrap_or("");
            let missing = (404, b"{}".to_vec());
            let (status, body) = answers.get(path).unwrap_or(&missing);
            let head =
                format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            let _ = stream.write_all(head.as_bytes()).await;
            let _ = stream.write_all(body).await;
        }
    });
    address
}

/// Answers for one image `app:1` with these layer sizes.
pub fn image(layers: &[u64]) -> Answers {
    use crate::missing::sha256;
    let diff_ids: Vec<String> = layers.iter().map(|size| sha256(format!("diff {size}").as_bytes())).collect();
    let config =
        serde_json::json!({ "architecture": "amd64", "os": "linux", "rootfs": { "diff_ids": diff_ids } });
    let config = config.to_string().into_bytes();
    let blob =
        |size: &u64| serde_json::json!({ "digest": sha256(format!("blob {size}").as_bytes()), "size": size });
    let manifest = serde_json::json!({
        "schemaVersion": 2,
        "config": { "digest": sha256(&config), "size": config.len() },
        "layers": layers.iter().map(blob).collect::<Vec<_>>(),
    });
    let manifest = manifest.to_string().into_bytes();
    BTreeMap::from([
        (format!("/v2/app/blobs/{}", sha256(&config)), (200, config)),
        (format!("/v2/app/manifests/{}", sha256(&manifest)), (200, manifest.clone())),
        ("/v2/app/manifests/1".to_owned(), (200, manifest)),
    ])
}
