//! Acknowledged versions are kept (G2). For every version that a client was told to be recorded, that version
//! or a newer one of the page is on record. Every version on record was accepted.

use doppel_model::Timestamp;

use super::Snapshot;
use crate::sim::model::{Body, url};
use crate::sim::violation::{Checked, holds};
use crate::sim::world::World;

const NAME: &str = "acknowledged is kept";

pub(crate) fn check(world: &World, snapshot: &Snapshot) -> Checked {
    for version in &world.acknowledged {
        let row = snapshot.page(version.page);
        let date = row.map(|row| row.fetched_at.millis());
        let first_seen = row.map(|row| row.first_seen.millis());
        holds!(
            NAME,
            date >= Some(version.date),
            "{} of {} was acknowledged, but {date:?} is on record",
            url(version.page),
            version.date
        );
        holds!(
            NAME,
            first_seen.is_some_and(|first| first <= version.date),
            "{} was seen at {} first",
            url(version.page),
            version.date
        );
    }
    for (page, known) in &world.model.pages {
        let Some(row) = snapshot.page(*page) else {
            holds!(NAME, false, "{} is not on record", url(*page));
            continue;
        };
        let (content, redirect_to) = match known.body {
            Body::Content(content) => (Some(world.contents.hash(content)), None),
            Body::Redirect(to) => (None, Some(url(to))),
            Body::Dead => (None, None),
        };
        let body = (&row.content, &row.redirect_to);
        holds!(NAME, body == (&content, &redirect_to), "{} is {body:?} and not {known:?}", row.url);
        let dates = (row.fetched_at.millis(), row.first_seen.millis());
        holds!(
            NAME,
            dates == (known.date, known.first_seen),
            "{} has the dates {dates:?}; expected are {known:?}",
            row.url
        );
        let popularity = (row.popularity, row.popularity_at.map(Timestamp::millis));
        holds!(
            NAME,
            popularity == (known.popularity, known.popularity_at),
            "{} has the popularity {popularity:?}; expected is {known:?}",
            row.url
        );
    }
    Ok(())
}
