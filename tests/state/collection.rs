//! A small collection at rest that contains every kind of stored row.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::harness::Server;
use crate::harness::pages::text;

/// The number of shards: enough that messages cross shards.
pub(crate) const SHARDS: &str = "3";

/// The number of words in a text. Each replaced word changes 5 shingles. Two texts that each differ from a
/// third one in four words have J = 184 / 224 with it, and 164 / 244 with each other.
const WORDS: usize = 204;

/// A text with four words replaced, at different places for each `variant`.
fn variant(seed: u64, variant: usize) -> String {
    let mut words = text(seed, WORDS);
    for at in 0..4 {
        words[10 + 40 * at + 6 * variant] = format!("variant{variant}at{at}");
    }
    words.join(" ")
}

fn page(url: &str, day: u32, text: &str) -> Value {
    json!({ "url": url, "fetched_at": format!("2024-05-{day:02}T12:00:00Z"), "text": text })
}

fn plain(seed: u64) -> String {
    text(seed, WORDS).join(" ")
}

/// The pages to submit, in steps. Each step is decided before the next one.
fn steps() -> Vec<Vec<Value>> {
    let mut first = Vec::new();
    // A group of five: a text, near copies of it that are not near copies of each other, and an exact copy.
    first.push(page("http://a.example/", 1, &plain(1)));
    for number in 0..3 {
        first.push(page(&format!("http://a.example/copy/{number}"), 2, &variant(1, number)));
    }
    first.push(page("http://mirror.example/a/index.html", 3, &plain(1)));
    // Three pairs on each of two topics, which nothing links yet.
    for topic in [2, 3] {
        for part in 0..3 {
            for twin in 0..2 {
                let url = format!("http://b{topic}.example/{part}/{twin}");
                first.push(page(&url, 1 + part as u32, &variant(topic, part)));
            }
        }
    }
    for seed in 10..16 {
        first.push(page(&format!("http://alone.example/{seed}"), 1, &plain(seed)));
    }
    first.push(page("http://short.example/", 1, "too short to be like anything"));
    first.push(page("http://short.example/twin", 1, "too short to be like anything"));
    first.push(page("http://empty.example/", 1, ""));
    let redirect = |from: &str, to: &str| json!({ "url": from, "fetched_at": "2024-05-02T00:00:00Z", "redirect_to": to });
    first.push(redirect("http://old.example/", "http://a.example/copy/0"));
    first.push(redirect("http://older.example/", "http://old.example/"));
    first.push(redirect("http://moved.example/", "http://alone.example/10"));
    first.push(redirect("http://lost.example/", "http://nowhere.example/"));
    first.push(redirect("http://round.example/1", "http://round.example/2"));
    first.push(redirect("http://round.example/2", "http://round.example/1"));
    // Pages whose URLs are not in their normal form, and a redirect that names one of them in a third
    // spelling.
    first.push(page("HTTP://spelled.example/", 1, &plain(40)));
    first.push(page("HTTP://named.example", 1, &plain(41)));
    first.push(redirect("http://names.example/", "http://named.example:80"));
    first.push(page("HTTP://ending.example/22", 1, &plain(42)));
    for seed in [20, 21] {
        first.push(page(&format!("http://ending.example/{seed}"), 1, &plain(seed)));
    }
    // Pages that link the pairs of each topic, an update within a group, an update that leaves its group, and
    // deaths.
    let second = vec![
        page("http://b2.example/tie", 9, &plain(2)),
        page("http://b3.example/tie", 9, &plain(3)),
        page("http://a.example/copy/1", 9, &variant(1, 4)),
        page("http://alone.example/11", 9, &plain(30)),
        json!({ "url": "http://ending.example/20", "fetched_at": "2024-05-09T00:00:00Z", "dead": true }),
        json!({ "url": "http://dead.example/", "fetched_at": "2024-05-09T00:00:00Z", "dead": true }),
        redirect("http://late.example/", "http://dead.example/"),
    ];
    vec![first, second]
}

/// Submits the collection, repairs a group and purges two pages.
pub(crate) fn fill(server: &Server) {
    for step in steps() {
        let answers = server.push(&step);
        assert!(answers.iter().all(|answer| answer["outcome"].is_string()), "{answers:?}");
        server.flush();
    }
    for url in ["http://ending.example/21", "HTTP://ending.example/22"] {
        let purged = server.post_json("/v1/purge", &json!({ "url": url }));
        assert_eq!(purged["purged"], 1, "{purged}");
    }
    let group = server.status("http://a.example/")["group"].as_str().unwrap().to_owned();
    server.post_json(&format!("/v1/groups/{group}/repair"), &json!({}));
    server.flush();
}

/// A data directory with the collection. No server uses it; tests copy it.
pub(crate) fn directory() -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| {
        // It is kept as long as the build directory, because nothing runs after all tests.
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap().keep();
        let server = Server::start(&dir, &["--shards", SHARDS]);
        fill(&server);
        assert!(server.terminate());
        dir
    })
}
