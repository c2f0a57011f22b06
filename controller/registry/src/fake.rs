//! A registry of a few fixed answers on a socket, for the cases a real one does not show.

use std::collections::BTreeMap;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Status and body by path.
pub type Answers = BTreeMap<String, (u16, Vec<u8>)>;

/// What the token service of [`Guard::Token`] gives.
const TOKEN: &str = "dGhlIHRva2Vu";

/// Who gets an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    Everybody,
    /// Who shows this: `user:password` in base64 (RFC 7617).
    Basic(&'static str),
    /// Who shows a token that its service gives for this.
    Token(&'static str),
}

/// Serves everybody until the test's runtime ends; hands back host:port.
pub async fn serve(answers: Answers) -> String {
    serve_to(Guard::Everybody, answers).await
}

/// Serves until the test's runtime ends; hands back host:port.
pub async fn serve_to(guard: Guard, answers: Answers) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("the loopback has a free port");
    let address = listener.local_addr().expect("a bound socket has an address").to_string();
    let host = address.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let request = request(&mut stream).await;
            let (status, challenge, body) = answer(guard, (&host, &answers), &request);
            let head = format!(
                "HTTP/1.1 {status} X\r\n{challenge}content-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all(head.as_bytes()).await;
            if !request.starts_with("HEAD ") {
                let _ = stream.write_all(&body).await;
            }
        }
    });
    address
}

async fn request(stream: &mut TcpStream) -> String {
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut piece = [0; 2048];
        match stream.read(&mut piece).await {
            Ok(read) if read > 0 => request.extend_from_slice(&piece[..read]),
            _ => break,
        }
    }
    String::from_utf8_lossy(&request).into_owned()
}

/// Status, the challenge's line if there is one, and body.
fn answer(guard: Guard, (host, answers): (&str, &Answers), request: &str) -> (u16, String, Vec<u8>) {
    let path = request.split(' ').nth(1).unwrap_or("");
    let shows = |proof: &str| {
        request.lines().any(|line| {
            let header = line.split_once(": ");
            header.is_some_and(|(name, shown)| name.eq_ignore_ascii_case("authorization") && shown == proof)
        })
    };
    let denied = |challenge: String| (401, format!("www-authenticate: {challenge}\r\n"), b"{}".to_vec());
    match guard {
        Guard::Basic(login) if !shows(&format!("Basic {login}")) => {
            return denied("Basic realm=\"fake\"".to_owned());
        }
        Guard::Token(login) if path.starts_with("/token?") => {
            return match shows(&format!("Basic {login}")) {
                true => (200, String::new(), format!("{{\"token\":\"{TOKEN}\"}}").into_bytes()),
                false => denied("Basic realm=\"fake\"".to_owned()),
            };
        }
        Guard::Token(_) if !shows(&format!("Bearer {TOKEN}")) => {
            return denied(format!(
                "Bearer realm=\"http://{host}/token\",service=\"fake\",scope=\"repository:app:pull\""
            ));
        }
        _ => {}
    }
    let version_check = path == "/v2/";
    let missing = (if version_check { 200 } else { 404 }, b"{}".to_vec());
    let (status, body) = answers.get(path).unwrap_or(&missing);
    (*status, String::new(), body.clone())
}

/// Answers for one image `app:1` with these layer sizes.
pub fn image(layers: &[u64]) -> Answers {
    let sha256 = |bytes: &[u8]| crate::Digest::of(bytes).to_string();
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
    // What a layer holds matters to nobody here, only that it is there.
    let layer = |size: &u64| {
        (format!("/v2/app/blobs/{}", sha256(format!("blob {size}").as_bytes())), (200, Vec::new()))
    };
    let mut answers: Answers = layers.iter().map(layer).collect();
    answers.extend([
        (format!("/v2/app/blobs/{}", sha256(&config)), (200, config)),
        (format!("/v2/app/manifests/{}", sha256(&manifest)), (200, manifest.clone())),
        ("/v2/app/manifests/1".to_owned(), (200, manifest)),
        ("/v2/_catalog?n=1000".to_owned(), (200, b"{\"repositories\":[\"app\"]}".to_vec())),
        ("/v2/app/tags/list?n=1000".to_owned(), (200, b"{\"name\":\"app\",\"tags\":[\"1\"]}".to_vec())),
    ]);
    answers
}
