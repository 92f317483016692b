use std::io::pipe;
use std::os::fd::OwnedFd;
use std::thread;

use doppel_model::Timestamp;

use super::*;
use crate::{InputFormat, Item, Limits};

fn options() -> InputOptions {
    Limits::at(Timestamp::from_millis(1_800_000_000_000)).into()
}

/// Reads `content` from a pipe that delivers it in small pieces. Returns the items as text, or the error.
fn read_through_pipe(content: &[u8], options: InputOptions) -> Result<Vec<String>, String> {
    let (reader, mut writer) = pipe().unwrap();
    let content = content.to_vec();
    let feeder = thread::spawn(move || {
        // The reader may close the pipe before the end.
        let _ = content.chunks(1_000).try_for_each(|piece| writer.write_all(piece));
    });
    let file = File::from(OwnedFd::from(reader));
    let input = open_pipe(file, Path::new("stdin"), RecordFile::single(Path::new("stdin")), options);
    let items =
        input.map_err(|error| error.to_string()).map(|input| input.map(|item| shown(&item)).collect());
    feeder.join().unwrap();
    items
}

fn shown(item: &Item) -> String {
    match item {
        Item::Fields(_) => "fields".to_owned(),
        Item::Page(page) => page.url.to_string(),
        Item::Skipped(skip) => format!("skip: {skip}"),
        Item::Bad(error) => format!("bad: {error}"),
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn record(fields: &str, block: &str) -> Vec<u8> {
    format!("WARC/1.0\r\n{fields}Content-Length: {}\r\n\r\n{block}\r\n\r\n", block.len()).into_bytes()
}

fn page(number: u32, digest: &str) -> Vec<u8> {
    let fields = format!(
        "WARC-Type: resource\r\nWARC-Target-URI: https://a.org/{number}\r\nContent-Type: text/html\r\n{digest}"
    );
    record(&fields, &format!("<p>{}", "word ".repeat(5_000)))
}

#[test]
fn records_of_a_pipe_are_named_after_the_pipe() {
    let lines = "{\"id\": 1, \"text\": \"a\"}\n{\"text\": \"b\"}\n";
    let expected = ["fields", "record:stdin#1", "record:stdin#row=2"].map(str::to_owned);
    for content in
        [lines.as_bytes().to_vec(), gzip(lines.as_bytes()), zstd::encode_all(lines.as_bytes(), 1).unwrap()]
    {
        assert_eq!(read_through_pipe(&content, options()).unwrap(), expected);
    }
    let csv = InputOptions { format: Some(InputFormat::Csv), ..options() };
    assert_eq!(read_through_pipe(b"id,text\n1,a\n,b\n", csv).unwrap(), expected);
}

#[test]
fn a_guessed_id_that_repeats_in_a_pipe_names_no_record() {
    let lines: String = (0..3_000)
        .map(|n| format!("{{\"id\": {}, \"text\": \"a{n}\"}}\n", if n == 2_999 { 7 } else { n }))
        .collect();
    for content in [lines.as_bytes().to_vec(), gzip(lines.as_bytes())] {
        let found = read_through_pipe(&content, options()).unwrap();
        assert_eq!(
            (found.len(), &*found[1], &*found[3_000]),
            (3_001, "record:stdin#row=1", "record:stdin#row=3000")
        );
    }
    // If the records have URLs, the reader does not check the ids of a pipe.
    let lines = "{\"id\": 1, \"url\": \"https://a.org/1\", \"text\": \"a\"}\n{\"id\": 2, \"text\": \"b\"}\n";
    let found = read_through_pipe(lines.as_bytes(), options()).unwrap();
    assert_eq!(found, ["fields", "https://a.org/1", "record:stdin#row=2"]);
}

#[test]
fn json_objects_over_several_lines_are_refused_with_a_hint() {
    let home = tempfile::tempdir().unwrap();
    let refused = |name: &str, content: &str| {
        let path = home.path().join(name);
        fs::write(&path, content).unwrap();
        match open(&path, options()) {
            Ok(input) => format!("{} items", input.count()),
            Err(error) => error.reason.to_string(),
        }
    };
    let over_lines = "JSON objects over several lines; the format is JSON lines, one object a line: `jq -c . FILE > lines.jsonl` converts them";
    let object = "{\n  \"id\": 1,\n  \"text\": \"a\"\n}\n";
    let long = format!("{{\r\n\t\"text\": \"{}\",\n\t\"id\": 1 }}", "x".repeat(20_000));
    for content in [
        object.to_owned(),
        format!("{object}{object}"),
        format!("\u{feff}\n{object}"),
        long,
        "{ \"a\":\n1}".to_owned(),
    ] {
        for name in ["a.jsonl", "a.json", "a"] {
            assert_eq!(refused(name, &content), over_lines, "{name} {content:.40}");
        }
    }
    assert!(
        refused("a.json", &format!("[\n{object}]")).starts_with("a JSON array; the format is JSON lines")
    );
    // Torn lines and a single line are not objects over several lines.
    for (content, items) in [
        ("{\"text\": \"torn\n{\"text\": \"a\"}\n", "3 items"),
        ("{\"text\": 1,\n{\"text\": \"a\"}\n", "3 items"),
        ("{\"text\": \"a\"", "1 items"),
        ("{\"text\": \"a\"}\n", "2 items"),
        ("{\n", "1 items"),
    ] {
        assert_eq!(refused("a.jsonl", content), items, "{content:?}");
    }
}

#[test]
fn a_pipe_with_a_page_of_html_or_text_is_refused() {
    for content in [&b"<p>page"[..], b"id,text\n1,a\n"] {
        let error = read_through_pipe(content, options()).unwrap_err();
        assert!(error.starts_with("stdin: a page of HTML or text has no name here"), "{error}");
    }
    assert!(read_through_pipe(b"\x00", options()).unwrap_err().contains("unknown format"));
}

#[test]
fn records_in_utf_16_are_refused_with_a_conversion_hint() {
    let text = "id,text\n1,a\n";
    let encoded = |mark: u16, swap: bool| {
        let units = [mark].into_iter().chain(text.encode_utf16());
        units.flat_map(|unit| if swap { unit.to_be_bytes() } else { unit.to_le_bytes() }).collect::<Vec<u8>>()
    };
    for content in [encoded(0xfeff, false), encoded(0xfeff, true)] {
        for format in [InputFormat::Csv, InputFormat::Tsv, InputFormat::Jsonl] {
            let format_options = InputOptions { format: Some(format), ..options() };
            for content in [content.clone(), gzip(&content)] {
                let error = read_through_pipe(&content, format_options.clone()).unwrap_err();
                assert!(error.contains("UTF-16") && error.contains("iconv"), "{error}");
            }
        }
    }
}

#[test]
fn feather_1_is_refused_with_a_conversion_hint() {
    let format_options = InputOptions { format: Some(InputFormat::Arrow), ..options() };
    let error = read_through_pipe(b"FEA1\0\0\0\0\x01\0\0\0FEA1", format_options).unwrap_err();
    assert!(error.contains("Feather version 1 is not read; write Arrow"), "{error}");
}

#[test]
fn damage_in_a_pipe_costs_one_record_as_in_a_file() {
    let zstd = |bytes: &[u8]| zstd::encode_all(bytes, 3).unwrap();
    let plain = |bytes: &[u8]| bytes.to_vec();
    for pack in [&gzip as &dyn Fn(&[u8]) -> Vec<u8>, &zstd, &plain] {
        let records: Vec<_> = (0..6).map(|number| pack(&page(number, ""))).collect();
        let cut = &records[2][..records[2].len() / 2];
        let file = [&records[..2].concat(), cut, &records[3..].concat()].concat();
        let found = read_through_pipe(&file, options()).unwrap();
        let pages: Vec<_> = found.iter().filter(|line| line.starts_with("https")).cloned().collect();
        let expected =
            |numbers: &[u32]| numbers.iter().map(|n| format!("https://a.org/{n}")).collect::<Vec<_>>();
        // In an uncompressed pipe, the reader took the next record for the rest of the cut record.
        let expected = if records[0].starts_with(b"WARC") {
            expected(&[0, 1, 4, 5])
        } else {
            expected(&[0, 1, 3, 4, 5])
        };
        assert_eq!(pages, expected, "{found:?}");
        assert_eq!(found.len(), pages.len() + 1, "{found:?}");
    }
}

#[test]
fn a_revisit_in_a_pipe_has_no_original() {
    let digest = "WARC-Payload-Digest: sha1:A\r\n";
    let revisit = format!(
        "WARC-Type: revisit\r\nWARC-Target-URI: https://a.org/2\r\nWARC-Refers-To-Target-URI: https://a.org/1\r\n\
         WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest\r\n{digest}"
    );
    let file = [gzip(&page(1, digest)), gzip(&record(&revisit, ""))].concat();
    let found = read_through_pipe(&file, options()).unwrap();
    assert_eq!(found, ["https://a.org/1", "skip: revisit of a record that is not found in the file"]);
}

#[test]
fn a_named_pipe_is_read_like_standard_input() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("rows.csv");
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let writing = path.clone();
    let feeder = thread::spawn(move || fs::write(writing, "id,text\n1,a\n").unwrap());
    let items: Vec<_> = open(&path, options()).unwrap().map(|item| shown(&item)).collect();
    assert_eq!(items, ["fields", "record:rows.csv#1"]);
    feeder.join().unwrap();
}
