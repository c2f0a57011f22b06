//! Answers as registries give them (OCI distribution specification 1.1).

use crate::reader::Reader;
use edgeloom_common::digest::Digest;
use futures_util::TryStreamExt;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use hyper::header::{
    ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, HeaderMap, HeaderName, RANGE,
};
use hyper::{Response, StatusCode};
use serde::Deserialize;
use std::io;

const DIGEST: HeaderName = HeaderName::from_static("docker-content-digest");
const VERSION: HeaderName = HeaderName::from_static("docker-distribution-api-version");
const OCTETS: &str = "application/octet-stream";

pub(crate) type Body = UnsyncBoxBody<Bytes, io::Error>;

/// The blob, or what is behind the byte that is asked for.
pub(crate) fn blob(digest: &Digest, reader: Reader, headers: &HeaderMap) -> Response<Body> {
    let total = reader.total();
    let from = headers.get(RANGE).and_then(|value| first_byte(value.to_str().ok()?));
    let mut answer = plain(StatusCode::OK, "");
    put(&mut answer, CONTENT_TYPE, OCTETS);
    put(&mut answer, ACCEPT_RANGES, "bytes");
    put(&mut answer, DIGEST, &digest.to_string());
    let from = match (from, total) {
        (Some(from), Some(total)) if from < total => {
            *answer.status_mut() = StatusCode::PARTIAL_CONTENT;
            put(&mut answer, CONTENT_RANGE, &format!("bytes {from}-{}/{total}", total - 1));
            from
        }
        (Some(from), Some(total)) => {
            let why = format!("the blob has {total} bytes, byte {from} is none of them");
            return refusal(StatusCode::RANGE_NOT_SATISFIABLE, "BLOB_UPLOAD_INVALID", &why);
        }
        // Whoever asks for a part may be given the whole (RFC 9110, section 14.2).
        _ => 0,
    };
    if let Some(total) = total {
        put(&mut answer, CONTENT_LENGTH, &(total - from).to_string());
    }
    let stream = reader.stream(from).map_ok(Frame::data);
    *answer.body_mut() = StreamBody::new(stream).boxed_unsync();
    answer
}

pub(crate) fn manifest(digest: &Digest, bytes: Bytes) -> Response<Body> {
    let mut answer = plain(StatusCode::OK, "");
    put(&mut answer, CONTENT_TYPE, &media_type(&bytes));
    put(&mut answer, CONTENT_LENGTH, &bytes.len().to_string());
    put(&mut answer, DIGEST, &digest.to_string());
    *answer.body_mut() = full(bytes);
    answer
}

/// An error in the specification's form.
pub(crate) fn refusal(status: StatusCode, code: &str, message: &str) -> Response<Body> {
    let errors = serde_json::json!({ "errors": [{ "code": code, "message": message }] });
    plain(status, &errors.to_string())
}

pub(crate) fn plain(status: StatusCode, text: &str) -> Response<Body> {
    let mut answer = Response::new(full(Bytes::copy_from_slice(text.as_bytes())));
    *answer.status_mut() = status;
    put(&mut answer, CONTENT_TYPE, "application/json");
    put(&mut answer, VERSION, "registry/2.0");
    answer
}

/// A value with characters that no header may have is left out.
pub(crate) fn put(answer: &mut Response<Body>, name: HeaderName, value: &str) {
    if let Ok(value) = value.parse() {
        answer.headers_mut().insert(name, value);
    }
}

pub(crate) fn empty() -> Body {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

fn full(bytes: Bytes) -> Body {
    Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
}

/// `bytes=N-`: what Docker and agents ask for. Other ranges count as none.
fn first_byte(range: &str) -> Option<u64> {
    range.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok()
}

/// A manifest says what it is; those that need not are of the OCI.
fn media_type(manifest: &[u8]) -> String {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Manifest {
        media_type: Option<String>,
        manifests: Option<serde::de::IgnoredAny>,
    }
    const INDEX: &str = "application/vnd.oci.image.index.v1+json";
    const IMAGE: &str = "application/vnd.oci.image.manifest.v1+json";
    match serde_json::from_slice::<Manifest>(manifest) {
        Ok(Manifest { media_type: Some(said), .. }) => said,
        Ok(Manifest { manifests: Some(_), .. }) => INDEX.to_owned(),
        _ => IMAGE.to_owned(),
    }
}
