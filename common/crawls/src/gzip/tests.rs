use std::fs;
use std::io::Write;

use doppel_model::Timestamp;
use flate2::{Compression, GzBuilder};

use super::*;
use crate::Limits;
use crate::members::SEARCH;
use crate::stream::Stream;

const RECORD: &[u8] = b"WARC/1.0\r\nWARC-Type: warcinfo\r\n";

fn member(header: GzBuilder) -> Vec<u8> {
    let mut member = header.write(Vec::new(), Compression::best());
    member.write_all(RECORD).unwrap();
    member.finish().unwrap()
}

/// What the search behind a damaged member at the beginning of a file finds, when `intact` is at the offset
/// `at` and `behind` bytes of no use follow: the offset, and the first bytes there.
fn found(at: usize, intact: &[u8], behind: usize) -> Option<(u64, Vec<u8>)> {
    // A header, and then what no deflate data begins with.
    let mut file = vec![0xff; at];
    file[..10].copy_from_slice(&member(GzBuilder::new())[..10]);
    file.extend(intact);
    file.resize(file.len() + behind, 0xff);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.warc.gz");
    fs::write(&path, file).unwrap();
    let mut stream = Stream::open(&path, &Limits::at(Timestamp::from_millis(0))).unwrap();
    assert!(stream.next_member().unwrap());
    assert!(matches!(stream.data(), Err(Reason::Corrupt(_))));
    let found = stream.find_member(&|bytes| bytes.starts_with(b"WARC/")).unwrap();
    found.then(|| (stream.offset(), stream.data().unwrap().to_vec()))
}

/// Where a member may fall between two windows of a search that begins at offset 1.
fn edges() -> impl Iterator<Item = usize> {
    let step = SEARCH - EDGE;
    let around = |edge: usize| edge - 3..=edge + 3;
    // Ends of the part that is searched, and of all that was read with it.
    [1 + step, 1 + SEARCH, 1 + 2 * step, 1 + step + SEARCH].into_iter().flat_map(around)
}

#[test]
fn an_intact_member_at_the_edge_of_a_search_is_found() {
    let intact = member(GzBuilder::new());
    for at in edges() {
        for behind in [0, 1, 2 * SEARCH] {
            assert_eq!(found(at, &intact, behind), Some((at as u64, RECORD.to_vec())), "{at} {behind}");
        }
    }
}

#[test]
fn a_member_of_the_longest_header_at_the_edge_of_a_search_is_found() {
    let text = vec![b'x'; TEXT_MAX as usize - 2];
    let extra = vec![b'x'; usize::from(u16::MAX)];
    let intact = member(GzBuilder::new().filename(&text[..]).comment(text).extra(extra));
    let header = HEADER_MAX - 4;
    assert!((header..header + 100).contains(&intact.len()), "{} {header}", intact.len());
    for at in edges() {
        assert_eq!(found(at, &intact, 2 * SEARCH), Some((at as u64, RECORD.to_vec())), "{at}");
    }
}

#[test]
fn a_search_ends_with_the_file() {
    for at in [20, SEARCH - 1, SEARCH, SEARCH + 1, SEARCH + 2, 3 * SEARCH] {
        assert_eq!(found(at, b"", 0), None, "{at}");
        // A header alone is no member, and neither is one of something else.
        assert_eq!(found(at, &member(GzBuilder::new())[..10], 0), None, "{at}");
        let mut other = member(GzBuilder::new());
        other[2] ^= 1;
        assert_eq!(found(at, &other, 0), None, "{at}");
    }
}
