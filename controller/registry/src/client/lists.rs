//! Lists of repositories and of tags, a page at a time (distribution specification, "Listing").
//!
//! Invariant: a page leads on only within its registry, and names that could not stand in a path are left out.

use super::answer::{Question, Redirects};
use super::asked::Asked;
use crate::error::RegistryError;
use crate::reference::{is_repository, is_tag};
use reqwest::header::LINK;
use reqwest::{Method, Url};
use serde::Deserialize;

/// Names that are asked for at once; registries may send fewer.
const PAGE: usize = 1000;

/// Part of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) names: Vec<String>,
    /// Where the list goes on.
    pub(crate) next: Option<Url>,
}

#[derive(Debug, Deserialize)]
struct Repositories {
    repositories: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
struct Tags {
    tags: Option<Vec<String>>,
}

impl Asked<'_> {
    /// The first page of all repositories.
    pub(crate) fn catalogue_url(&self) -> Result<Url, RegistryError> {
        self.url(&format!("_catalog?n={PAGE}"))
    }

    /// The first page of a repository's tags.
    pub(crate) fn tags_url(&self) -> Result<Url, RegistryError> {
        self.url(&format!("{}/tags/list?n={PAGE}", self.part))
    }

    /// A page of repositories.
    pub(crate) async fn repositories(&self, url: Url) -> Result<Page, RegistryError> {
        let (body, next) = self.page(url).await?;
        let list: Repositories = self.read(&body)?;
        let names = list.repositories.unwrap_or_default().into_iter().filter(|name| is_repository(name));
        Ok(Page { names: names.collect(), next })
    }

    /// A page of tags.
    pub(crate) async fn tags(&self, url: Url) -> Result<Page, RegistryError> {
        let (body, next) = self.page(url).await?;
        let list: Tags = self.read(&body)?;
        // A repository whose tags were all removed answers null.
        let names = list.tags.unwrap_or_default().into_iter().filter(|name| is_tag(name));
        Ok(Page { names: names.collect(), next })
    }

    async fn page(&self, url: Url) -> Result<(Vec<u8>, Option<Url>), RegistryError> {
        let from = url.clone();
        let question = Question { method: Method::GET, url, unless: None, redirects: Redirects::Within };
        let answer = self.ask(question).await?;
        let next = answer.header(LINK).and_then(next);
        let next = next.map(|next| from.join(next));
        let next = next.transpose().map_err(|_| self.unreadable("its list goes on at no address"))?;
        match next {
            Some(next) if next.origin() != from.origin() => {
                let place = next.origin().ascii_serialization();
                Err(self.unreadable(&format!("its list goes on at {place}, which is not followed")))
            }
            next => Ok((answer.body, next)),
        }
    }
}

/// The target of the link of relation `next` (RFC 8288).
fn next(header: &str) -> Option<&str> {
    header.split(',').find_map(|link| {
        let (target, parameters) = link.trim().strip_prefix('<')?.split_once('>')?;
        let is_next = |parameter: &str| {
            let (name, value) = parameter.trim().split_once('=').unwrap_or_default();
            name.eq_ignore_ascii_case("rel") && value.trim_matches('"').eq_ignore_ascii_case("next")
        };
        parameters.split(';').any(is_next).then_some(target)
    })
}

#[cfg(test)]
mod tests {
    use super::next;

    #[test]
    fn the_next_page_is_the_link_of_that_relation() {
        assert_eq!(next("</v2/_catalog?last=b&n=2>; rel=\"next\""), Some("/v2/_catalog?last=b&n=2"));
        assert_eq!(next("</a>; rel=prev, </b>; title=x; rel=next"), Some("/b"));
        for none in ["", "</a>", "</a>; rel=\"prev\"", "/a; rel=next", "</a; rel=next"] {
            assert_eq!(next(none), None, "{none}");
        }
    }
}
