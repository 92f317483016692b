//! Where every redirect ends: the rules are those of `machine::redirect`.

use doppel_protocol::Unresolved;

use super::versions::{State, Versions};
use crate::machine::HOPS_MAX;

/// The number of the page with a content at the end of a redirect's chain.
pub(super) fn end(versions: &Versions, source: usize) -> Result<usize, Unresolved> {
    let mut path = vec![source];
    loop {
        let Some(last) = path.last() else { return Err(Unresolved::UnknownTarget) };
        let at = match &versions.pages[*last].state {
            State::Redirect(to) => versions.find(to).ok_or(Unresolved::UnknownTarget)?,
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
