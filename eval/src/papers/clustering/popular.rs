//! `doppel-eval popular`: counts the removed pages if only the groups of popular pages are looked at, and if
//! all groups are.
//!
//! The paper compares a scheme that removes about 5 % of all pages with one that removes about 33 %. Its
//! figure 9 shows how many machines the second scheme saves; that is not measured here.
//!
//! Crawls in files have no popularity. The popularity of a page is therefore the number of pages of the crawl
//! that link to it. Pages with equal numbers are in the order of their URLs.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use doppel_crawls::{FetchedBody, FetchedPage};
use doppel_inputs::arguments::InputArgs;
use doppel_join::{ContentIndex, Contents};
use doppel_model::PageUrl;
use doppel_model::pairwise::Policy;
use doppel_terminal::output::{count, share};
use doppel_terminal::svg::{Panel, PlotSeries};
use doppel_text::Extractor;
use serde::Serialize;

use crate::ground_truth::labelled::{self, CrawledPages};
use crate::report::{Report, Table, percent};

/// Shares of the pages whose groups are looked at, the most popular first, in percent.
const SHARES: [f64; 9] = [0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 35.0, 50.0, 100.0];

/// Show what is removed if only popular pages' groups are looked at, and if all groups are.
///
/// In a group that has one of the most popular pages, all pages but one are removed. Popularity is the number
/// of pages of the crawl that link to a page. Redirects do not count as pages here.
#[derive(Debug, Args)]
pub(crate) struct Popular {
    #[command(flatten)]
    inputs: InputArgs,
    /// Policy that compares the pages.
    #[arg(long = "policy", value_name = "NAME[:KEY=VALUE,...]", default_value = "jaccard")]
    policy: Policy,
}

/// Numbers of removed pages, by share of popular pages.
#[derive(Debug, Serialize)]
pub(crate) struct PopularResult {
    policy: Policy,
    pages: usize,
    links: u64,
    rows: Vec<Row>,
    seconds: f64,
}

/// Numbers of groups and of removed pages if the groups of the `pages` most popular pages are looked at.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Row {
    percent: f64,
    pages: usize,
    groups: usize,
    removed: usize,
    removed_share: f64,
}

impl Popular {
    pub(crate) fn run(self) -> anyhow::Result<PopularResult> {
        let begin = Instant::now();
        let crawled = CrawledPages::read(&self.inputs)?;
        let mut contents = Contents::new(self.policy);
        let mut extractor = Extractor::signing(crawled.signer(self.policy)?);
        let (mut pages, mut signatures) = (Vec::new(), Vec::new());
        for page in &crawled.pages {
            let Some(signature) = labelled::sign(&mut extractor, page) else { continue };
            let has_words = signature.tokens() > 0;
            let (content, is_new) = contents.add(&signature);
            if is_new {
                signatures.push(Arc::new(signature));
            }
            pages.push((&page.url, has_words.then_some(content)));
        }
        let read = |content: ContentIndex| Ok::<_, Infallible>(Arc::clone(&signatures[content.0 as usize]));
        let Ok(roots) = contents.components(&read, |_| true);
        let linked = links(&crawled.pages);
        pages.sort_by_key(|(url, _)| (std::cmp::Reverse(linked.get(*url).copied().unwrap_or(0)), *url));
        let groups: Vec<Option<u32>> =
            pages.iter().map(|(_, content)| content.map(|content| roots[content.0 as usize].0)).collect();
        Ok(PopularResult {
            policy: self.policy,
            pages: pages.len(),
            links: linked.values().sum(),
            rows: SHARES.iter().map(|percent| row(*percent, &groups)).collect(),
            seconds: begin.elapsed().as_secs_f64(),
        })
    }
}

/// Counts the removed pages if the groups of the first `percent` of the pages are looked at. `groups` has the
/// group of each page, or `None`.
fn row(percent: f64, groups: &[Option<u32>]) -> Row {
    let popular = (groups.len() as f64 * percent / 100.0).round() as usize;
    let popular_groups: HashSet<u32> = groups[..popular].iter().copied().flatten().collect();
    let members = groups.iter().flatten().filter(|group| popular_groups.contains(group)).count();
    let removed = members - popular_groups.len();
    let removed_share = share(removed as u64, groups.len() as u64);
    Row { percent, pages: popular, groups: popular_groups.len(), removed, removed_share }
}

/// Counts the other pages that link to each page.
fn links(pages: &[FetchedPage]) -> HashMap<PageUrl, u64> {
    let known: HashSet<&PageUrl> = pages.iter().map(|page| &page.url).collect();
    let mut links: HashMap<PageUrl, u64> = HashMap::new();
    for page in pages {
        let FetchedBody::Html { bytes, .. } = &page.body else { continue };
        let targets: HashSet<PageUrl> =
            hrefs(bytes).filter_map(|reference| page.url.join(reference).ok()).collect();
        for target in targets {
            if target != page.url && known.contains(&target) {
                *links.entry(target).or_default() += 1;
            }
        }
    }
    links
}

/// Values of quoted `href` attributes, each up to its fragment.
fn hrefs(html: &[u8]) -> impl Iterator<Item = &str> {
    const HREF: &[u8] = b"href=\"";
    let mut rest = html;
    std::iter::from_fn(move || {
        loop {
            let at = rest.windows(HREF.len()).position(|window| window == HREF)?;
            rest = &rest[at + HREF.len()..];
            let end = rest.iter().position(|byte| *byte == b'"')?;
            let value = std::str::from_utf8(&rest[..end]).ok();
            rest = &rest[end..];
            let reference = value.and_then(|value| value.split('#').next());
            if let Some(reference) = reference.filter(|reference| !reference.is_empty()) {
                return Some(reference);
            }
        }
    })
}

impl Report for PopularResult {
    fn tables(&self) -> Vec<Table> {
        let title = format!(
            "what is removed of {} pages when the groups of the most popular ones are looked at, {}",
            count(self.pages as u64),
            self.policy
        );
        let mut table = Table::new(&title, ["most popular, %", "pages", "groups", "removed", "% of all"]);
        for Row { percent: of, pages, groups, removed, removed_share } in &self.rows {
            table.row([
                of.to_string(),
                count(*pages as u64),
                count(*groups as u64),
                count(*removed as u64),
                percent(*removed_share),
            ]);
        }
        vec![table]
    }

    fn notes(&self) -> Vec<String> {
        vec![
            format!("links between pages of the crawl: {}", count(self.links)),
            "the paper compares schemes that remove about 5 % and about 33 % of all pages; its figure 9 shows the machines that \
             the second saves, which this does not measure"
                .to_owned(),
            format!("{:.0} s", self.seconds),
        ]
    }

    fn panels(&self) -> Vec<Panel> {
        let points = self.rows.iter().map(|row| (row.percent, 100.0 * row.removed_share)).collect();
        vec![Panel {
            title: "Removed by how many popular pages' groups are looked at".to_owned(),
            x: "most popular pages, %".to_owned(),
            y: "% of all pages removed".to_owned(),
            series: vec![PlotSeries { name: self.policy.to_string(), dashed: false, points }],
            ..Panel::default()
        }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_popular_pages_keep_one_page() {
        // Pages in order of popularity. A page without words is in no group.
        let groups = [Some(1), None, Some(2), Some(1), Some(3), Some(2), Some(2), Some(4), Some(1), Some(5)];
        let removed = |percent| {
            let row = row(percent, &groups);
            (row.pages, row.groups, row.removed)
        };
        assert_eq!((removed(10.0), removed(30.0), removed(100.0)), ((1, 1, 2), (3, 2, 4), (10, 5, 4)));
    }

    #[test]
    fn a_page_that_links_twice_counts_once() {
        let page = |path: &str, html: &str| FetchedPage {
            url: PageUrl::parse(&format!("http://h/{path}")).unwrap(),
            fetched_at: None,
            body: FetchedBody::Html { bytes: html.as_bytes().to_vec(), charset: None },
            popularity: None,
            language: None,
        };
        let pages = [
            page("a", r##"<a href="b">x</a><a href="/b#part">y</a><a href="#top">z</a><a href="a">own</a>"##),
            page("b", r#"<a href="http://h/a"> <a href="http://elsewhere/"> <a href="open"#),
            page("c", r#"<a href="b">"#),
        ];
        let links = links(&pages);
        let of = |path: &str| links.get(&PageUrl::parse(&format!("http://h/{path}")).unwrap()).copied();
        assert_eq!((of("a"), of("b"), of("c"), links.len()), (Some(1), Some(2), None, 2));
    }
}
