//! Finding the end of each redirect's chain, by the rules of `machine::redirect`.

use std::collections::{HashMap, HashSet};

use doppel_contract::{REDIRECT_HOPS_MAX, UnresolvedReason};
use doppel_model::{PageId, PageUrl};
use rayon::prelude::*;

use super::versions::{PageState, Versions};
use crate::machine::SPELLINGS_MAX;

/// Pages whose URL is not in normalised form, by the id of that form: the first ones by their ids.
#[derive(Debug)]
pub(super) struct Spellings(HashMap<PageId, Vec<u32>>);

impl Spellings {
    /// Collects the pages that a redirect may need. These are pages of a form for which there is neither a
    /// page with the normalised URL nor a page with the redirect's target URL.
    pub(super) fn needed_by_redirects(versions: &Versions) -> Self {
        let redirects = versions.pages.par_iter().filter_map(|page| match &page.state {
            PageState::Redirect(to) if versions.find(to).is_none() => Some(to.normal_id()),
            _ => None,
        });
        let wanted: HashSet<PageId> =
            redirects.filter(|normal| !versions.numbers.contains_key(normal)).collect();
        if wanted.is_empty() {
            return Self(HashMap::new());
        }
        let spelled = (0..versions.pages.len()).into_par_iter().filter_map(|number| {
            let page = &versions.pages[number];
            // A redirect does not lead to a protected record.
            let url = (!page.is_protected()).then_some(&page.rank.url)?;
            let normal = url.normalised()?.id();
            wanted.contains(&normal).then(|| (normal, url.id(), number as u32))
        });
        let mut spelled: Vec<(PageId, PageId, u32)> = spelled.collect();
        spelled.par_sort_unstable();
        // One record of each URL suffices, because the newest one is looked up by the URL.
        spelled.dedup_by_key(|(normal, id, _)| (*normal, *id));
        let of_form = |form: &[(PageId, PageId, u32)]| {
            (form[0].0, form.iter().take(SPELLINGS_MAX).map(|(.., number)| *number).collect())
        };
        Self(spelled.chunk_by(|a, b| a.0 == b.0).map(of_form).collect())
    }

    /// Returns the page that the target of redirect `asker` stands for.
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

/// Returns the number of the page with content at the end of a redirect's chain.
pub(super) fn end_of_chain(
    versions: &Versions,
    spellings: &Spellings,
    source: usize,
) -> Result<usize, UnresolvedReason> {
    let mut path = vec![source];
    loop {
        let Some(last) = path.last() else { return Err(UnresolvedReason::UnknownTarget) };
        let at = match &versions.pages[*last].state {
            PageState::Redirect(to) => {
                spellings.find(versions, to, *last).ok_or(UnresolvedReason::UnknownTarget)?
            }
            PageState::Content(_) | PageState::Dead => return Err(UnresolvedReason::UnknownTarget),
        };
        if path.contains(&at) {
            return Err(UnresolvedReason::Loop);
        }
        match &versions.pages[at].state {
            PageState::Content(_) => return Ok(at),
            PageState::Dead => return Err(UnresolvedReason::DeadTarget),
            PageState::Redirect(_) if path.len() >= usize::from(REDIRECT_HOPS_MAX) => {
                return Err(UnresolvedReason::TooManyHops);
            }
            PageState::Redirect(_) => path.push(at),
        }
    }
}
