//! Revisits: records that store no content, because the crawler had the content already. Such a record names
//! the record that has the content.

use doppel_model::PageUrl;
use doppel_streams::{Limits, SkipReason};

use super::extract;
use super::head::Field;
use super::http::{self, ExtractedBody, NotAPage};
use super::original::{Original, Originals};
use super::record::Record;

/// Extracts what a revisit says about the page `url`, and returns its original: the page whose content it
/// has.
///
/// The content comes from the record to which the revisit refers, provided that record is earlier in this
/// file. If the caller folds the versions of each URL, a revisit is skipped if the last capture of its URL
/// has the same content.
pub(super) fn resolve_revisit(
    url: &PageUrl,
    record: Record<'_>,
    originals: &mut Originals,
    limits: &Limits,
) -> Result<(ExtractedBody, Option<Original>), NotAPage> {
    let profile = record.get(Field::Profile)?.unwrap_or_default();
    let fields: &[Field] = if profile.ends_with("/server-not-modified") {
        &[Field::RefersTo]
    } else if profile.ends_with("/identical-payload-digest") {
        // The HTTP head in a revisit belongs to the revisit itself. With an empty body, it can be a redirect
        // or a 404.
        if http::status(record.block).is_some_and(|status| status != 200) {
            return Ok((http::page(url, record.block(), limits)?, None));
        }
        &[Field::RefersTo, Field::PayloadDigest]
    } else {
        return Err(SkipReason::RevisitProfile.into());
    };
    let last = originals.last_content(url);
    let Some(original) = originals.find(record, fields)? else {
        let is_of_it = |target: &str| PageUrl::parse(target).as_ref() == Ok(url);
        let refers_to = record.head.refers_to(record.head_bytes)?;
        // If the revisit names no other URL, its original is most likely the last capture of this URL, in
        // this file or in another file.
        let names_none = fields.len() == 1 && record.get(Field::RefersTo)?.is_none();
        let is_of_before = (last.is_none() || names_none) && refers_to.is_none_or(is_of_it);
        let is_unchanged = is_of_before && !originals.judges_records();
        return Err(if is_unchanged { SkipReason::Unchanged } else { SkipReason::OriginalUnknown }.into());
    };
    if last == Some(original.content) {
        return Err(SkipReason::Unchanged.into());
    }
    let stored = originals.read(original)?.ok_or(SkipReason::OriginalUnknown)?;
    Ok((extract(url, stored, limits)?, Some(original)))
}
