//! Compares an output of `doppel dedup` with the oracle.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::accuracy::dedup::{Group, Line, Status};
use crate::oracle::collection::Page;
use crate::oracle::cover::Cover;
use crate::oracle::{Resolution, Truth};

/// The tolerance for a reported similarity. The product may work on hashes of shingles, and a short text has
/// only 20 shingles.
const SIMILARITY_TOLERANCE: f64 = 0.005;

/// How well an output agrees with the oracle.
#[derive(Debug, Default)]
pub(crate) struct Agreement {
    /// Numbers of pairs of comparable pages that share a group: in the oracle, in the output, and in both.
    pub(crate) true_pairs: u64,
    pub(crate) found_pairs: u64,
    pub(crate) right_pairs: u64,
    /// The number of live pages, and how many of them are in a group with exactly the right members.
    pub(crate) pages: usize,
    pub(crate) exact_pages: usize,
    /// The numbers of lines with these statuses.
    pub(crate) duplicates: usize,
    pub(crate) secondaries: usize,
    /// The largest error of a reported similarity.
    pub(crate) similarity_error: f64,
    /// Descriptions of all violated requirements.
    pub(crate) violations: Vec<String>,
}

impl Agreement {
    /// The share of the found pairs that are true.
    pub(crate) fn precision(&self) -> f64 {
        share(self.right_pairs, self.found_pairs)
    }

    /// The share of the true pairs that are found.
    pub(crate) fn recall(&self) -> f64 {
        share(self.right_pairs, self.true_pairs)
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}

/// Compares an output with everything that must hold.
pub(crate) fn compare(lines: &[Line], truth: &Truth) -> Agreement {
    let mut agreement = Agreement { pages: truth.collection.pages.len(), ..Agreement::default() };
    check_pages(lines, truth, &mut agreement);
    check_groups(lines, &mut agreement);
    check_kept(lines, truth, &mut agreement);
    let cover = truth.cover();
    for line in lines {
        if let Some(wrong) = check_advice(line, (truth, &cover), &mut agreement) {
            agreement.violations.push(format!("{}: {wrong}: {line:?}", line.url));
        }
    }
    count_pairs(lines, truth, &mut agreement);
    count_exact(lines, truth, &mut agreement);
    agreement
}

/// Checks that every live page has one line, that no other page has one, and that the lines are sorted.
fn check_pages(lines: &[Line], truth: &Truth, agreement: &mut Agreement) {
    for pair in lines.windows(2) {
        if pair[0].url >= pair[1].url {
            agreement.violations.push(format!("{} is not sorted, or is twice", pair[1].url));
        }
    }
    let written: BTreeSet<&str> = lines.iter().map(|line| line.url.as_str()).collect();
    let live: BTreeSet<&str> = truth.collection.pages.keys().map(String::as_str).collect();
    let missing = live.difference(&written).map(|url| format!("{url} is missing"));
    let extra = written.difference(&live).map(|url| format!("{url} is not live"));
    agreement.violations.extend(missing.chain(extra));
}

/// Checks that every group has several members and exactly one winner, which is one of them.
fn check_groups(lines: &[Line], agreement: &mut Agreement) {
    let mut groups: BTreeMap<&Group, Vec<&Line>> = BTreeMap::new();
    for line in lines {
        let alone = matches!(line.status, Status::Unique | Status::Unresolved);
        if alone != line.group.is_none() || alone != line.winner.is_none() {
            agreement.violations.push(format!("status, group and winner do not fit: {line:?}"));
        }
        if let Some(group) = &line.group {
            groups.entry(group).or_default().push(line);
        }
    }
    for (group, members) in groups {
        let winners: Vec<&str> = members
            .iter()
            .filter(|line| line.status == Status::Winner)
            .map(|line| line.url.as_str())
            .collect();
        let agreed = members.iter().all(|line| line.winner.as_deref() == winners.first().copied());
        if winners.len() != 1 || !agreed || members.len() < 2 {
            agreement.violations.push(format!("{group:?}: {} members, winners {winners:?}", members.len()));
        }
    }
}

/// Checks that the line is true for its page. Returns what is wrong with it, if anything.
fn check_advice(
    line: &Line,
    (truth, cover): (&Truth, &Cover<'_>),
    agreement: &mut Agreement,
) -> Option<String> {
    let page = truth.collection.pages.get(&line.url)?;
    let (at, content) = match truth.collection.resolve(&line.url) {
        Resolution::At(at, content) => (at, content),
        Resolution::Unresolved(reason) => {
            return (line.status != Status::Unresolved).then(|| format!("does not resolve: {reason:?}"));
        }
    };
    if line.status == Status::Unresolved {
        return Some(format!("resolves to {at}"));
    }
    let duplicate_of = truth.duplicate_of(cover, &line.url);
    if line.duplicate_of.as_deref() != duplicate_of {
        return Some(format!("a duplicate of {duplicate_of:?}"));
    }
    if (line.status == Status::Duplicate) != duplicate_of.is_some() {
        return Some("not what it is said to be".to_owned());
    }
    let compared = matches!(page, Page::Content(_)) && duplicate_of.is_some();
    if compared != line.similarity.is_some() {
        return Some("similarity should be null, or not".to_owned());
    }
    agreement.duplicates += usize::from(line.status == Status::Duplicate);
    agreement.secondaries += usize::from(line.status == Status::Secondary);
    let Resolution::At(kept, kept_content) = truth.collection.resolve(duplicate_of?) else {
        return Some("the kept page does not resolve".to_owned());
    };
    if at != kept && !truth.near_duplicate(content, kept_content) {
        return Some("no duplicate of the page that is named".to_owned());
    }
    let error = (line.similarity? - truth.jaccard(content, kept_content)).abs();
    agreement.similarity_error = agreement.similarity_error.max(error);
    (error > SIMILARITY_TOLERANCE).then(|| format!("similarity is off by {error}"))
}

/// Checks that no two pages with a content that are kept are near-duplicates, from the output and the pairs
/// alone.
fn check_kept(lines: &[Line], truth: &Truth, agreement: &mut Agreement) {
    let mut kept: HashMap<usize, &str> = HashMap::new();
    for line in lines.iter().filter(|line| line.status != Status::Duplicate) {
        let Some(Page::Content(content)) = truth.collection.pages.get(&line.url) else { continue };
        if truth.collection.contents.get(*content).tokens > 0
            && let Some(other) = kept.insert(content.index(), &line.url)
        {
            agreement.violations.push(format!("{} and {other} are kept, and are copies", line.url));
        }
    }
    for (a, b) in &truth.similar.above {
        if let (Some(a), Some(b)) = (kept.get(a), kept.get(b)) {
            agreement.violations.push(format!("{a} and {b} are kept, and are near-duplicates"));
        }
    }
}

/// Counts the pairs of comparable pages that the groups imply.
fn count_pairs(lines: &[Line], truth: &Truth, agreement: &mut Agreement) {
    let mut by_truth: HashMap<_, u64> = HashMap::new();
    let mut by_output: HashMap<_, u64> = HashMap::new();
    let mut by_both: HashMap<_, u64> = HashMap::new();
    let groups: HashMap<&str, &Group> =
        lines.iter().filter_map(|line| Some((line.url.as_str(), line.group.as_ref()?))).collect();
    for url in truth.collection.pages.keys().filter(|url| truth.collection.is_comparable(url)) {
        let right = truth.group(url);
        *by_truth.entry(right).or_default() += 1;
        if let Some(group) = groups.get(url.as_str()) {
            *by_output.entry(group).or_default() += 1;
            *by_both.entry((right, group)).or_default() += 1;
        }
    }
    agreement.true_pairs = by_truth.values().map(|n| n * (n - 1) / 2).sum();
    agreement.found_pairs = by_output.values().map(|n| n * (n - 1) / 2).sum();
    agreement.right_pairs = by_both.values().map(|n| n * (n - 1) / 2).sum();
}

/// Counts the pages whose group has exactly the right members.
fn count_exact(lines: &[Line], truth: &Truth, agreement: &mut Agreement) {
    let mut found: HashMap<&Group, Vec<&str>> = HashMap::new();
    let mut alone = HashSet::new();
    for line in lines {
        match &line.group {
            Some(group) => found.entry(group).or_default().push(&line.url),
            None => {
                alone.insert(line.url.as_str());
            }
        }
    }
    let found: HashSet<Vec<&str>> = found.into_values().collect();
    for group in truth.groups() {
        let exact = found.contains(&group) || matches!(group[..], [url] if alone.contains(url));
        agreement.exact_pages += if exact { group.len() } else { 0 };
    }
    let unresolved = truth.collection.pages.keys().filter(|url| truth.group(url).is_none());
    agreement.exact_pages += unresolved.filter(|url| alone.contains(url.as_str())).count();
}
