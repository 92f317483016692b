//! Pages of the crawl `mid` in the schemas of well-known collections. Without any option, their results equal
//! those of Doppel's own schema.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, StructArray};
use doppel_baseline::{ContentId, Contents, Tau, near_duplicate};
use doppel_crawls::{FetchedBody, Item, Limits};
use doppel_model::Timestamp;
use doppel_text::Extractor;
use parquet::arrow::ArrowWriter;
use serde_json::{Value, json};

use crate::errors;
use crate::harness::pages::ndjson;
use crate::harness::warc::gzip;
use crate::harness::{crawl, crawls, doppel, lines_of, run_ok};

/// Number of pages, and the site that they come from. The crawl `mid` has many versions of its pages.
const PAGES: usize = 2_000;
const SITE: &str = "https://numpy.org/";

/// A page of the crawl.
struct Page {
    url: String,
    date: String,
    html: String,
    text: String,
}

fn pages(data: &Path) -> Vec<Page> {
    let mut extractor = Extractor::default();
    let mut pages = Vec::new();
    for file in crawl(data, "mid") {
        for item in doppel_crawls::open(&file, Limits::at(Timestamp::now())).unwrap() {
            let Item::Page(page) = item else { continue };
            let (Some(content), FetchedBody::Html { bytes, .. }) = (page.body.raw_content(), &page.body)
            else {
                continue;
            };
            if !page.url.as_str().starts_with(SITE) {
                continue;
            }
            // A redirect in the content has no text. An empty cell of CSV would count as a missing text.
            let text = extractor.page_text(&page.url, content).text();
            let Some(text) = text.filter(|text| !text.trim().is_empty()) else { continue };
            let Ok(html) = String::from_utf8(bytes.clone()) else { continue };
            pages.push(Page {
                url: page.url.as_str().to_owned(),
                date: page.fetched_at.unwrap().to_string(),
                html,
                text: text.trim().to_owned(),
            });
            if pages.len() == PAGES {
                return pages;
            }
        }
    }
    panic!("{SITE} has {} pages", pages.len());
}

fn lines(pages: &[Page], record: impl Fn(usize, &Page) -> Value) -> Vec<u8> {
    let records: Vec<_> = pages.iter().enumerate().map(|(number, page)| record(number, page)).collect();
    ndjson(&records).into_bytes()
}

fn own_form(_: usize, page: &Page) -> Value {
    json!({"url": page.url, "text": page.text, "fetched_at": page.date})
}

fn c4(_: usize, page: &Page) -> Value {
    json!({"text": page.text, "timestamp": page.date, "url": page.url})
}

fn dolma(number: usize, page: &Page) -> Value {
    json!({
        "id": format!("{number}"),
        "text": page.text,
        "source": "common-crawl",
        "added": "2023-04-11T09:57:03.044571+00:00",
        "created": page.date,
        "metadata": {"length": page.text.len(), "provenance": format!("cc_en_head-0000.json.gz:{number}")},
    })
}

fn red_pajama(number: usize, page: &Page) -> Value {
    json!({
        "url": page.url,
        "date_download": page.date,
        "digest": format!("sha1:{number:032}"),
        "length": page.text.len(),
        "nlines": page.text.lines().count(),
        "source_domain": "numpy.org",
        "title": "",
        "raw_content": page.text,
        "cc_segment": "crawl-data/CC-MAIN-2023-06/segments/1674764494826.88/wet/CC-MAIN-20230126210844-00000.warc.wet.gz",
        "original_nlines": page.text.lines().count(),
        "line_ids": [1, 2],
        "language": "en",
        "language_score": 0.9,
        "perplexity": 214.2,
        "bucket": "head",
    })
}

/// FineWeb as it is published, or with `nested` as the program writes it that makes it, with a structure of
/// metadata.
fn fine_web(pages: &[Page], nested: bool) -> Vec<u8> {
    let texts = |value: &dyn Fn(usize, &Page) -> String| {
        let values = pages.iter().enumerate().map(|(number, page)| value(number, page));
        Arc::new(StringArray::from_iter_values(values)) as ArrayRef
    };
    let whole = pages.iter().map(|page| page.text.split_whitespace().count() as i64);
    let text = texts(&|_, page| page.text.clone());
    let id = texts(&|number, _| format!("<urn:uuid:{number:032}>"));
    let metadata: Vec<(&str, ArrayRef)> = vec![
        ("dump", texts(&|_, _| "CC-MAIN-2013-20".to_owned())),
        ("url", texts(&|_, page| page.url.clone())),
        ("date", texts(&|_, page| page.date.clone())),
        ("file_path", texts(&|_, _| "s3://commoncrawl/crawl-data/CC-MAIN-2013-20/a.warc.gz".to_owned())),
        ("language", texts(&|_, _| "en".to_owned())),
        ("language_score", Arc::new(Float64Array::from(vec![0.9; pages.len()]))),
        ("token_count", Arc::new(Int64Array::from_iter_values(whole))),
    ];
    let mut columns = vec![("text", text), ("id", id)];
    if nested {
        let metadata = StructArray::from(RecordBatch::try_from_iter(metadata).unwrap());
        columns.push(("metadata", Arc::new(metadata)));
    } else {
        columns.extend(metadata);
    }
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

/// A WARC file with a gzip member for each page: of texts, like the WET files of Common Crawl, or of
/// responses.
fn warc(pages: &[Page], is_wet: bool) -> Vec<u8> {
    let mut warc = gzip(b"WARC/1.0\r\nWARC-Type: warcinfo\r\nContent-Length: 0\r\n\r\n\r\n\r\n");
    for (number, page) in pages.iter().enumerate() {
        let (kind, content_type, body) = if is_wet {
            ("conversion", "text/plain", page.text.clone())
        } else {
            let html = &page.html;
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}",
                html.len()
            );
            ("response", "application/http; msgtype=response", format!("{head}\r\n\r\n{html}"))
        };
        let mut record = Vec::new();
        write!(
            record,
            "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {}\r\nWARC-Date: {}\r\n\
             WARC-Record-ID: <urn:uuid:{number:032}>\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n{body}\r\n\r\n",
            page.url,
            page.date,
            body.len()
        )
        .unwrap();
        warc.extend(gzip(&record));
    }
    warc
}

fn csv(pages: &[Page]) -> Vec<u8> {
    let mut csv = "id,text,url,date\r\n".to_owned();
    for (number, page) in pages.iter().enumerate() {
        let text = page.text.replace('"', "\"\"");
        write!(csv, "{number},\"{text}\",{},{}\r\n", page.url, page.date).unwrap();
    }
    csv.into_bytes()
}

fn dedup(home: &Path, name: &str, content: &[u8]) -> String {
    let file = home.join(name);
    fs::write(&file, content).unwrap();
    run_ok(["dedup", "--latest", "--out", "-", file.to_str().unwrap()])
}

fn piped(content: &[u8]) -> Output {
    let mut command = doppel();
    command.args(["dedup", "--latest", "--out", "-", "-"]);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut command = command.spawn().unwrap();
    let mut stdin = command.stdin.take().unwrap();
    let content = content.to_vec();
    let feeder = std::thread::spawn(move || stdin.write_all(&content).unwrap());
    let output = command.wait_with_output().unwrap();
    feeder.join().unwrap();
    output
}

/// The groups as sets of positions of pages in the input.
fn groups(lines: &[Value], position: &HashMap<String, usize>) -> BTreeSet<BTreeSet<usize>> {
    let mut groups = BTreeMap::<_, BTreeSet<usize>>::new();
    for line in lines {
        let url = line["url"].as_str().unwrap();
        groups.entry(line["group"].as_str().unwrap_or(url)).or_default().insert(position[url]);
    }
    groups.into_values().collect()
}

/// Checks that no two kept pages are duplicates, and that every other page is a duplicate of an earlier kept
/// page.
fn check_kept(pages: &[Page], lines: &[Value], position: &HashMap<String, usize>) {
    let mut contents = Contents::default();
    let contents_of: Vec<ContentId> = pages.iter().map(|page| contents.intern(&page.text)).collect();
    let tau = Tau::ratio(4, 5).unwrap();
    let are_duplicates = |a: usize, b: usize| {
        let [a, b] = [a, b].map(|page| contents_of[page]);
        let [first, second] = [a, b].map(|content| contents.get(content));
        if a == b { first.tokens > 0 } else { near_duplicate(first, second, tau) }
    };
    let at = |url: &Value| position[url.as_str().unwrap()];
    let is_duplicate = |line: &&Value| line["status"] == "duplicate";
    let kept: Vec<usize> =
        lines.iter().filter(|line| !is_duplicate(line)).map(|line| at(&line["url"])).collect();
    for (number, a) in kept.iter().enumerate() {
        for b in &kept[number + 1..] {
            assert!(!are_duplicates(*a, *b), "{} and {} are kept", pages[*a].url, pages[*b].url);
        }
    }
    let kept: BTreeSet<_> = kept.into_iter().collect();
    for line in lines.iter().filter(is_duplicate) {
        let (page, of) = (at(&line["url"]), at(&line["duplicate_of"]));
        assert!(kept.contains(&of) && of < page && are_duplicates(page, of), "{line}");
    }
    assert!(kept.len() < pages.len() * 9 / 10);
}

#[test]
fn well_known_schemas_need_no_option() {
    let Some(data) = crawls("well_known_schemas_need_no_option") else { return };
    let home = tempfile::tempdir().unwrap();
    let pages = pages(&data);
    let own = lines(&pages, own_form);
    let expected = dedup(home.path(), "own.jsonl", &own);
    assert_eq!(lines_of(&expected).len(), PAGES);
    let c4 = gzip(&lines(&pages, c4));
    let files = [
        ("c4-train.00000-of-01024.json.gz", c4.clone()),
        ("000_00000.parquet", fine_web(&pages, false)),
        ("00000.parquet", fine_web(&pages, true)),
        ("CC-MAIN-20130516.warc.wet.gz", warc(&pages, true)),
        ("en_head.json.gz", gzip(&lines(&pages, red_pajama))),
        ("pages.csv", csv(&pages)),
    ];
    for (name, content) in files {
        assert!(dedup(home.path(), name, &content) == expected, "{name}");
    }
    for content in [&own, &c4] {
        let output = piped(content);
        assert!(String::from_utf8_lossy(&output.stdout) == expected, "{}", errors(&output));
    }

    // Without URLs the groups are the same, and the first of several equal pages is kept.
    let name = "cc_en_head-0000.json.gz";
    let found = lines_of(&dedup(home.path(), name, &gzip(&lines(&pages, dolma))));
    let by_url = pages.iter().enumerate().map(|(number, page)| (page.url.clone(), number)).collect();
    let by_id = (0..PAGES).map(|number| (format!("record:{name}#{number}"), number)).collect();
    assert_eq!(groups(&found, &by_id), groups(&lines_of(&expected), &by_url));
    check_kept(&pages, &found, &by_id);

    // A crawl of responses gives the same result as the HTML of its pages.
    let html = |_: usize, page: &Page| json!({"url": page.url, "html": page.html, "fetched_at": page.date});
    let expected = dedup(home.path(), "html.jsonl", &lines(&pages, html));
    assert!(dedup(home.path(), "CC-MAIN-20130516.warc.gz", &warc(&pages, false)) == expected);
}
