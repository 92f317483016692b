use std::fs;
use std::io::Write;

use doppel_model::Timestamp;
use flate2::{Compression, GzBuilder};

use super::*;
use crate::Limits;
use crate::members::SEARCH_WINDOW_BYTES;
use crate::stream::Stream;

const RECORD: &[u8] = b"WARC/1.0\r\nWARC-Type: warcinfo\r\n";

fn member(header: GzBuilder) -> Vec<u8> {
    let mut member = header.write(Vec::new(), Compression::best());
    member.write_all(RECORD).unwrap();
    member.finish().unwrap()
}

/// Searches a file that begins with a damaged member. The intact member `intact` is at the offset `at`, and
/// `behind` useless bytes follow it. Returns the offset of the member that the search found, and the first
/// bytes of its content.
fn find_behind_damage(at: usize, intact: &[u8], behind: usize) -> Option<(u64, Vec<u8>)> {
    // A valid header, followed by bytes with which no deflate data begin.
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

/// Offsets at which a member may straddle two windows of a search that begins at offset 1.
fn window_edges() -> impl Iterator<Item = usize> {
    let step = SEARCH_WINDOW_BYTES - RECOGNITION_BYTES;
    let around = |edge: usize| edge - 3..=edge + 3;
    // The ends of the searched part of a window, and of the whole window.
    [1 + step, 1 + SEARCH_WINDOW_BYTES, 1 + 2 * step, 1 + step + SEARCH_WINDOW_BYTES]
        .into_iter()
        .flat_map(around)
}

#[test]
fn an_intact_member_at_the_edge_of_a_search_window_is_found() {
    let intact = member(GzBuilder::new());
    for at in window_edges() {
        for behind in [0, 1, 2 * SEARCH_WINDOW_BYTES] {
            assert_eq!(
                find_behind_damage(at, &intact, behind),
                Some((at as u64, RECORD.to_vec())),
                "{at} {behind}"
            );
        }
    }
}

#[test]
fn a_member_with_the_longest_header_at_the_edge_of_a_search_window_is_found() {
    let text = vec![b'x'; TEXT_MAX as usize - 2];
    let extra = vec![b'x'; usize::from(u16::MAX)];
    let intact = member(GzBuilder::new().filename(&text[..]).comment(text).extra(extra));
    let header = HEADER_MAX - 4;
    assert!((header..header + 100).contains(&intact.len()), "{} {header}", intact.len());
    for at in window_edges() {
        assert_eq!(
            find_behind_damage(at, &intact, 2 * SEARCH_WINDOW_BYTES),
            Some((at as u64, RECORD.to_vec())),
            "{at}"
        );
    }
}

#[test]
fn a_search_without_a_hit_ends_at_the_end_of_the_file() {
    for at in [
        20,
        SEARCH_WINDOW_BYTES - 1,
        SEARCH_WINDOW_BYTES,
        SEARCH_WINDOW_BYTES + 1,
        SEARCH_WINDOW_BYTES + 2,
        3 * SEARCH_WINDOW_BYTES,
    ] {
        assert_eq!(find_behind_damage(at, b"", 0), None, "{at}");
        // Neither a header alone nor a member with another compression method is a gzip member.
        assert_eq!(find_behind_damage(at, &member(GzBuilder::new())[..10], 0), None, "{at}");
        let mut other = member(GzBuilder::new());
        other[2] ^= 1;
        assert_eq!(find_behind_damage(at, &other, 0), None, "{at}");
    }
}
