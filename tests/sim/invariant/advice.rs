//! Advice is verified (G5): a page that is called a duplicate is a near-duplicate of the winner that is named, by the
//! contents that both have at that very moment. For a redirect that of its final target counts. What the status table
//! says is what the rows say.

use doppel_coordinator::simulation::advise;
use doppel_protocol::Status;
use doppel_protocol::answer::Advice;

use super::Snapshot;
use crate::sim::model::{Page, url};
use crate::sim::violation::{Checked, holds};
use crate::sim::world::World;

const NAME: &str = "advice is verified";
const BY_TABLE: &str = "the status table says what the rows say";

/// Asks for a page's status while everything is under way.
pub(crate) fn ask(world: &World, page: Page) -> Checked {
    answer(world, page).map(drop)
}

/// None when a range did not answer.
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
    if advice.status == Status::Duplicate {
        let end = world.model.end(page);
        let winner = (0..world.pages).find(|other| advice.winner.as_ref() == Some(&url(*other)));
        let holds = match (end, winner) {
            (Ok(end), Some(winner)) => {
                world.model.content(winner).is_some()
                    && if end == winner { end != page } else { world.model.similar(end, winner) }
            }
            _ => false,
        };
        holds!(NAME, holds, "{} is called a duplicate of {:?}; it ends at {end:?}", url(page), advice.winner);
    }
    Ok(Some(advice))
}

/// At rest the advice is the state on record, and the rule is the one by which the winner stands before the page.
pub(crate) fn check_at_rest(world: &World, snapshot: &Snapshot, page: Page) -> Checked {
    let Some(advice) = answer(world, page)? else { return Ok(()) };
    let is_common = matches!(
        advice.status,
        Status::Unknown | Status::Unique | Status::Dead | Status::Winner | Status::Duplicate | Status::Member
    ) && advice.redirect_to.is_none()
        && advice.note.is_none();
    let at_once = world.worker.api().known_advice(&url(page));
    holds!(BY_TABLE, at_once.is_some() || !is_common, "it does not know {advice:?}");
    let Some(row) = snapshot.page(page).filter(|row| !row.purged) else { return Ok(()) };
    let group = row.group.and_then(|group| snapshot.groups.get(&group));
    // Advice holds back in a group past the size limit.
    let held_back = advice.status == Status::Member && group.is_some_and(|group| group.quarantined);
    holds!(
        NAME,
        held_back || advice.status == row.status,
        "{} is {:?}, its record says {:?}",
        row.url,
        advice.status,
        row.status
    );
    let end = world.model.end(page).ok();
    let represented = (0..world.pages).find(|other| advice.winner.as_ref() == Some(&url(*other)));
    if let (Some(rule), Some(end), Some(winner)) = (advice.rule, end, represented) {
        let (_, expected) = world.model.order(winner, end);
        holds!(NAME, rule == expected, "{} wins over {} by {rule}, not by {expected}", url(winner), url(end));
    }
    let has_rule = advice.rule.is_some();
    let loses = matches!(advice.status, Status::Duplicate | Status::Member) && end != represented;
    holds!(NAME, has_rule == loses, "{} is {:?} by the rule {:?}", row.url, advice.status, advice.rule);
    let winner = advice.winner;
    holds!(NAME, winner == row.winner, "{} has winner {winner:?}, its record says {:?}", row.url, row.winner);
    Ok(())
}
