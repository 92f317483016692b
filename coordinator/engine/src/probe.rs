//! Advice on a page that is not stored: the status that the page would get if a client submitted it now.
//!
//! A probe changes no records. The index proposes partners, and the advisor compares the probe with the
//! current winner of each partner's group, or with the kept pages of that group.

use std::collections::HashSet;

use doppel_contract::answer::Advice;
use doppel_contract::{Status, UnresolvedReason};
use doppel_model::signature::Signature;
use doppel_model::{PageId, PageUrl};
use doppel_protocol::{Body, IndexError, PageView, Rank, Submission, Tier1Error, Tier2Api, VerifiedPartner};

use crate::advise::{Advisor, GroupWinner, write_winner};
use crate::limits::{ADVICE_ATTEMPTS, PROBE_KEPT, PROBE_PARTNERS};

/// A near-duplicate of the probe: the pair that tier 2 reported, and the record of the page.
type ProbePartner = (VerifiedPartner, PageView);

/// Reason why a probe failed.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// Tier 1 could not be read.
    #[error(transparent)]
    Tier1(#[from] Tier1Error),
    /// The index could not be searched.
    #[error(transparent)]
    Index(#[from] IndexError),
}

impl Advisor<'_> {
    /// Gives advice on a page that is not stored, in the form that [`Ingest`](crate::ingest::Ingest)
    /// extracted.
    ///
    /// `own` is the URL of the page, if it has one. A stored page with this URL does not count as a partner.
    ///
    /// # Errors
    /// If tier 1 cannot be read or the index cannot be searched.
    pub fn probe(
        &mut self,
        tier2: &dyn Tier2Api,
        submission: &Submission,
        own: Option<&PageUrl>,
    ) -> Result<Advice, ProbeError> {
        let mut advice = Advice::unknown(own.map(ToString::to_string).unwrap_or_default());
        match &submission.body {
            Body::Content(signature) => self.probe_content(advice, tier2, signature, own),
            Body::Redirect(target) => {
                advice.redirect_to = Some(target.clone());
                Ok(self.probe_redirect(&advice, target, own)?)
            }
            Body::Dead => {
                advice.status = Status::Dead;
                Ok(advice)
            }
        }
    }

    fn probe_content(
        &mut self,
        mut advice: Advice,
        tier2: &dyn Tier2Api,
        signature: &Signature,
        own: Option<&PageUrl>,
    ) -> Result<Advice, ProbeError> {
        let mut pairs = tier2.probe(signature)?;
        // Most similar first, so that truncation drops the least similar pairs.
        pairs.sort_by(|a, b| b.similarity.compare(a.similarity).then(a.page.cmp(&b.page)));
        pairs.truncate(PROBE_PARTNERS);
        advice.status = Status::Unique;
        let mut seen = HashSet::new();
        let ids: Vec<PageId> = pairs.iter().map(|pair| pair.page).collect();
        let views = self.tier1.pages(&ids)?;
        // Tier 2 may report an outdated content. A page whose content has changed since is no longer a
        // partner.
        let is_current = |(pair, view): &ProbePartner| view.content == Some(pair.content);
        let partners = pairs.into_iter().zip(views).filter_map(|(pair, view)| Some((pair, view?)));
        let partners: Vec<ProbePartner> = partners.filter(is_current).collect();
        for (pair, view) in &partners {
            let mut found = advice.clone();
            match view.line.group {
                Some(group) => {
                    let Some(winner) = self.winner(group)? else { continue };
                    if !seen.insert(winner.group) {
                        continue;
                    }
                    write_winner(&mut found, &winner);
                    self.place_in_group(&mut found, signature, &winner, own)?;
                }
                None if own == Some(&view.rank.url) => continue,
                None if view.line.status == Status::Unique => {
                    found.winner = Some(view.rank.url.clone());
                    become_duplicate(&mut found, &view.rank.url, pair.similarity.as_f64());
                }
                None => found.status = Status::Pending,
            }
            if informativeness(found.status) > informativeness(advice.status) {
                advice = found;
            }
            if matches!(advice.status, Status::Duplicate | Status::Winner) {
                break;
            }
        }
        Ok(advice)
    }

    /// Determines the status that a page with this signature would get in the group of `winner`.
    ///
    /// The page is compared by F with the winner first, then with the secondary pages in the winner order.
    fn place_in_group(
        &self,
        advice: &mut Advice,
        signature: &Signature,
        winner: &GroupWinner,
        own: Option<&PageUrl>,
    ) -> Result<(), Tier1Error> {
        if own == Some(&winner.usual) || own == Some(&winner.url) {
            advice.status = Status::Winner;
            return Ok(());
        }
        advice.status = Status::Secondary;
        if winner.quarantined {
            return Ok(());
        }
        if let Some(similarity) = self.similarity(signature, &winner.usual)? {
            // If F also holds with the preferred page of the market, the advice names the preferred page.
            let preferred = self.similarity(signature, &winner.url)?.filter(|_| winner.url != winner.usual);
            let (url, similarity) =
                preferred.map_or((&winner.usual, similarity), |similarity| (&winner.url, similarity));
            become_duplicate(advice, url, similarity);
            return Ok(());
        }
        // Tier 2 leaves out partners that are linked to a reported partner. The probe is therefore compared
        // with all kept pages, not only with reported pages.
        let is_other = |rank: &Rank| own != Some(&rank.url) && rank.url != winner.usual;
        for PageView { rank, .. } in self.kept_pages(winner.group, PROBE_KEPT, is_other)? {
            if let Some(similarity) = self.similarity(signature, &rank.url)? {
                become_duplicate(advice, &rank.url, similarity);
                break;
            }
        }
        Ok(())
    }

    /// Returns the similarity to the current content of a page, or `None` if F does not hold.
    fn similarity(&self, signature: &Signature, url: &PageUrl) -> Result<Option<f64>, Tier1Error> {
        let other = self.tier1.signature(url.id())?;
        let comparison = other.map(|other| self.policy.compare(signature, &other));
        Ok(comparison
            .filter(|comparison| comparison.similar)
            .map(|comparison| comparison.similarity.as_f64()))
    }

    fn probe_redirect(
        &mut self,
        advice: &Advice,
        target: &PageUrl,
        own: Option<&PageUrl>,
    ) -> Result<Advice, Tier1Error> {
        for _ in 0..ADVICE_ATTEMPTS {
            let mut end = self.target(target)?;
            if end.is_none() {
                let other = self.tier1.first_spelling(target.normal_id(), own.map(PageUrl::id))?;
                end = other.map(|page| self.page(page)).transpose()?.flatten();
            }
            if let Some(last) = end.as_ref().and_then(|view| view.target) {
                end = self.page(last)?;
            }
            let advice = advice.clone();
            let Some(end) = end else { return Ok(unresolved(advice, Some(UnresolvedReason::UnknownTarget))) };
            match (end.line.status, end.line.group) {
                (Status::Dead, _) => return Ok(unresolved(advice, Some(UnresolvedReason::DeadTarget))),
                (Status::Unresolved, _) => return Ok(unresolved(advice, end.unresolved)),
                (Status::Unique, _) => {
                    let url = Some(end.rank.url);
                    let (winner, duplicate_of) = (url.clone(), url);
                    return Ok(Advice { status: Status::Duplicate, winner, duplicate_of, ..advice });
                }
                (_, None) => return Ok(Advice { status: Status::Pending, ..advice }),
                (_, Some(group)) => {
                    let Some(winner) = self.winner(group)? else { continue };
                    let mut advice = advice;
                    write_winner(&mut advice, &winner);
                    if let Some((kept, rule)) = self.kept(end, &winner)? {
                        (advice.status, advice.duplicate_of) = (Status::Duplicate, Some(kept));
                        advice.rule = rule;
                        return Ok(advice);
                    }
                }
            }
        }
        Ok(Advice { status: Status::Pending, ..advice.clone() })
    }
}

/// Ranks a status by how much it says about a probe. The answer uses the partner with the highest rank.
fn informativeness(status: Status) -> u8 {
    match status {
        Status::Duplicate | Status::Winner => 3,
        Status::Secondary => 2,
        Status::Pending => 1,
        _ => 0,
    }
}

fn become_duplicate(advice: &mut Advice, of: &PageUrl, similarity: f64) {
    advice.status = Status::Duplicate;
    (advice.duplicate_of, advice.similarity) = (Some(of.clone()), Some(similarity));
}

/// Turns advice into the answer for a redirect without a content page at its end.
fn unresolved(advice: Advice, reason: Option<UnresolvedReason>) -> Advice {
    Advice { status: Status::Unresolved, reason, ..advice }
}
