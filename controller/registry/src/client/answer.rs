//! What came back, as far as anybody looks at it.

use reqwest::header::{HeaderMap, HeaderName};
use reqwest::{Method, StatusCode, Url};

/// Longest header value that is kept: lists lead on by addresses.
const HEADER_MAX: usize = 4096;

/// A question to a registry.
#[derive(Debug, Clone)]
pub(super) struct Question<'a> {
    pub(super) method: Method,
    pub(super) url: Url,
    /// The entity tag of what is known (RFC 9110, 13.1.2).
    pub(super) unless: Option<&'a str>,
    pub(super) redirects: Redirects,
}

/// Where an answer may come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Redirects {
    /// The registry itself: what it says is believed.
    Within,
    /// Anywhere, since the content is held against its digest; out of TLS never.
    Anywhere,
    /// Nowhere: that there is a place to go to is the answer.
    Answer,
}

impl Redirects {
    /// Whether the way from one address to the next may be gone.
    pub(super) fn allow(self, from: &Url, to: &Url) -> bool {
        let same = from.origin() == to.origin();
        let clear = from.scheme() == "https" && to.scheme() != "https";
        let web = matches!(to.scheme(), "http" | "https");
        match self {
            Self::Within => same,
            Self::Anywhere => web && !clear,
            Self::Answer => false,
        }
    }
}

/// An answer of success, or that nothing changed.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

impl Answer {
    pub(super) fn new(status: StatusCode, headers: HeaderMap, body: Vec<u8>) -> Self {
        Self { status, headers, body }
    }

    /// One header's text.
    pub(super) fn header(&self, name: HeaderName) -> Option<&str> {
        let value = self.headers.get(name)?.to_str().ok()?;
        (value.len() <= HEADER_MAX).then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_a_digest_may_come_from_elsewhere_and_nothing_out_of_tls() {
        let url = |text: &str| Url::parse(text).unwrap();
        let here = url("https://reg.lan/v2/a/manifests/1");
        for (to, within, anywhere) in [
            ("https://reg.lan/v2/b", true, true),
            ("https://cdn.example/b", false, true),
            ("https://reg.lan:444/b", false, true),
            ("http://reg.lan/b", false, false),
            ("ftp://reg.lan/b", false, false),
        ] {
            let allowed = [Redirects::Within, Redirects::Anywhere].map(|rule| rule.allow(&here, &url(to)));
            assert_eq!(allowed, [within, anywhere], "{to}");
            assert!(!Redirects::Answer.allow(&here, &url(to)));
        }
        assert!(Redirects::Anywhere.allow(&url("http://10.0.0.1:5000/a"), &url("http://10.0.0.2/b")));
    }
}
