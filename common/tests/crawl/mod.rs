//! Pages of the developer corpora, for tests and benchmarks.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use doppel_common::model::PageUrl;
use flate2::read::MultiGzDecoder;

/// A fetched page with status 200.
pub struct Fetched {
    pub url: PageUrl,
    pub charset: Option<String>,
    pub body: Vec<u8>,
}

/// The directory of the corpora: `DOPPEL_DATA`, or `../shared/data` beside the repository. None, with a
/// printed line, where it is absent.
///
/// # Panics
/// When it is absent on a machine that says it is the gate (`CI=true`).
pub fn data() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    let directory = std::env::var_os("DOPPEL_DATA").map_or_else(beside, PathBuf::from);
    if directory.is_dir() {
        return Some(directory);
    }
    assert!(std::env::var("CI").as_deref() != Ok("true"), "no corpora at {}", directory.display());
    println!("skipped: no corpora at {}", directory.display());
    None
}

/// The fetched pages of a crawl file.
pub fn pages(file: &Path) -> Vec<Fetched> {
    let mut bytes = Vec::new();
    MultiGzDecoder::new(File::open(file).unwrap()).read_to_end(&mut bytes).unwrap();
    let mut pages = Vec::new();
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        let (head, block) = split_head(rest);
        let length: usize = field(head, "content-length").unwrap().parse().unwrap();
        rest = block[length..].trim_ascii_start();
        if field(head, "warc-type") != Some("response") {
            continue;
        }
        let (http, body) = split_head(&block[..length]);
        if http.split(' ').nth(1) == Some("200") {
            pages.push(Fetched {
                url: PageUrl::parse(field(head, "warc-target-uri").unwrap()).unwrap(),
                charset: field(http, "content-type")
                    .and_then(|t| t.split_once("charset="))
                    .map(|(_, charset)| charset.trim().to_owned()),
                body: body.to_vec(),
            });
        }
    }
    pages
}

/// All crawl files whose names begin with one of `prefixes`, such as `mid/mid-0`.
pub fn crawl(prefixes: &[&str]) -> Option<Vec<Fetched>> {
    let data = data()?;
    let mut files = Vec::new();
    for prefix in prefixes {
        let prefix = data.join(prefix);
        for entry in prefix.parent().unwrap().read_dir().unwrap() {
            let path = entry.unwrap().path();
            let name = path.to_string_lossy().into_owned();
            if name.starts_with(&*prefix.to_string_lossy()) && name.ends_with(".warc.gz") {
                files.push(path);
            }
        }
    }
    files.sort();
    assert!(!files.is_empty(), "no crawl files {prefixes:?}");
    Some(files.iter().flat_map(|file| pages(file)).collect())
}

fn split_head(bytes: &[u8]) -> (&str, &[u8]) {
    let at = bytes.windows(4).position(|w| w == b"\r\n\r\n").unwrap();
    (std::str::from_utf8(&bytes[..at]).unwrap(), &bytes[at + 4..])
}

fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}
