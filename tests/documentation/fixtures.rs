//! Files that pages find in their directories, and programs that pages need.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::harness::{pages, warc};

/// Puts the files of a fixture into `folder`, or looks for a program. Returns whether it is there.
pub(crate) fn provide(name: &str, folder: &Path) -> bool {
    match name {
        "crawl" => crawl(folder),
        "nats-server" if folder_of_nats_server().is_some() => {}
        program => {
            let mut find = Command::new("sh");
            find.args(["-c", "command -v -- \"$0\"", program]).stdout(Stdio::null());
            return find.status().unwrap().success();
        }
    }
    true
}

/// The folder of the first program that `DOPPEL_NATS_SERVERS` names.
pub(crate) fn folder_of_nats_server() -> Option<String> {
    let programs = std::env::var("DOPPEL_NATS_SERVERS").ok()?;
    let first = Path::new(programs.split(':').next()?);
    (first.file_name()? == "nats-server").then(|| first.parent().unwrap().display().to_string())
}

/// `crawl-1.warc.gz` and `crawl-2.warc.gz`: two crawls of a site of twelve articles and their printed copies. Between the two,
/// one article changes, one redirects, and one is gone.
fn crawl(folder: &Path) {
    let text = |n: u64| pages::text(n, 120);
    let article = |n: u64| format!("https://www.example.org/articles/{n}");
    let copy = |n: u64| format!("https://www.example.org/print/{n}");
    let page = |url: &str, words: &[String]| warc::page(url, pages::html("An article", words).as_bytes());
    let mut first = Vec::new();
    let mut second = Vec::new();
    for n in 1..=12 {
        let printed = page(&copy(n), &pages::near_copy(&text(n), n));
        first.extend(warc::gzip(&page(&article(n), &text(n))));
        first.extend(warc::gzip(&printed));
        let again = match n {
            1 => page(&article(n), &text(100)),
            2 => warc::response(&article(n), &format!("HTTP/1.1 301 Moved\r\nLocation: {}", article(3)), b""),
            4 => warc::response(&article(n), "HTTP/1.1 404 Not Found\r\nContent-Type: text/html", b"gone"),
            _ => page(&article(n), &text(n)),
        };
        let again = String::from_utf8(again).unwrap().replace("2024-05-01T00", "2024-05-08T00");
        second.extend(warc::gzip(again.as_bytes()));
    }
    fs::write(folder.join("crawl-1.warc.gz"), first).unwrap();
    fs::write(folder.join("crawl-2.warc.gz"), second).unwrap();
}
