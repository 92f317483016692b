//! Runs the steps of a history against a server, and compares every answer with the model.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use doppel_contract::client::builder_without_tls;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::front::Front;
use super::history::{Body, History, MARKETS, Market, NEVER, Page, Step, Version, url};
use super::model::{Expected, Mistake, Model, Signatures};
use crate::harness::{Server, json_of, lines_of};

/// How often, and with which pause, a request is repeated. In a cluster a range may have no owner for a
/// while.
const PATIENCE: u32 = 600;
const PAUSE: Duration = Duration::from_millis(100);

const WINNERS: &str = "winners.toml";
const TABLES: &str = "tables";

/// Result of a comparison. The error describes the differences between answers and the model.
pub(crate) type Checked = Result<(), String>;

/// Answers of a server about all pages.
struct Answers {
    export: Vec<Value>,
    statuses: Vec<Value>,
}

/// A consumer of the change feed.
#[derive(Default)]
struct Consumer {
    cursor: Option<String>,
    /// Newest event of each page.
    lines: BTreeMap<String, Value>,
}

/// A history that is being run.
pub(crate) struct Served<'h> {
    pub(crate) history: &'h History,
    pub(crate) signatures: &'h Signatures,
    pub(crate) home: TempDir,
    /// Versions that arrived, without those of pages that were purged since.
    pub(crate) arrived: Vec<Version>,
    /// All versions that arrived.
    pub(crate) all: Vec<Version>,
    consumer: Consumer,
    /// Planted mistakes of the model that caused a difference.
    pub(crate) noticed: BTreeSet<Mistake>,
    /// Number of compared answers.
    pub(crate) compared: usize,
}

impl<'h> Served<'h> {
    pub(crate) fn new(history: &'h History, signatures: &'h Signatures) -> Self {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join(WINNERS), history.winners_file()).unwrap();
        if let Some(tables) = &signatures.tables {
            std::fs::write(home.path().join(TABLES), tables).unwrap();
        }
        Self {
            history,
            signatures,
            home,
            arrived: Vec::new(),
            all: Vec::new(),
            consumer: Consumer::default(),
            noticed: BTreeSet::new(),
            compared: 0,
        }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Options that a server, a cluster and a batch share.
    pub(crate) fn options(&self) -> Vec<String> {
        let setup = &self.history.setup;
        let file = |name: &str| self.file(name).display().to_string();
        let mut options = vec![("--policy", setup.policy.to_owned()), ("--winners", file(WINNERS))];
        if self.signatures.tables.is_some() {
            options.push(("--policy-tables", file(TABLES)));
        }
        if let Some(max) = setup.contents_max {
            options.push(("--group-members-max", max.to_string()));
        }
        options.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).collect()
    }

    /// Options of a collection in a data directory.
    pub(crate) fn directory_options(&self) -> Vec<String> {
        let setup = &self.history.setup;
        let numbers = [
            "--shards".to_owned(),
            setup.shards.to_string(),
            "--ranges".to_owned(),
            setup.ranges.to_string(),
        ];
        [self.options(), numbers.to_vec()].concat()
    }

    /// Options of a server on a data directory.
    pub(crate) fn server_options(&self) -> Vec<String> {
        let setup = &self.history.setup;
        let mut options = self.directory_options();
        for (name, number) in [("--partitions", setup.partitions), ("--index-nodes", setup.nodes)] {
            options.extend([name.to_owned(), number.to_string()]);
        }
        options.extend(["--snapshot-every", "0s"].map(str::to_owned));
        options
    }

    pub(crate) fn model(&self, mistake: Option<Mistake>) -> Model<'h> {
        let arrived = if mistake == Some(Mistake::PurgeForgetsNothing) { &self.all } else { &self.arrived };
        Model::of(self.history, self.signatures, arrived, mistake)
    }

    /// Runs all steps, and compares every answer at the end.
    pub(crate) fn run(&mut self, front: &mut dyn Front) -> Checked {
        for step in &self.history.steps {
            match step {
                Step::Push(versions) => self.push(front, versions),
                Step::One(version) => self.one(front, version)?,
                Step::Kill => front.kill(&mut || ()),
                Step::KillDuring(versions, micros) => {
                    let body: String =
                        versions.iter().map(|version| format!("{}\n", self.history.line(version))).collect();
                    let address = format!("{}/v1/pages", front.server().url);
                    let sender = thread::spawn(move || {
                        let client = builder_without_tls().build().unwrap();
                        let request = client.post(address).header("content-type", "application/x-ndjson");
                        // The process may be killed before or after the request arrives.
                        let _ = request.body(body).send();
                    });
                    front.kill(&mut || thread::sleep(Duration::from_micros(*micros)));
                    sender.join().unwrap();
                    self.push(front, versions);
                }
                Step::Purge(page) => {
                    let answer = patiently(|| {
                        front.server().post(
                            "/v1/purge",
                            "application/json",
                            json!({"url": url(*page).as_str()}).to_string(),
                        )
                    });
                    let is_known = self.model(None).answers(None).contains_key(url(*page).as_str());
                    // In a cluster the purge may be repeated, because a range had no owner, and then counts
                    // zero.
                    if answer["purged"] != u64::from(is_known) && !front.is_cluster() {
                        return Err(format!("the purge of {} answers {answer}", url(*page)));
                    }
                    self.arrived.retain(|version| version.page != *page);
                }
                Step::Repair => self.repair(front),
                Step::Read(limit) => drop(self.consumer.read(front.server(), *limit)),
                Step::Rest => self.rest(front)?,
            }
        }
        self.rest(front)
    }

    fn arrive(&mut self, versions: &[Version]) {
        self.arrived.extend(versions);
        self.all.extend(versions);
    }

    fn push(&mut self, front: &dyn Front, versions: &[Version]) {
        let lines: Vec<Value> = versions.iter().map(|version| self.history.line(version)).collect();
        front.server().push_patiently(&lines);
        self.arrive(versions);
    }

    /// Submits one version, and checks its outcome if the model knows it without a comparison.
    fn one(&mut self, front: &dyn Front, version: &Version) -> Checked {
        let expected = self.model(None).outcome(version);
        let line = self.history.line(version);
        let server = front.server();
        let answer = patiently(|| match version.body {
            Body::Dead if version.popularity.is_none() => {
                let date = line["fetched_at"].as_str().unwrap();
                server.delete("/v1/pages", &[("url", url(version.page).as_str()), ("fetched_at", date)])
            }
            _ => server.post("/v1/pages", "application/json", line.to_string()),
        });
        let outcome = answer["outcome"].as_str().unwrap_or_default();
        let fits = match expected {
            Some(expected) => outcome == expected,
            None => ["pending", "confirmed"].contains(&outcome),
        };
        if !fits && !front.is_cluster() {
            return Err(format!("{version} is answered {answer}, expected {expected:?}"));
        }
        self.arrive(&[*version]);
        Ok(())
    }

    /// Repairs all groups as an operator does. Some of the groups may merge meanwhile.
    fn repair(&self, front: &dyn Front) {
        let list = patiently(|| front.server().get("/v1/groups?limit=1000"));
        for group in list["groups"].as_array().unwrap() {
            let path = format!("/v1/groups/{}/repair?by=ann", group["group"].as_str().unwrap());
            let response = front.server().post(&path, "application/json", "{}");
            assert!(
                [200, 404, 409, 503].contains(&response.status().as_u16()),
                "{path}: {}",
                response.status()
            );
        }
    }

    /// Waits until everything is decided, and compares every answer with the model.
    pub(crate) fn rest(&mut self, front: &mut dyn Front) -> Checked {
        front.complete();
        front.server().flush_patiently();
        while !self.consumer.read(front.server(), 1_000) {}
        let answers = self.model(None).answers(None);
        let told = self.told(front.server(), None)?;
        self.feed(&answers, &told.export)?;
        groups(front.server(), &told.export)?;
        let market = &MARKETS[self.compared % MARKETS.len()];
        let in_market = self.told(front.server(), Some(market))?;
        self.compared += answers.len();
        for mistake in Mistake::ALL {
            let wrong = self.model(Some(mistake));
            let differs = |market: Option<&Market>, told: &Answers| {
                let wrong = wrong.answers(market);
                !differences(&live(&wrong), &told.export, "status").is_empty()
                    || !untold(&wrong, &told.statuses).is_empty()
            };
            if differs(None, &told) || differs(Some(market), &in_market) {
                self.noticed.insert(mistake);
            }
        }
        Ok(())
    }

    /// Compares a server on the same collection with the model.
    pub(crate) fn compare(&self, server: &Server) -> Checked {
        server.flush();
        let answers = self.told(server, None)?;
        groups(server, &answers.export)
    }

    /// Compares the export and the answers about all pages with the model, and returns them.
    fn told(&self, server: &Server, market: Option<&Market>) -> Result<Answers, String> {
        let answers = self.model(None).answers(market);
        let query: Vec<(&str, &str)> = market.iter().map(|market| ("market", market.name)).collect();
        let response = server.query("/v1/export", &query);
        assert_eq!(response.status(), 200);
        let export = lines_of(&response.text().unwrap());
        let of_market = market.map(|market| format!(" of the market {}", market.name)).unwrap_or_default();
        equal(&format!("the export{of_market}"), &differences(&live(&answers), &export, "status"))?;
        let statuses = self.statuses(server, &answers, market)?;
        Ok(Answers { export, statuses })
    }

    fn statuses(
        &self,
        server: &Server,
        answers: &BTreeMap<String, Expected>,
        market: Option<&Market>,
    ) -> Result<Vec<Value>, String> {
        let never = url(NEVER).to_string();
        let urls: Vec<&str> = answers.keys().map(String::as_str).chain([never.as_str()]).collect();
        let market = market.map(|market| market.name);
        let told = server.post_json("/v1/status", &json!({ "urls": urls, "market": market }));
        let told = told["pages"].as_array().unwrap();
        let what =
            market.map_or_else(|| "status".to_owned(), |market| format!("status in the market {market}"));
        equal(&what, &differences(answers, &told[..answers.len()], "status"))?;
        equal(&what, &untold(answers, told))?;
        let never = &told[answers.len()];
        if never["status"] != "unknown" {
            return Err(format!("a page that never came is {never}"));
        }
        Ok(told[..answers.len()].to_vec())
    }

    /// Checks that the replayed change feed gives the state of every page.
    fn feed(&self, answers: &BTreeMap<String, Expected>, export: &[Value]) -> Checked {
        let exported: BTreeMap<&str, &Value> =
            export.iter().map(|line| (line["url"].as_str().unwrap(), line)).collect();
        for (url, expected) in answers {
            let Some(line) = self.consumer.lines.get(url) else {
                return Err(format!("the feed tells nothing of {url}, expected {expected:?}"));
            };
            let reason = expected.reason.map_or(Value::Null, Value::from);
            let of_export =
                |field: &str| exported.get(url.as_str()).map_or(&Value::Null, |line| &line[field]);
            let fields = ["group", "winner", "duplicate_of", "similarity"];
            let is_same = fields.iter().all(|field| line[field] == *of_export(field));
            if line["status"] != expected.status || line["reason"] != reason || !is_same {
                return Err(format!(
                    "the feed tells {line}\n  expected {expected:?}\n  exported {:?}",
                    exported.get(url.as_str())
                ));
            }
        }
        let others = self.consumer.lines.iter().filter(|(url, _)| !answers.contains_key(*url));
        match others.into_iter().find(|(_, line)| line["status"] != "unknown") {
            Some((_, line)) => Err(format!("the feed tells {line} of a page that is not on record")),
            None => Ok(()),
        }
    }

    /// Number of pages in the history, for a message.
    pub(crate) fn page_count(&self) -> usize {
        self.arrived.iter().map(|version| version.page).collect::<BTreeSet<Page>>().len()
    }
}

impl Consumer {
    /// Reads up to `limit` events. Returns whether the feed has no more.
    fn read(&mut self, server: &Server, limit: usize) -> bool {
        let limit = limit.to_string();
        let mut query = vec![("limit", limit.as_str())];
        query.extend(self.cursor.as_deref().map(|cursor| ("cursor", cursor)));
        let answer = patiently(|| server.query("/v1/changes", &query));
        for change in answer["changes"].as_array().unwrap() {
            self.lines.insert(change["url"].as_str().unwrap().to_owned(), change.clone());
        }
        self.cursor = Some(answer["cursor"].as_str().unwrap().to_owned());
        answer["at_end"] == true
    }
}

/// The answer to a request. Repeats the request while nobody can answer it.
fn patiently(mut ask: impl FnMut() -> reqwest::blocking::Response) -> Value {
    for _ in 0..PATIENCE {
        let response = ask();
        if ![503, 429].contains(&response.status().as_u16()) {
            return json_of(response);
        }
        thread::sleep(PAUSE);
    }
    panic!("no answer for {:?}", PAUSE * PATIENCE)
}

/// The pages that an export lists.
pub(crate) fn live(answers: &BTreeMap<String, Expected>) -> BTreeMap<String, Expected> {
    let live = answers.iter().filter(|(_, expected)| expected.status != "dead");
    live.map(|(url, expected)| (url.clone(), expected.clone())).collect()
}

pub(crate) fn equal(what: &str, differences: &[String]) -> Checked {
    if differences.is_empty() { Ok(()) } else { Err(format!("{what}:\n{}", differences.join("\n"))) }
}

/// Describes the pages and groups in which lines differ from the expected answers.
pub(crate) fn differences(
    answers: &BTreeMap<String, Expected>,
    lines: &[Value],
    status: &str,
) -> Vec<String> {
    let mut differences = Vec::new();
    let told: BTreeMap<&str, &Value> =
        lines.iter().map(|line| (line["url"].as_str().unwrap(), line)).collect();
    if told.len() != lines.len() {
        differences.push("a page comes twice".to_owned());
    }
    for (url, expected) in answers {
        let Some(line) = told.get(url.as_str()) else {
            differences.push(format!("{url} is missing, expected {expected:?}"));
            continue;
        };
        let text = |field: &str| line[field].as_str().map(str::to_owned);
        let is_same = line[status] == expected.status
            && text("winner") == expected.winner
            && text("duplicate_of") == expected.duplicate_of
            && line["similarity"].as_f64() == expected.similarity
            && line["group"].is_null() == expected.group.is_none();
        if !is_same {
            differences.push(format!("{line}\n  expected {expected:?}"));
        }
    }
    differences
        .extend(told.keys().filter(|url| !answers.contains_key(**url)).map(|url| format!("{url} is there")));
    let mut groups: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    let mut ids: BTreeMap<usize, BTreeSet<&str>> = BTreeMap::new();
    for (url, line) in &told {
        let expected = answers.get(*url).and_then(|expected| expected.group);
        if let Some((group, number)) = line["group"].as_str().zip(expected) {
            groups.entry(group).or_default().insert(number);
            ids.entry(number).or_default().insert(group);
        }
    }
    let is_torn = ids.values().any(|ids| ids.len() > 1) || groups.values().any(|numbers| numbers.len() > 1);
    if is_torn {
        differences.push(format!("groups are {ids:?}"));
    }
    differences
}

/// Describes the pages whose answers state another rule, reason or date than expected.
fn untold(answers: &BTreeMap<String, Expected>, told: &[Value]) -> Vec<String> {
    let mut differences = Vec::new();
    for line in told {
        let Some(expected) = answers.get(line["url"].as_str().unwrap()) else { continue };
        let is_rule = expected.rule.is_none() || line["rule"].as_str() == expected.rule;
        if !is_rule || line["reason"].as_str() != expected.reason || line["fetched_at"] != expected.fetched_at
        {
            differences.push(format!("{line}\n  expected {expected:?}"));
        }
    }
    differences
}

/// Checks that the groups, queried by their ids, equal those of the export.
fn groups(server: &Server, export: &[Value]) -> Checked {
    let mut expected: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for line in export {
        if let Some(group) = line["group"].as_str() {
            expected.entry(group).or_default().insert(line["url"].as_str().unwrap());
        }
    }
    let list = server.ask("/v1/groups", &[("limit", "1000")]);
    let listed: BTreeSet<&str> =
        list["groups"].as_array().unwrap().iter().map(|group| group["group"].as_str().unwrap()).collect();
    if !expected.keys().all(|group| listed.contains(group)) {
        return Err(format!("listed are {listed:?}, and exported {:?}", expected.keys()));
    }
    for (group, urls) in expected {
        let answer = server.ask(&format!("/v1/groups/{group}"), &[("limit", "1000")]);
        let pages: BTreeSet<&str> =
            answer["pages"].as_array().unwrap().iter().map(|page| page["url"].as_str().unwrap()).collect();
        if pages != urls {
            return Err(format!("group {group} lists {pages:?}, and exported are {urls:?}"));
        }
    }
    Ok(())
}
