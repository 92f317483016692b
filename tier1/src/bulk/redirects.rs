//! Where every redirect ends: the rules are those of `machine::redirect`.

use std::collections::{HashMap, HashSet};

use doppel_contract::Unresolved;
use doppel_model::{PageId, PageUrl};
use rayon::prelude::*;

use super::versions::{State, Versions};
use crate::machine::{HOPS_MAX, SPELLINGS_MAX};

/// Pages that are spelled otherwise than in their normalised form, by that: the first of them by their ids.
#[derive(Debug)]
pub(super) struct Spellings(HashMap<PageId, Vec<u32>>);

impl Spellings {
    /// Those that a redirect may need: of a normalised form in which no page is spelled, where none is spelled like the target
    /// either.
    pub(super) fn wanted(versions: &Versions) -> Self {
        let redirects = versions.pages.par_iter().filter_map(|page| match &page.state {
            State::Redirect(to) if versions.find(to).is_none() => Some(to.normal_id()),
            _ => None,
        });
        let wanted: HashSet<PageId> =
            redirects.filter(|normal| !versions.numbers.contains_key(normal)).collect();
        if wanted.is_empty() {
            return Self(HashMap::new());
        }
        let spelled = (0..versions.pages.len()).into_par_iter().filter_map(|number| {
            let url = &versions.pages[number].rank.url;
            let normal = url.normalised()?.id();
            wanted.contains(&normal).then(|| (normal, url.id(), number as u32))
        });
        let mut spelled: Vec<(PageId, PageId, u32)> = spelled.collect();
        spelled.par_sort_unstable();
        // Of several records of one URL one will do: the newest is looked up by the URL.
        spelled.dedup_by_key(|(normal, id, _)| (*normal, *id));
        let of_form = |form: &[(PageId, PageId, u32)]| {
            (form[0].0, form.iter().take(SPELLINGS_MAX).map(|(.., number)| *number).collect())
        };
        Self(spelled.chunk_by(|a, b| a.0 == b.0).map(of_form).collect())
    }

    /// The page that the target of the redirect `asker` stands for.
    pub(super) fn find(&self, versions: &Versions, to: &PageUrl, asker: usize) -> Option<usize> {
        let normalised = || versions.numbers.get(&to.normal_id()).map(|number| *number as usize);
        let other = || {
            let url = |page: u32| &versions.pages[page as usize].rank.url;
            let pages = self.0.get(&to.normal_id())?.iter().copied();
            let others = pages.filter(|page| url(*page) != &versions.pages[asker].rank.url);
            versions.find(others.map(url).min()?)
        };
        versions.find(to).or_else(normalised).or_else(other)
    }
}

/// The number of the page with a content at the end of a redirect's chain.
pub(super) fn end(versions: &Versions, spellings: &Spellings, source: usize) -> Result<usize, Unresolved> {
    let mut path = vec![source];
    loop {
        let Some(last) = path.last() else { return Err(Unresolved::UnknownTarget) };
        let at = match &versions.pages[*last].state {
            State::Redirect(to) => spellings.find(versions, to, *last).ok_or(Unresolved::UnknownTarget)?,
            State::Content(_) | State::Dead => return Err(Unresolved::UnknownTarget),
        };
        if path.contains(&at) {
            return Err(Unresolved::Loop);
        }
        match &versions.pages[at].state {
            State::Content(_) => return Ok(at),
            State::Dead => return Err(Unresolved::DeadTarget),
            State::Redirect(_) if path.len() >= usize::from(HOPS_MAX) => return Err(Unresolved::TooManyHops),
            State::Redirect(_) => path.push(at),
        }
    }
}
