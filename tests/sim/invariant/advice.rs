//! Advice is verified (G5). A page that an answer calls a duplicate is a near-duplicate of the named page, by
//! the contents that both pages have at that very moment. For a redirect, the content of its final target
//! counts. The status table gives the same answers as the rows.

use doppel_contract::Status;
use doppel_contract::answer::Advice;
use doppel_coordinator::simulation::advise;
use doppel_model::PageUrl;

use super::Snapshot;
use crate::sim::model::{Page, url};
use crate::sim::violation::{Checked, holds};
use crate::sim::world::World;

const NAME: &str = "advice is verified";
const BY_TABLE: &str = "the status table says what the rows say";

/// Asks for a page's status at any moment, and checks the answer.
pub(crate) fn ask(world: &World, page: Page) -> Checked {
    answer(world, page).map(drop)
}

/// The checked answer about a page. `None` if a range did not answer.
fn answer(world: &World, page: Page) -> Checked<Option<Advice>> {
    let (policy, winners) = (world.contents.policy, world.settings.winners);
    let advice = advise(world.worker.api(), policy, winners, &url(page));
    let Some(advice) = world.answered("a status question", advice)? else { return Ok(None) };
    let at_once = world.worker.api().known_advice(&url(page));
    holds!(
        BY_TABLE,
        at_once.as_ref().is_none_or(|at_once| *at_once == advice),
        "{at_once:?} by the table, {advice:?} by rows"
    );
    let known = world.model.pages.contains_key(&page);
    holds!(
        NAME,
        known == (advice.status != Status::Unknown),
        "{} is {:?}, known: {known}",
        url(page),
        advice.status
    );
    holds!(
        NAME,
        (advice.status == Status::Duplicate) == advice.duplicate_of.is_some(),
        "{} is {:?} of {:?}",
        url(page),
        advice.status,
        advice.duplicate_of
    );
    if advice.status == Status::Duplicate {
        let end = world.model.end(page);
        let kept = named(world, advice.duplicate_of.as_ref());
        let holds = match (end, kept) {
            (Ok(end), Some(kept)) => {
                world.model.content(kept).is_some()
                    && if end == kept { end != page } else { world.model.similar(end, kept) }
            }
            _ => false,
        };
        let kept = &advice.duplicate_of;
        holds!(NAME, holds, "{} is called a duplicate of {kept:?}; it ends at {end:?}", url(page));
    }
    Ok(Some(advice))
}

/// Checks that the advice at rest is the state on record, and states the rule by which the winner precedes
/// the page.
pub(crate) fn check_at_rest(world: &World, snapshot: &Snapshot, page: Page) -> Checked {
    let Some(advice) = answer(world, page)? else { return Ok(()) };
    let is_common = matches!(
        advice.status,
        Status::Unknown
            | Status::Unique
            | Status::Dead
            | Status::Winner
            | Status::Duplicate
            | Status::Secondary
    ) && advice.duplicate_of.is_none() | (advice.duplicate_of == advice.winner)
        && advice.redirect_to.is_none()
        && advice.note.is_none();
    let at_once = world.worker.api().known_advice(&url(page));
    holds!(BY_TABLE, at_once.is_some() || !is_common, "it does not know {advice:?}");
    let Some(row) = snapshot.page(page).filter(|row| !row.purged) else { return Ok(()) };
    let told = (advice.status, &advice.winner, &advice.duplicate_of);
    let on_record = (row.status, &row.winner, &row.duplicate_of);
    holds!(NAME, told == on_record, "{} is {told:?}, its record says {on_record:?}", row.url);
    // For a redirect, the rule compares the page at its end, unless the redirect is a duplicate of just that
    // page.
    let end = world.model.end(page).ok();
    let before = match advice.status {
        Status::Duplicate => named(world, advice.duplicate_of.as_ref()).filter(|kept| Some(*kept) != end),
        Status::Secondary => named(world, advice.winner.as_ref()),
        _ => None,
    };
    let expected = before.zip(end).map(|(before, end)| world.model.order(before, end).1);
    holds!(NAME, advice.rule == expected, "{} is {told:?} by {:?}, not {expected:?}", row.url, advice.rule);
    Ok(())
}

/// The page that has a URL.
fn named(world: &World, named: Option<&PageUrl>) -> Option<Page> {
    (0..world.pages).find(|page| named == Some(&url(*page)))
}
