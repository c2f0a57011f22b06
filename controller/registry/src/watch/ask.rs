//! One question to a registry, to its end: a list with all of its pages, or a tag with what it names.

use crate::catalogue::{Place, TAGS_MAX};
use crate::client::{Asked, Page};
use crate::error::RegistryError;
use crate::registry::Registry;
use crate::rota::{Ask, Outcome};
use edgeloom_common::confidential::Login;
use edgeloom_common::registry::RegistryHost;
use reqwest::Url;
use std::collections::BTreeSet;

/// Pages of one list: a registry may send few names at a time, but not for ever.
const PAGES_MAX: usize = 1000;

/// What an answer says.
#[derive(Debug)]
pub(super) enum News {
    Names(List),
    Tag(Outcome),
}

/// Names of repositories or tags.
#[derive(Debug, Default)]
pub(super) struct List {
    pub(super) names: BTreeSet<String>,
    /// Why it is not all of them.
    pub(super) cut: Option<String>,
    pages: usize,
}

impl List {
    /// Takes in a page; where the list goes on, as long as it brings something.
    fn add(&mut self, page: Page) -> Option<Url> {
        let before = self.names.len();
        self.names.extend(page.names.into_iter().take(TAGS_MAX - before.min(TAGS_MAX)));
        self.pages += 1;
        let next = page.next?;
        self.cut = match self.names.len() {
            TAGS_MAX.. => Some(format!("it lists over {TAGS_MAX} names, the first of them are watched")),
            now if now == before => Some("its list leads round in a circle".to_owned()),
            _ if self.pages == PAGES_MAX => Some(format!("its list has over {PAGES_MAX} pages")),
            _ => None,
        };
        self.cut.is_none().then_some(next)
    }
}

/// Asks, and puts what a tag names into the catalogue.
pub(super) async fn ask(
    registry: &Registry,
    (host, login): (&RegistryHost, Option<&Login>),
    ask: &Ask,
) -> Result<News, RegistryError> {
    let client = &registry.client;
    match ask {
        Ask::Catalogue => {
            let asked = Asked { client, subject: "its list of repositories", host, login, part: "" };
            let (mut list, mut next) = (List::default(), Some(asked.catalogue_url()?));
            while let Some(url) = next {
                next = list.add(asked.repositories(url).await?);
            }
            Ok(News::Names(list))
        }
        Ask::Tags(repository) => {
            let subject = format!("the tags of {repository}");
            let asked = Asked { client, subject: &subject, host, login, part: repository };
            let (mut list, mut next) = (List::default(), Some(asked.tags_url()?));
            while let Some(url) = next {
                next = match asked.tags(url).await {
                    // A repository that was removed.
                    Err(RegistryError::Unknown { .. }) => break,
                    page => list.add(page?),
                };
            }
            Ok(News::Names(list))
        }
        Ask::Tag(repository, tag) => {
            let place = Place { host: host.clone(), repository: repository.clone(), tag: tag.clone() };
            let subject = format!("{host}/{repository}:{tag}");
            let asked = Asked { client, subject: &subject, host, login, part: repository };
            registry.refresh(asked, &place).await.map(|(_, outcome)| News::Tag(outcome))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes in pages until the list ends; how many those were.
    fn pages(names: impl Fn(usize) -> Vec<String>, count: usize) -> (List, usize) {
        let url = Url::parse("http://reg.lan/v2/_catalog").unwrap();
        let mut list = List::default();
        let mut number = 0;
        loop {
            let page = Page { names: names(number), next: (number + 1 < count).then(|| url.clone()) };
            number += 1;
            if list.add(page).is_none() {
                return (list, number);
            }
        }
    }

    #[test]
    fn a_list_ends_with_its_pages_or_where_it_brings_nothing_new() {
        let (whole, asked) = pages(|page| vec![page.to_string()], 5);
        assert_eq!((whole.names.len(), whole.cut, asked), (5, None, 5));
        let (circle, asked) = pages(|page| vec![(page % 3).to_string()], usize::MAX);
        assert_eq!((circle.names.len(), asked), (3, 4));
        assert!(circle.cut.unwrap().contains("circle"));
        let (endless, asked) = pages(|page| vec![page.to_string()], usize::MAX);
        assert_eq!((endless.names.len(), asked), (PAGES_MAX, PAGES_MAX));
        let many = |page: usize| (0..30_000).map(|name| format!("{page} {name}")).collect();
        let (large, asked) = pages(many, usize::MAX);
        assert_eq!((large.names.len(), asked), (TAGS_MAX, 2));
        assert!(large.cut.unwrap().contains("over 50000"));
    }
}
