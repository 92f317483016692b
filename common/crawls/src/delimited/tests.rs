use std::fs;

use doppel_model::Timestamp;

use super::*;
use crate::FetchedBody;

fn options() -> InputOptions {
    Limits::at(Timestamp::from_millis(1_800_000_000_000)).into()
}

fn read_as(name: &str, content: &[u8], options: InputOptions) -> Vec<String> {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join(name);
    fs::write(&path, content).unwrap();
    let mut input = crate::open(&path, options).unwrap();
    let lines = input.by_ref().filter_map(|item| match item {
        Item::Fields(_) => None,
        Item::Page(page) => {
            let FetchedBody::Text(text) = page.body else { panic!() };
            let date = page.fetched_at.map_or(String::new(), |date| format!(" {date}"));
            Some(format!("{}{date} {text:?}", page.url))
        }
        Item::Skipped(skip) => Some(format!("skip: {skip}")),
        Item::Bad(error) => {
            let line =
                error.line.map_or(String::new(), |line| format!(": {:?}", String::from_utf8_lossy(&line)));
            Some(format!("bad: {:?} {}{line}", error.place, error.reason))
        }
    });
    let lines = lines.collect();
    assert!(input.bytes_read() <= input.bytes_total());
    lines
}

fn read(name: &str, content: &str) -> Vec<String> {
    read_as(name, content.as_bytes(), options())
}

#[test]
fn rows_are_records_under_the_names_of_the_first() {
    let expected = [
        "https://a.org/1 2019-04-25T12:57:54Z \"two\\nlines, and a \\\"quote\\\"\"",
        "https://a.org/2 \"no date\"",
    ];
    for (mark, end) in [("", "\n"), ("\u{feff}", "\r\n")] {
        let csv = format!(
            "{mark}url,timestamp,text,other{end}https://a.org/1,2019-04-25T12:57:54Z,\"two\nlines, and a \"\"quote\"\"\",{end}\
             {end}https://a.org/2,,no date,x"
        );
        assert_eq!(read("a.csv", &csv), expected);
        let of = |separator: &str| {
            csv.replace("lines, and", "lines/ and")
                .replace(',', separator)
                .replace("lines/ and", "lines, and")
        };
        assert_eq!(read("a.tsv", &of("\t")), expected);
        assert_eq!(read("a.csv", &of(";")), expected);
        assert_eq!(read("a.csv", &of("\t")), expected);
    }
}

#[test]
fn records_without_a_url_are_named_by_id_or_number() {
    assert_eq!(
        read("a.csv", "id,text\nx,one\n,two\n"),
        ["record:a.csv#x \"one\"", "record:a.csv#row=2 \"two\""]
    );
    assert_eq!(
        read("b.csv", "text\none\n\ntwo\n"),
        ["record:b.csv#row=1 \"one\"", "record:b.csv#row=2 \"two\""]
    );
    assert_eq!(read("c.csv", "text\n"), Vec::<String>::new());
    assert_eq!(read("c.csv", ""), Vec::<String>::new());
}

#[test]
fn a_row_of_another_number_of_cells_is_bad() {
    let expected = [
        "bad: Row(1) 1 cells under 2 names: \"alone\"",
        "record:a.csv#b \"good\"",
        "bad: Row(3) 3 cells under 2 names: \"\\\"c, c\\\",d,e\"",
        "bad: Row(4) \"text\": missing: \"f,\"",
    ];
    assert_eq!(read("a.csv", "id,text\nalone\nb,good\r\n\"c, c\",d,e\nf,\n"), expected);
}

#[test]
fn text_is_of_any_charset() {
    let latin = b"id,text\n1,caf\xe9\n2,caf\xc3\xa9\n";
    let expected = ["record:a.csv#1 \"café\"", "record:a.csv#2 \"café\""];
    assert_eq!(read_as("a.csv", latin, options()), expected);
}

#[test]
fn rows_are_bounded_and_those_behind_are_read() {
    let limits = Limits { line_bytes_max: 100, ..options().limits };
    let long = "x".repeat(300_000);
    let csv = format!("id,text\n1,good\n2,\"{long}\"\n3,good\n4,\"never closed\n{long}");
    let expected = [
        "record:a.csv#1 \"good\"",
        "bad: Row(2) a row of 300005 bytes; at most 100 are taken",
        "record:a.csv#3 \"good\"",
        "bad: Row(4) a row of 300016 bytes; at most 100 are taken",
    ];
    let found = read_as("a.csv", csv.as_bytes(), limits.into());
    // The line feed of the row before counts, too.
    let near: Vec<_> =
        found.iter().map(|line| line.replace("300006", "300005").replace("300017", "300016")).collect();
    assert_eq!(near, expected);
    let cells = format!("id,text\n{}\n1,good\n", ",".repeat(CELLS_MAX));
    let found = read("a.csv", &cells);
    assert_eq!(
        found,
        ["bad: Row(1) a row of cells of 16385 bytes; at most 16384 are taken", "record:a.csv#1 \"good\""]
    );
}

#[test]
fn cells_across_pieces_of_the_parser_are_whole() {
    let cell = |n: usize| "word ".repeat(n);
    for n in [TEXT_PIECE / 5, TEXT_PIECE / 5 + 1, 3 * TEXT_PIECE] {
        let csv = format!("id,text\n1,{}\n2,{}\n", cell(n), cell(n + 1));
        let found = read("a.csv", &csv);
        assert_eq!(
            found,
            [format!("record:a.csv#1 {:?}", cell(n)), format!("record:a.csv#2 {:?}", cell(n + 1))]
        );
    }
    let names: Vec<_> = (0..ENDS_PIECE * 2).map(|n| format!("c{n}")).collect();
    let csv = format!("{},text\n{}last\n", names.join(","), "x,".repeat(names.len()));
    assert_eq!(read("a.csv", &csv), ["record:a.csv#row=1 \"last\""]);
}

#[test]
fn damage_ends_the_file() {
    let csv: String = (0..50_000).map(|n| format!("{n},text of {n}\n")).collect();
    let packed = zstd::encode_all(format!("id,text\n{csv}").as_bytes(), 3).unwrap();
    assert_eq!(read_as("a.csv.zst", &packed, options()).len(), 50_000);
    let found = read_as("a.csv.zst", &packed[..packed.len() - 5], options());
    let (last, rows) = found.split_last().unwrap();
    assert!(last.ends_with("the data end in the middle of it"), "{last}");
    assert!(rows.iter().enumerate().all(|(n, row)| *row == format!("record:a.csv.zst#{n} \"text of {n}\"")));
}

#[test]
fn numbers_and_truth_are_text_here() {
    let home = tempfile::tempdir().unwrap();
    let read = |content: &str| {
        let path = home.path().join("a.csv");
        fs::write(&path, content).unwrap();
        let pages = crate::open(&path, options()).unwrap().filter_map(|item| match item {
            Item::Page(page) => Some((page.popularity, page.body == FetchedBody::Dead)),
            Item::Bad(error) => panic!("{error}"),
            _ => None,
        });
        pages.collect::<Vec<_>>()
    };
    // In Doppel's own form, and in another.
    let own = "url,text,dead,popularity\nhttps://a.org/1,a,,12\nhttps://a.org/2,,True,0.5\nhttps://a.org/3,c,false,\n";
    let expected = [(Some(12.0), false), (Some(0.5), true), (None, false)];
    assert_eq!(read(own), expected);
    assert_eq!(read(&own.replace("text", "content")), expected);
}
