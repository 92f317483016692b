//! The clients of a cluster under faults. Some push pages, some ask for statuses, and all of them record
//! violations of what the cluster promises.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use doppel_contract::client::builder_without_tls;
use doppel_model::Timestamp;
use reqwest::blocking::{Client, Response};
use serde_json::{Value, json};

use super::crawl::{Crawl, History, Pushed};
use crate::harness::lines_of;
use crate::harness::pages::{Random, ndjson};

/// Number of threads that push (`PUSHERS`), number of pages in a batch (`BATCH`), and the pause after a
/// batch.
const PUSHERS: usize = 4;
const BATCH: usize = 12;
const PAUSE: Duration = Duration::from_secs(1);

/// Pause after a request without an answer (`AGAIN`), and between two questions (`QUESTIONS`).
const AGAIN: Duration = Duration::from_millis(100);
const QUESTIONS: Duration = Duration::from_millis(15);

/// Time limit of a request. After the limit, the client does not know whether the request is carried out.
const LIMIT: Duration = Duration::from_secs(20);

/// Time limit after which a batch that no coordinator accepts counts as a violation.
const PATIENCE: Duration = Duration::from_secs(240);

/// Allowed age of an answer: its contents must have been current at some moment within this time, or within
/// the age that it states.
const STALE: Duration = Duration::from_secs(5);

/// State that all clients share.
pub(crate) struct Clients {
    fronts: Vec<String>,
    http: Client,
    pub(crate) history: History,
    stop: AtomicBool,
    violations: Mutex<Vec<String>>,
    pub(crate) rounds: AtomicUsize,
    pub(crate) duplicates: AtomicU64,
    pub(crate) answers: AtomicU64,
    /// Number of answers that state an age.
    pub(crate) old: AtomicU64,
    pub(crate) refusals: AtomicU64,
}

impl Clients {
    pub(crate) fn new(fronts: Vec<String>) -> Self {
        Self {
            fronts,
            http: builder_without_tls().timeout(LIMIT).build().unwrap(),
            history: History::default(),
            stop: AtomicBool::new(false),
            violations: Mutex::default(),
            rounds: AtomicUsize::new(0),
            duplicates: AtomicU64::new(0),
            answers: AtomicU64::new(0),
            old: AtomicU64::new(0),
            refusals: AtomicU64::new(0),
        }
    }

    /// Tells all clients to end. Those that push end after their round.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Records and prints a violation.
    pub(crate) fn violation(&self, what: String) {
        eprintln!("VIOLATION: {what}");
        self.violations.lock().unwrap().push(what);
    }

    pub(crate) fn violations(&self) -> Vec<String> {
        self.violations.lock().unwrap().clone()
    }

    /// Pushes round after round through all coordinators at once. A round begins when the previous round is
    /// acknowledged.
    pub(crate) fn push(&self, crawl: &Crawl) {
        while !self.is_stopping() && self.violations().is_empty() {
            let pages = crawl.round(self.rounds.load(Ordering::Relaxed));
            let batches = Mutex::new(pages.chunks(BATCH));
            thread::scope(|scope| {
                for pusher in 0..PUSHERS {
                    let batches = &batches;
                    scope.spawn(move || {
                        loop {
                            let batch = batches.lock().unwrap().next();
                            let Some(batch) = batch else { break };
                            self.push_batch(pusher, batch);
                            thread::sleep(PAUSE);
                        }
                    });
                }
            });
            self.rounds.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn push_batch(&self, mut front: usize, batch: &[Pushed]) {
        batch.iter().for_each(|page| self.history.sent(page));
        let mut left: Vec<&Pushed> = batch.iter().collect();
        let began = Instant::now();
        while !left.is_empty() {
            if began.elapsed() > PATIENCE {
                return self.violation(format!(
                    "no coordinator accepts {} and other pages of its batch",
                    left[0].url
                ));
            }
            front += 1;
            let url = format!("{}/v1/pages", self.fronts[front % self.fronts.len()]);
            let lines: Vec<Value> = left.iter().map(|page| page.line.clone()).collect();
            let request =
                self.http.post(url).header("content-type", "application/x-ndjson").body(ndjson(&lines));
            let Some(answer) = self.answered(request.send()) else { continue };
            let (mut refused, answers) = (Vec::new(), lines_of(&answer));
            if answers.len() != left.len() {
                return self.violation(format!("{} pages were answered by {answer}", left.len()));
            }
            for (page, answer) in left.into_iter().zip(answers) {
                match answer["error"]["code"].as_str() {
                    None => self.history.acknowledged(&page.url),
                    Some("retry") => refused.push(page),
                    Some(_) => self.violation(format!("{} was refused: {answer}", page.url)),
                }
            }
            if !refused.is_empty() {
                thread::sleep(AGAIN);
            }
            left = refused;
        }
    }

    /// The body of an answer. `None` if the client should send the request again; waits before it returns
    /// that.
    fn answered(&self, answer: reqwest::Result<Response>) -> Option<String> {
        let has_pause = |answer: &Response| answer.headers().contains_key("retry-after");
        let answer = answer.and_then(|answer| Ok((answer.status(), has_pause(&answer), answer.text()?)));
        match answer {
            Ok((status, _, text)) if status == 200 => return Some(text),
            Ok((status, true, _)) if status == 503 || status == 429 => {}
            Ok((status, _, text)) => self.violation(format!("a request was answered by {status}: {text}")),
            // The coordinator has died, or does not answer.
            Err(_) => {}
        }
        self.refusals.fetch_add(1, Ordering::Relaxed);
        thread::sleep(AGAIN);
        None
    }

    /// Asks for the status of pages, one or several at a time, and checks the answers.
    pub(crate) fn ask(&self, seed: u64) {
        let (mut random, pages) = (Random::new(seed), Crawl::plain());
        while !self.is_stopping() {
            thread::sleep(QUESTIONS);
            let front = &self.fronts[random.index(self.fronts.len())];
            let began = Instant::now();
            let some: Vec<&String> = (0..10).map(|_| &pages[random.index(pages.len())]).collect();
            let answers = if random.index(2) == 0 {
                let question = self.http.get(format!("{front}/v1/status")).query(&[("url", some[0])]);
                self.answered(question.send()).map(|text| lines_of(&text))
            } else {
                let question = self.http.post(format!("{front}/v1/status")).json(&json!({ "urls": some }));
                self.answered(question.send())
                    .map(|text| lines_of(&text)[0]["pages"].as_array().cloned().unwrap_or_default())
            };
            let ended = Instant::now();
            answers.into_iter().flatten().for_each(|answer| self.check(&answer, began, ended));
        }
    }

    fn check(&self, answer: &Value, began: Instant, ended: Instant) {
        self.answers.fetch_add(1, Ordering::Relaxed);
        let Some(url) = answer["url"].as_str() else {
            return self.violation(format!("an answer is about no page: {answer}"));
        };
        let age = answer["age_ms"].as_u64().map(Duration::from_millis);
        if age.is_some() {
            self.old.fetch_add(1, Ordering::Relaxed);
        }
        if age.is_some_and(|age| age > STALE) {
            self.violation(format!("an answer is too old: {answer}"));
        }
        // The age counts from the moment of the answer, which is later than the moment of the question.
        let from = began.checked_sub(age.unwrap_or(STALE)).unwrap_or(began);
        if let Some(kept) = self.history.kept_before(url, from) {
            let date = answer["fetched_at"].as_str().map(|date| date.parse::<Timestamp>().unwrap());
            let is_lost = answer["status"] == "unknown" || date.is_some_and(|date| date < kept);
            if is_lost {
                let told = self.history.told(url, ended);
                self.violation(format!("{answer} was answered of a page with newer versions:\n{told}"));
            }
        }
        if answer["status"] == "duplicate" {
            self.duplicates.fetch_add(1, Ordering::Relaxed);
            let other = answer["duplicate_of"].as_str().unwrap_or_default();
            if !self.history.could_be_duplicates([url, other], from, ended) {
                let told = [url, other].map(|page| self.history.told(page, ended)).join("\n");
                let time = ended - began;
                self.violation(format!("{answer} was answered in {time:?}, and is not true:\n{told}"));
            }
        }
    }
}
