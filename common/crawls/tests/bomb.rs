//! Tests with decompression bombs: 10 GiB in about 10 MB of compressed data. The reader must reject them
//! within seconds, in little memory, and with a clear error.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::Write;
use std::time::{Duration, Instant};

use doppel_crawls::{Item, Limits, Reason};
use doppel_model::Timestamp;
use flate2::{Compress, Compression, FlushCompress, GzBuilder};

/// The size of a piece before compression, in bytes. The pieces of a bomb have 10 GiB together.
const PIECE: usize = 64 << 20;
const PIECES: usize = 160;

/// Raw deflate data of `bytes`. They end at a byte boundary and do not refer to data before them, so that
/// copies can be concatenated.
fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut deflate = Compress::new(Compression::best(), false);
    let mut packed = Vec::with_capacity(bytes.len() / 500 + 1000);
    deflate.compress_vec(bytes, &mut packed, FlushCompress::Full).unwrap();
    assert_eq!(deflate.total_in(), bytes.len() as u64);
    packed
}

/// A gzip member of `beginning` and 10 GiB of zeros. It has no trailer, because readers give up before they
/// reach it.
fn gzip_bomb(beginning: &[u8]) -> Vec<u8> {
    let mut header = GzBuilder::new().write(Vec::new(), Compression::best());
    header.flush().unwrap();
    let header = header.get_ref()[..10].to_vec();
    [header, deflated(beginning), deflated(&vec![0; PIECE]).repeat(PIECES)].concat()
}

fn record(fields: &str, length: usize) -> Vec<u8> {
    let url = "WARC-Target-URI: https://a.org/\r\n";
    format!("WARC/1.0\r\n{url}{fields}Content-Length: {length}\r\n\r\n").into_bytes()
}

/// The peak memory of the process, in bytes.
fn peak_memory() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

#[test]
fn bombs_are_rejected_quickly() {
    let resource = "WARC-Type: resource\r\nContent-Type: text/html\r\n";
    let ten_gib = PIECE * PIECES;
    let directory = tempfile::tempdir().unwrap();
    for (name, content) in [
        ("declared.warc.gz", gzip_bomb(&record(resource, ten_gib))),
        ("not-declared.warc.gz", gzip_bomb(&record(resource, 10))),
        ("record-head.warc.gz", gzip_bomb(b"WARC/1.0\r\nX: ")),
        ("no-record.warc.gz", gzip_bomb(b"")),
        ("not-a-page.warc.gz", gzip_bomb(&record("WARC-Type: metadata\r\n", ten_gib))),
        ("line.jsonl.gz", gzip_bomb(b"{\"url\":\"")),
        ("line.jsonl.zst", zstd::encode_all(&vec![b' '; PIECE][..], 1).unwrap().repeat(PIECES)),
    ] {
        assert!(content.len() < 11 << 20, "{name}: {}", content.len());
        let path = directory.path().join(name);
        fs::write(&path, content).unwrap();
        let begun = Instant::now();
        let items: Vec<_> =
            doppel_crawls::open(&path, Limits::at(Timestamp::from_millis(0))).unwrap().collect();
        let seconds = begun.elapsed();
        assert!(seconds < Duration::from_secs(60), "{name}: {seconds:?}");
        let Some(Item::Bad(last)) = items.last() else { panic!("{name}: {items:?}") };
        assert!(matches!(last.reason, Reason::Expansion { .. }), "{name}: {last}");
        assert!(items.len() <= 2, "{name}: {items:?}");
        println!("{name}: {seconds:?}, {last}");
    }
    let peak = peak_memory();
    println!("at most {} MiB", peak >> 20);
    assert!(peak < 400 << 20, "{peak}");
}

/// The length of each record covers all following records. Each record is therefore read to the end of the
/// file before the search for the next record begins.
#[test]
fn overlapping_records_are_rejected_quickly() {
    let head = record("WARC-Type: metadata\r\n", 30 << 20);
    let count = (4 << 20) / head.len();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.warc");
    fs::write(&path, head.repeat(count)).unwrap();
    let items: Vec<_> = doppel_crawls::open(&path, Limits::at(Timestamp::from_millis(0))).unwrap().collect();
    let Some((Item::Bad(last), before)) = items.split_last() else { panic!("{items:?}") };
    assert!(matches!(last.reason, Reason::Expansion { .. }), "{last}");
    let too_long = |item: &Item| matches!(item, Item::Bad(error) if matches!(error.reason, Reason::Length));
    assert!(before.iter().all(too_long) && before.len() < count, "{}", before.len());
}

/// A large file in a crawl is skipped, and the record after it is read.
#[test]
fn large_files_are_not_rejected_as_bombs() {
    let mut random = 1_u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 56) as u8 & 15
    })
    .take(40 << 20)
    .collect();
    let mut file = Vec::new();
    for (fields, block) in [
        ("WARC-Type: resource\r\nContent-Type: video/mp4\r\n", &noise[..]),
        ("WARC-Type: resource\r\nContent-Type: text/html\r\n", b"<p>"),
    ] {
        let mut member = GzBuilder::new().write(&mut file, Compression::fast());
        member.write_all(&record(fields, block.len())).unwrap();
        member.write_all(block).unwrap();
        member.write_all(b"\r\n\r\n").unwrap();
        member.finish().unwrap();
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.warc.gz");
    fs::write(&path, file).unwrap();
    let limits = Limits { expansion_free_bytes: 1 << 20, ..Limits::at(Timestamp::from_millis(0)) };
    let items: Vec<_> = doppel_crawls::open(&path, limits).unwrap().collect();
    assert!(matches!(items[..], [Item::Skipped(_), Item::Page(_)]), "{items:?}");
}
