//! `doppel winners`: checks a file of winner rules, and shows which of some pages would win.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use doppel_contract::{Market, Markets, WinnerRule, words};
use doppel_crawls::{FetchedBody, FetchedPage};
use doppel_inputs::arguments::InputArgs;
use doppel_inputs::reading::crawl;
use doppel_inputs::records::RecordArgs;
use doppel_model::{PageUrl, Timestamp};
use doppel_node::winners::WinnerSettings;
use doppel_protocol::{DatedPopularity, Rank, WinnerOrder};
use doppel_terminal::exit::Failure;
use doppel_terminal::output::{Output, count, say, table};
use serde::Serialize;

/// Largest number of pages that are put in order. It is more than a group has before it is quarantined.
const PAGES_MAX: usize = 200_000;

/// Check a file of winner rules, and show which of some pages would win.
///
/// Needs no server. The command reads the file as `doppel serve --winners FILE` does, and reports mistakes
/// with their lines. Then it puts the given pages in the winner order, as if all were in one group, and says
/// by which rule the winner precedes each page. Pages of crawl files have the dates and the popularity of
/// their records. If only a URL is given, the rules on dates and popularity have no effect on it. Pages that
/// are dead or redirect never win, and are left out.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel winners deploy/winners.toml
  doppel winners winners.toml http://example.org/a?id=1 http://example.org/a
  doppel winners winners.toml --market german pages.jsonl")]
pub(crate) struct WinnersFile {
    /// File of rules and markets (docs/reference/winner-rules.md).
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Pages: URLs, or files of pages as for `doppel load`, such as JSON lines.
    #[arg(value_name = "URL|INPUT")]
    pages: Vec<String>,
    /// Prefer pages of this market. Give its name in the file, or a host suffix such as `de`.
    #[arg(long, value_name = "MARKET", requires = "pages")]
    market: Option<String>,
    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    records: RecordArgs,
}

/// Contents of the file, and the pages in the winner order.
#[derive(Debug, Serialize)]
struct CheckedRules {
    rules: Vec<WinnerRule>,
    /// Whether the file names the rules. If not, `rules` are the default rules of a new data directory.
    rules_are_named: bool,
    markets: BTreeMap<String, Vec<String>>,
    pages: Vec<PlacedPage>,
}

/// A page in the winner order.
#[derive(Debug, Serialize)]
struct PlacedPage {
    url: PageUrl,
    /// Rule by which the winner precedes this page; `None` for the winner itself.
    rule: Option<WinnerRule>,
}

impl WinnersFile {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let WinnerSettings { order, markets } = WinnerSettings::read(&self.file)?;
        let market = self.market.as_deref().map(|name| markets.find(name)).transpose();
        let market = market.map_err(|error| Failure::Usage(format!("--market: {error}")))?;
        let chosen = order.unwrap_or_default();
        let ranks = self.ranks()?;
        if let Some((name, market)) = self.market.as_deref().zip(market.as_ref())
            && !markets.iter().any(|(known, _)| known.eq_ignore_ascii_case(name))
            && !ranks.iter().any(|rank| market.has(&rank.url))
        {
            say!(
                "doppel: --market: {} has no market {name}, so it is taken for a suffix of hosts, and no page that is given has it",
                self.file.display()
            );
        }
        let pages = placed(ranks, chosen, market.as_ref());
        let rules_and_pages = CheckedRules {
            rules: chosen.rules().collect(),
            rules_are_named: order.is_some(),
            markets: suffixes(&markets),
            pages,
        };
        Output { json: self.json }.print(&rules_and_pages, |out| print(&rules_and_pages, out))?;
        Ok(())
    }

    /// Returns one rank for each given page.
    fn ranks(&self) -> anyhow::Result<Vec<Rank>> {
        let (mut known, mut inputs) = (Records::default(), Vec::new());
        for page in &self.pages {
            if Path::new(page).exists() {
                inputs.push(PathBuf::from(page));
                continue;
            }
            let url = PageUrl::parse(page).map_err(|error| {
                Failure::Usage(format!("{page} is neither a file nor a page URL ({error})"))
            })?;
            known.note(FetchedPage {
                url,
                // All pages have the same date, so that rules on dates do not distinguish them.
                fetched_at: Some(Timestamp::from_millis(0)),
                body: FetchedBody::Text(String::new()),
                popularity: None,
                language: None,
            })?;
        }
        if !inputs.is_empty() {
            let inputs = InputArgs::new(inputs, false, self.records.clone());
            let tally = crawl::read(&inputs, |page| Ok(known.note(page)?))?;
            tally.verdict(false, 0)?;
        }
        Ok(known.ranks().collect())
    }
}

/// The record of each URL after all its versions, with the fields that a server records.
#[derive(Debug, Default)]
struct Records(BTreeMap<PageUrl, Record>);

#[derive(Debug)]
struct Record {
    first_seen: Timestamp,
    popularity: Option<DatedPopularity>,
    last: Timestamp,
    /// Body of the last version, without its content.
    body: FetchedBody,
}

impl Records {
    /// Records a version of a page.
    fn note(&mut self, page: FetchedPage) -> Result<(), Failure> {
        let FetchedPage { url, fetched_at, body, popularity, .. } = page;
        let date = fetched_at.unwrap_or(Timestamp::from_millis(0));
        if self.0.len() >= PAGES_MAX && !self.0.contains_key(&url) {
            let text =
                format!("more than {} pages: give those that might be in one group", count(PAGES_MAX as u64));
            return Err(Failure::Usage(text));
        }
        let body = if body.has_content() { FetchedBody::Text(String::new()) } else { body };
        let popularity = popularity.map(|value| DatedPopularity { at: date, value });
        let new = Record { first_seen: date, popularity, last: date, body };
        let Some(known) = self.0.get_mut(&url) else {
            self.0.insert(url, new);
            return Ok(());
        };
        known.first_seen = known.first_seen.min(date);
        known.popularity = DatedPopularity::later(known.popularity, popularity);
        if (known.last, known.body.order_of_one_date()) < (date, new.body.order_of_one_date()) {
            (known.last, known.body) = (date, new.body);
        }
        Ok(())
    }

    /// Returns the ranks of the pages whose last version has content.
    fn ranks(self) -> impl Iterator<Item = Rank> {
        let live = self.0.into_iter().filter(|(_, record)| record.body.has_content());
        live.map(|(url, Record { first_seen, popularity, .. })| {
            let popularity = popularity.map(|popularity| popularity.value);
            Rank { url, popularity, first_seen }
        })
    }
}

/// Puts the pages in the winner order.
fn placed(mut ranks: Vec<Rank>, order: WinnerOrder, market: Option<&Market>) -> Vec<PlacedPage> {
    ranks.sort_by(|a, b| order.compare(a, b, market).0);
    let rule = |at: usize, rank: &Rank| (at > 0).then(|| order.compare(&ranks[0], rank, market).1);
    let rules: Vec<_> = ranks.iter().enumerate().map(|(at, rank)| rule(at, rank)).collect();
    ranks.into_iter().zip(rules).map(|(rank, rule)| PlacedPage { url: rank.url, rule }).collect()
}

fn suffixes(markets: &Markets) -> BTreeMap<String, Vec<String>> {
    let named = |(name, market): (&str, &Market)| {
        (name.to_owned(), market.suffixes().iter().map(ToString::to_string).collect())
    };
    markets.iter().map(named).collect()
}

fn print(rules_and_pages: &CheckedRules, out: &mut dyn Write) -> io::Result<()> {
    let CheckedRules { rules, rules_are_named, markets, pages } = rules_and_pages;
    let rules: Vec<_> = rules.iter().map(WinnerRule::to_string).collect();
    let of = if *rules_are_named { "" } else { " (the file names none: those of a new directory)" };
    writeln!(out, "rules{of}: {}", rules.join(", "))?;
    for (name, suffixes) in markets {
        writeln!(out, "market {name}: {}", suffixes.join(", "))?;
    }
    let row = |PlacedPage { url, rule }: &PlacedPage| match rule {
        None => vec!["winner".to_owned(), url.to_string()],
        Some(rule) => {
            vec![String::new(), url.to_string(), format!("behind the winner ({})", words::rule(*rule))]
        }
    };
    table(out, &pages.iter().map(row).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(url: &str, day: i64, popularity: Option<f64>, body: FetchedBody) -> FetchedPage {
        let fetched_at = Some(Timestamp::from_millis(day * Timestamp::DAY_MS));
        FetchedPage { url: PageUrl::parse(url).unwrap(), fetched_at, body, popularity, language: None }
    }

    #[test]
    fn versions_are_recorded_as_by_a_server() {
        let text = || FetchedBody::Text("a".to_owned());
        let mut known = Records::default();
        for page in [
            version("http://a/", 2, Some(4.0), text()),
            version("http://a/", 3, None, text()),
            version("http://a/", 1, Some(9.0), text()),
            version("http://gone/", 2, None, FetchedBody::Dead),
            version("http://gone/", 2, None, text()),
            version("http://moved/", 2, None, text()),
            version("http://moved/", 2, None, FetchedBody::Redirect(PageUrl::parse("http://a/").unwrap())),
        ] {
            known.note(page).unwrap();
        }
        // A late version still says how early the page was seen. Of versions with one date, a death is the
        // last and a redirect the first.
        let rank = |url: &str, popularity, day: i64| Rank {
            url: PageUrl::parse(url).unwrap(),
            popularity,
            first_seen: Timestamp::from_millis(day * Timestamp::DAY_MS),
        };
        let ranks: Vec<Rank> = known.ranks().collect();
        assert_eq!(ranks, [rank("http://a/", Some(4.0), 1), rank("http://moved/", None, 2)]);
    }

    #[test]
    fn pages_stand_in_the_winner_order_with_the_rule_that_decided() {
        let rank = |url: &str| Rank {
            url: PageUrl::parse(url).unwrap(),
            popularity: None,
            first_seen: Timestamp::from_millis(0),
        };
        let ranks =
            || vec![rank("http://a.example/long?q"), rank("http://b.de/longer"), rank("http://a.example/")];
        let urls = |placed: Vec<PlacedPage>| -> Vec<_> {
            placed.into_iter().map(|page| (page.url.to_string(), page.rule)).collect()
        };
        let expected = [
            ("http://a.example/".to_owned(), None),
            ("http://b.de/longer".to_owned(), Some(WinnerRule::ShorterUrl)),
            ("http://a.example/long?q".to_owned(), Some(WinnerRule::StaticUrl)),
        ];
        assert_eq!(urls(placed(ranks(), WinnerOrder::DEFAULT, None)), expected);
        let german = Market::new(vec!["de".parse().unwrap()]).unwrap();
        let first = &placed(ranks(), WinnerOrder::DEFAULT, Some(&german))[0];
        assert_eq!(first.url.as_str(), "http://b.de/longer");
    }
}
