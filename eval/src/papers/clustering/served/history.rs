//! Versions that a page may have had at a moment, as seen from outside, and whether an answer is right for
//! them.
//!
//! A version may be current from the moment when it is sent until the next version is acknowledged. While a
//! page does not change, exactly one version is possible, and an answer must hold for it.

use std::collections::{BTreeSet, HashMap};
use std::time::Instant;

use doppel_baseline::{ContentId, Contents};
use doppel_contract::Status;
use doppel_model::{PageId, PageUrl, Tau, Timestamp};
use doppel_protocol::{Body, VersionPlace};

use super::public_server::PageAnswer;
use crate::papers::clustering::collection::{Version, near_duplicate};
use crate::papers::clustering::replay::Fetch;

/// Maximum number of redirects that are followed from a page.
const HOPS_MAX: usize = 20;

/// All sent versions of every page.
#[derive(Default)]
pub(super) struct History {
    pages: HashMap<PageUrl, Vec<SentVersion>>,
    /// Pages whose URLs are other spellings of a normalised form, by the id of this form.
    spellings: HashMap<PageId, BTreeSet<PageUrl>>,
}

/// Version of a page, with the times when it was sent and acknowledged.
struct SentVersion {
    date: Timestamp,
    body: Body,
    version: Version,
    sent: Instant,
    acknowledged: Option<Instant>,
}

/// Time from before a query to after its answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) from: Instant,
    pub(super) to: Instant,
}

/// Result of the check of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// F holds for the only contents that page and winner can have had.
    Holds,
    /// F holds for some of several possible contents, because a page changed meanwhile.
    MayHold,
    /// F holds for none of the possible contents.
    Wrong,
}

/// Possible ends of the redirects of a page.
struct RedirectEnds {
    ends: Vec<(PageUrl, ContentId)>,
    /// Whether every step had only one possibility.
    certain: bool,
}

impl History {
    /// Records that a batch is about to be sent. A version whose place is before that of an earlier one is
    /// ignored, as in the engine.
    pub(super) fn send(&mut self, batch: &[Fetch]) {
        let sent = Instant::now();
        for Fetch { submission, version, .. } in batch {
            let (url, date) = (&submission.url, submission.fetched_at);
            if !self.pages.contains_key(url)
                && let Some(normal) = url.normalised()
            {
                self.spellings.entry(normal.id()).or_default().insert(url.clone());
            }
            let versions = self.pages.entry(url.clone()).or_default();
            let last = versions.last().map(|last| VersionPlace::new(last.date, &last.body));
            if last.is_none_or(|last| last <= submission.place()) {
                let (version, body) = (version.clone(), submission.body.clone());
                versions.push(SentVersion { date, body, version, sent, acknowledged: None });
            }
        }
    }

    /// Records that the server has now acknowledged the batch.
    pub(super) fn acknowledge(&mut self, batch: &[Fetch]) {
        let now = Instant::now();
        for Fetch { submission, .. } in batch {
            for sent in self.pages.get_mut(&submission.url).into_iter().flatten() {
                sent.acknowledged.get_or_insert(now);
            }
        }
    }

    /// Checks an answer that reports a duplicate. `None` for any other status.
    pub(super) fn check(
        &self,
        contents: &Contents,
        tau: Tau,
        answer: &PageAnswer,
        span: Span,
    ) -> Option<Verdict> {
        if answer.status != Status::Duplicate {
            return None;
        }
        Some(
            self.holds((contents, tau), answer, answer.duplicate_of.as_deref(), span)
                .unwrap_or(Verdict::Wrong),
        )
    }

    /// Whether a `secondary` could have been called a duplicate of the winner.
    pub(super) fn is_understated(
        &self,
        contents: &Contents,
        tau: Tau,
        answer: &PageAnswer,
        span: Span,
    ) -> bool {
        answer.status == Status::Secondary
            && self.holds((contents, tau), answer, answer.winner.as_deref(), span) == Some(Verdict::Holds)
    }

    /// Whether F holds between a member of a group and its winner: the paper's winner check. `None` for a
    /// winner, a page without a group, a redirect, and a pair of which one page may have had several
    /// contents.
    pub(super) fn fits_winner(
        &self,
        contents: &Contents,
        tau: Tau,
        answer: &PageAnswer,
        span: Span,
    ) -> Option<bool> {
        let winner = answer.winner.as_deref().filter(|winner| *winner != answer.url)?;
        let own = |url: &str| {
            let mut own = RedirectEnds { ends: Vec::new(), certain: true };
            self.follow(&PageUrl::parse(url).ok()?, span, 0, &mut own);
            own.ends.first().filter(|_| own.certain).map(|(_, content)| *content)
        };
        Some(near_duplicate(contents, own(&answer.url)?, own(winner)?, tau))
    }

    /// Whether F holds between the page of an answer and `kept`. `None` if F holds for no possible contents.
    fn holds(
        &self,
        (contents, tau): (&Contents, Tau),
        answer: &PageAnswer,
        kept: Option<&str>,
        span: Span,
    ) -> Option<Verdict> {
        let page = PageUrl::parse(&answer.url).ok()?;
        let kept = PageUrl::parse(kept?).ok()?;
        let mut pages = RedirectEnds { ends: Vec::new(), certain: true };
        self.follow(&page, span, HOPS_MAX, &mut pages);
        // The kept page must have content, and cannot be a redirect.
        let mut others = RedirectEnds { ends: Vec::new(), certain: true };
        self.follow(&kept, span, 0, &mut others);
        let pair = |(end, a): &(PageUrl, ContentId), b: ContentId| {
            (*end == kept && page != kept) || near_duplicate(contents, *a, b, tau)
        };
        let holds = pages.ends.iter().any(|end| others.ends.iter().any(|(_, other)| pair(end, *other)));
        match holds {
            true if pages.certain && others.certain => Some(Verdict::Holds),
            true => Some(Verdict::MayHold),
            false => None,
        }
    }

    /// Adds the possible ends of a page's redirects to `found`, and clears `certain` if any step has several
    /// possibilities or none. Follows at most `hops` redirects.
    fn follow(&self, url: &PageUrl, span: Span, hops: usize, found: &mut RedirectEnds) {
        let mut possible = 0;
        for version in self.possible(url, span) {
            possible += 1;
            match version {
                Version::Content(content) => found.ends.push((url.clone(), *content)),
                Version::Redirect(target) if hops > 0 => {
                    let targets = self.targets(url, target, span);
                    found.certain &= targets.len() <= 1;
                    targets.into_iter().for_each(|page| self.follow(page, span, hops - 1, found));
                }
                Version::Redirect(_) | Version::Dead => {}
            }
        }
        found.certain &= possible == 1;
    }

    /// Pages that the target of a redirect of `asker` may have stood for in a span of time.
    ///
    /// The first choice is the page that is spelled like the target, the second the page with the normalised
    /// form. The last choice is the first in byte order of the other pages of this form. A page that was
    /// acknowledged before the span certainly existed, so later choices do not count.
    fn targets<'h>(&'h self, asker: &PageUrl, target: &'h PageUrl, span: Span) -> Vec<&'h PageUrl> {
        let normal = target.normalised().unwrap_or_else(|| target.clone());
        let others = self.spellings.get(&normal.id()).into_iter().flatten().filter(|url| *url != asker);
        let by_name = [target, &normal].into_iter().filter_map(|url| self.pages.get_key_value(url));
        let mut targets: Vec<&PageUrl> = Vec::new();
        for url in by_name.map(|(url, _)| url).chain(others) {
            let Some(first) = self.pages.get(url).and_then(|versions| versions.first()) else { continue };
            if first.sent <= span.to && !targets.contains(&url) {
                targets.push(url);
            }
            if first.acknowledged.is_some_and(|at| at < span.from) {
                break;
            }
        }
        targets
    }

    /// Versions that a page may have had in a span of time.
    fn possible(&self, url: &PageUrl, span: Span) -> impl Iterator<Item = &Version> {
        let versions = self.pages.get(url).map_or(&[][..], Vec::as_slice);
        let next = versions.iter().skip(1).map(Some).chain([None]);
        let current = move |(version, next): &(&SentVersion, Option<&SentVersion>)| {
            let ended = next.and_then(|next| next.acknowledged).is_some_and(|at| at < span.from);
            version.sent <= span.to && !ended
        };
        versions.iter().zip(next).filter(current).map(|(version, _)| &version.version)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use doppel_protocol::Submission;

    use super::*;

    const TEXT: &str = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen \
                        fifteen sixteen seventeen eighteen nineteen twenty twentyone twentytwo twentythree";

    fn url(path: &str) -> PageUrl {
        PageUrl::parse(&format!("http://a/{path}")).unwrap()
    }

    fn fetch(path: &str, at: i64, version: Version) -> Fetch {
        let submission = Submission {
            url: url(path),
            fetched_at: Timestamp::from_millis(at),
            popularity: None,
            language: None,
            canonical: None,
            body: Body::Dead,
        };
        Fetch { submission, version, round: 0, update: false }
    }

    fn duplicate(page: &str, winner: &str) -> PageAnswer {
        PageAnswer {
            url: url(page).to_string(),
            status: Status::Duplicate,
            winner: Some(url(winner).to_string()),
            duplicate_of: Some(url(winner).to_string()),
            similarity: None,
        }
    }

    fn now() -> Span {
        let now = Instant::now();
        Span { from: now, to: now }
    }

    #[test]
    fn an_answer_must_hold_for_the_versions_of_its_moment() {
        let mut contents = Contents::default();
        let near = contents.intern(&format!("{TEXT} more"));
        let (text, other) = (contents.intern(TEXT), contents.intern("nothing of that"));
        let mut history = History::default();
        let batch = [
            fetch("a", 0, Version::Content(text)),
            fetch("b", 0, Version::Content(near)),
            fetch("c", 0, Version::Content(other)),
            fetch("to-a", 0, Version::Redirect(url("a"))),
            fetch("to-c", 0, Version::Redirect(url("c"))),
        ];
        history.send(&batch);
        history.acknowledge(&batch);
        let check = |history: &History, page, winner, span| {
            history.check(&contents, "0.5".parse().unwrap(), &duplicate(page, winner), span)
        };
        let before = now();
        for (page, winner, verdict) in [
            ("b", "a", Verdict::Holds),
            ("c", "a", Verdict::Wrong),
            ("to-a", "a", Verdict::Holds),
            ("to-a", "b", Verdict::Holds),
            ("to-c", "a", Verdict::Wrong),
            ("b", "to-a", Verdict::Wrong),
            ("b", "unheard-of", Verdict::Wrong),
        ] {
            assert_eq!(check(&history, page, winner, before), Some(verdict), "{page} of {winner}");
        }
        std::thread::sleep(Duration::from_millis(2));
        let update = [fetch("b", 1, Version::Content(other))];
        history.send(&update);
        // The new version is sent and not yet acknowledged, so both versions are possible. Only one version
        // is possible for the earlier query.
        assert_eq!(check(&history, "b", "a", now()), Some(Verdict::MayHold));
        assert_eq!(check(&history, "b", "a", before), Some(Verdict::Holds));
        history.acknowledge(&update);
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(check(&history, "b", "a", now()), Some(Verdict::Wrong));
        let fits = |page, winner, span| {
            let answer = PageAnswer { status: Status::Secondary, ..duplicate(page, winner) };
            history.fits_winner(&contents, "0.5".parse().unwrap(), &answer, span)
        };
        assert_eq!((fits("b", "a", before), fits("c", "a", before)), (Some(true), Some(false)));
        assert_eq!((fits("b", "a", now()), fits("a", "a", now())), (Some(false), None));
        assert_eq!((fits("to-a", "a", now()), fits("b", "to-a", now())), (None, None), "redirects");
        // A version older than the current one changes nothing.
        let stale = [fetch("b", 0, Version::Content(near))];
        history.send(&stale);
        history.acknowledge(&stale);
        assert_eq!(check(&history, "b", "a", now()), Some(Verdict::Wrong));
    }

    #[test]
    fn the_target_of_a_redirect_is_the_nearest_spelling_on_record() {
        let mut contents = Contents::default();
        let (text, other) = (contents.intern(TEXT), contents.intern("nothing of that"));
        let spelled = |url: &str, version| {
            let submission =
                Submission { url: PageUrl::parse(url).unwrap(), ..fetch("", 0, Version::Dead).submission };
            Fetch { submission, version, round: 0, update: false }
        };
        let mut history = History::default();
        let mut send = |batch: &[Fetch]| {
            history.send(batch);
            history.acknowledge(batch);
            std::thread::sleep(Duration::from_millis(2));
            history.check(&contents, "0.5".parse().unwrap(), &duplicate("from", "a"), now())
        };
        let to = Version::Redirect(PageUrl::parse("http://b:80").unwrap());
        let first = [fetch("a", 0, Version::Content(text)), fetch("from", 0, to)];
        assert_eq!(send(&first), Some(Verdict::Wrong), "no page has the normalised form of the target");
        // Another spelling; a spelling before it in byte order; the normalised form; the target as it was
        // sent.
        let names = ["http://b", "HTTP://b", "http://b/", "http://b:80"];
        for (name, content) in names.into_iter().zip([text, other, text, other]) {
            let expected = if content == text { Verdict::Holds } else { Verdict::Wrong };
            assert_eq!(send(&[spelled(name, Version::Content(content))]), Some(expected), "{name}");
        }
    }
}
