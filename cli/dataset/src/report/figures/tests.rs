//! Compares the figures with a slow count over the same pages.

use std::collections::{BTreeMap, BTreeSet};

use doppel_contract::SubmissionOutcome;
use doppel_model::{ContentHash, GroupId, PageUrl, Random, ShardId};
use doppel_protocol::Line;
use doppel_tier1::bulk::{NamedRecords, PageWithContent};

use super::*;
use crate::collection_groups::LargestGroup;

struct Listed(Vec<PageWithContent>);

impl Pages for Listed {
    fn each(&mut self, each: &mut dyn FnMut(PageWithContent) -> anyhow::Result<()>) -> anyhow::Result<()> {
        self.0.iter().cloned().try_for_each(each)
    }
}

fn group(number: usize) -> GroupId {
    GroupId::new(number as u64, ShardId(0))
}

/// Creates groups on few hosts. Each has a winner, perhaps a secondary, and duplicates of these, some of
/// which redirect.
fn pages(seed: u64) -> Vec<PageWithContent> {
    let mut random = Random::new(seed);
    let mut pages = Vec::new();
    for number in 0..30 {
        let mut urls = Vec::new();
        for member in 0..2 + random.index(12) {
            let host = random.index(6);
            let text = format!("http://h{host}.example/{number}/{member}");
            // Records of files have no host.
            let text = if host == 5 { format!("record:crawl#{number}-{member}") } else { text };
            urls.push(PageUrl::parse(&text).unwrap());
        }
        let kept = 1 + usize::from(urls.len() > 4);
        for (member, url) in urls.iter().enumerate() {
            let is_kept = member < kept;
            let of = random.index(kept);
            let redirects = !is_kept && random.index(5) == 0;
            let is_copy = !is_kept && !redirects && random.index(3) == 0;
            let content = if is_copy { of } else { member };
            let similarity = if is_copy { 1.0 } else { 0.8 + random.index(200) as f64 / 1_000.0 };
            let line = Line {
                url: url.clone(),
                status: match member {
                    0 => Status::Winner,
                    _ if is_kept => Status::Secondary,
                    _ => Status::Duplicate,
                },
                group: Some(group(number)),
                winner: Some(urls[0].clone()),
                duplicate_of: (!is_kept).then(|| urls[of].clone()),
                similarity: (!is_kept && !redirects).then_some(similarity),
                reason: None,
            };
            let content =
                ContentHash([number as u8 + 1, content as u8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            let kept = ContentHash([number as u8 + 1, of as u8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            pages.push(PageWithContent {
                line,
                content: (!redirects).then_some(content),
                kept_content: (!is_kept).then_some(kept),
                records: NamedRecords::default(),
            });
        }
    }
    pages
}

fn collection_groups(pages: &[PageWithContent]) -> CollectionGroups {
    let mut groups: BTreeMap<GroupId, u64> = BTreeMap::new();
    pages.iter().filter_map(|page| page.line.group).for_each(|group| *groups.entry(group).or_default() += 1);
    let winner = |group: GroupId| {
        let of = pages.iter().find(|page| page.line.group == Some(group));
        of.and_then(|page| page.line.winner.clone())
    };
    let large =
        |(group, pages): (GroupId, u64)| LargestGroup { group, pages, exact: false, winner: winner(group) };
    let mut groups =
        CollectionGroups { largest: groups.into_iter().map(large).collect(), ..CollectionGroups::default() };
    groups.keep(super::super::EXAMPLES);
    groups
}

#[test]
fn figures_are_those_of_a_slow_count() {
    for seed in 0..20 {
        let pages = pages(seed);
        let mut weights = Weights::by_page();
        for (number, page) in pages.iter().enumerate() {
            let id = page.line.url.id();
            weights.note((0, id), number as u64, (false, SubmissionOutcome::Pending));
        }
        let groups = collection_groups(&pages);
        let figures =
            Figures::of(&mut Listed(pages.clone()), &groups, (&weights, Unit::Page), Policy::default())
                .unwrap();
        let of_status = |status: Status| {
            let of = pages.iter().enumerate().filter(|(_, page)| page.line.status == status);
            of.fold((0, 0), |(pages, bytes), (number, _)| (pages + 1, bytes + number as u64))
        };
        for (status, Weight { pages, bytes }) in &figures.statuses {
            assert_eq!((*pages, bytes.unwrap()), of_status(*status), "{status}");
        }
        let removed: Vec<_> = pages.iter().filter(|page| page.line.status == Status::Duplicate).collect();
        let all = &figures.similarities;
        assert_eq!(figures.savings.all.pages, removed.len() as u64);
        assert_eq!(all.of_winners + all.of_others + all.redirects, removed.len() as u64);
        assert_eq!(
            all.rows().iter().map(|row| row.pages).sum::<u64>() + all.most(),
            all.of_winners + all.of_others
        );
        check_examples(&figures.examples, &pages);
        check_mirrors(&figures.mirrors, &pages);
    }
}

fn check_examples(examples: &[Example], pages: &[PageWithContent]) {
    assert_eq!(examples.len(), super::super::EXAMPLES);
    for example in examples {
        let members = || pages.iter().filter(|page| page.line.group == Some(example.group));
        let removed = || members().filter(|page| page.line.status == Status::Duplicate);
        assert_eq!(example.kept + example.removed.pages, members().count() as u64);
        assert_eq!(example.removed.pages, removed().count() as u64);
        assert_eq!(example.redirects, removed().filter(|page| page.content.is_none()).count() as u64);
        let first: BTreeSet<_> = removed().map(|page| &page.line.url).collect();
        let named: Vec<_> = example.duplicates.iter().map(|duplicate| &duplicate.url).collect();
        assert_eq!(named, first.into_iter().take(named.len()).collect::<Vec<_>>());
        let is_of_winner = |page: &&PageWithContent| page.line.duplicate_of == page.line.winner;
        let near =
            || removed().filter(|page| page.line.similarity.is_some_and(|similarity| similarity < 1.0));
        let least = |pages: Vec<&PageWithContent>| {
            pages.iter().filter_map(|page| page.line.similarity).min_by(f64::total_cmp)
        };
        let best = least(near().filter(is_of_winner).collect()).or_else(|| least(near().collect()));
        let best = best.or_else(|| least(removed().collect()));
        assert_eq!(example.shown.as_ref().and_then(|shown| shown.similarity), best);
    }
}

fn check_mirrors(mirrors: &Mirrors, pages: &[PageWithContent]) {
    let host = |url: &PageUrl| url.host();
    let mut across = 0;
    for page in pages.iter().filter(|page| page.line.status == Status::Duplicate) {
        let [a, b] = [host(&page.line.url), host(page.line.duplicate_of.as_ref().unwrap())];
        across += u64::from(!a.is_empty() && !b.is_empty() && a != b);
    }
    let sides = || mirrors.pairs.iter().flat_map(|pair| &pair.sides);
    assert_eq!(sides().map(|side| side.duplicates).sum::<u64>() + mirrors.others, across);
    for pair in &mirrors.pairs {
        for [one, other] in [[0, 1], [1, 0]] {
            let (one, other) = (&pair.sides[one], &pair.sides[other]);
            let on_host = || pages.iter().filter(|page| host(&page.line.url) == one.host);
            let of_other = |page: &&PageWithContent| {
                page.line.duplicate_of.as_ref().is_some_and(|of| host(of) == other.host)
            };
            assert_eq!(one.pages, on_host().count() as u64);
            assert_eq!(one.duplicates, on_host().filter(of_other).count() as u64);
        }
        assert!(pair.sides[0].duplicates >= pair.sides[1].duplicates);
    }
}
