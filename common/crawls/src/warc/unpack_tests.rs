use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

use super::*;

const MAX: usize = 100_000;

pub(in crate::warc) fn packed(packing: Packing, bytes: &[u8]) -> Vec<u8> {
    let level = Compression::best();
    let mut out = Vec::new();
    match packing {
        Packing::Gzip => {
            let mut encoder = GzEncoder::new(out, level);
            encoder.write_all(bytes).unwrap();
            out = encoder.finish().unwrap();
        }
        Packing::Zlib => {
            let mut encoder = ZlibEncoder::new(out, level);
            encoder.write_all(bytes).unwrap();
            out = encoder.finish().unwrap();
        }
        Packing::Deflate => {
            let mut encoder = DeflateEncoder::new(out, level);
            encoder.write_all(bytes).unwrap();
            out = encoder.finish().unwrap();
        }
        Packing::Brotli => {
            let mut encoder = brotli::CompressorWriter::new(&mut out, 4096, 9, 22);
            encoder.write_all(bytes).unwrap();
            drop(encoder);
        }
        Packing::Zstd => out = zstd::encode_all(bytes, 3).unwrap(),
    }
    out
}

pub(in crate::warc) const ALL: [Packing; 5] =
    [Packing::Gzip, Packing::Zlib, Packing::Deflate, Packing::Brotli, Packing::Zstd];

/// A text that does not pack to almost nothing.
pub(in crate::warc) fn text(words: usize) -> String {
    (0..words).map(|n| format!("word{} ", (n * 7_919) % 10_007)).collect()
}

#[test]
fn each_packing_is_undone() {
    for packing in ALL {
        for bytes in [b"".to_vec(), b"<p>a".to_vec(), text(5_000).into_bytes(), vec![b'x'; MAX]] {
            let unpacked = packing.unpack(&packed(packing, &bytes), MAX);
            assert_eq!(unpacked.end, End::Whole, "{packing:?}");
            assert!(unpacked.bytes == bytes, "{packing:?}");
        }
    }
}

#[test]
fn a_packed_body_that_is_cut_off_gives_its_beginning() {
    let text = text(5_000);
    for packing in ALL {
        let whole = packed(packing, text.as_bytes());
        for length in (0..whole.len()).step_by(97) {
            let unpacked = packing.unpack(&whole[..length], MAX);
            assert!(text.as_bytes().starts_with(&unpacked.bytes), "{packing:?} {length}");
            let expected = match (packing, length) {
                // Nothing shows what it is.
                (Packing::Gzip | Packing::Zstd, 0) => End::Whole,
                (Packing::Zlib, 0) => End::Invalid,
                _ => End::CutOff,
            };
            assert_eq!(unpacked.end, expected, "{packing:?} {length}");
        }
        let unpacked = packing.unpack(&whole[..whole.len() - 9], MAX);
        assert!(unpacked.bytes.len() * 2 > text.len() || packing == Packing::Zstd, "{packing:?}");
    }
}

#[test]
fn what_follows_packed_data_is_left_out() {
    for packing in ALL {
        for (behind, expected) in [
            (&b"\r\n"[..], End::Whole),
            (&[0; 100], End::Whole),
            (b"<!-- cached -->", End::Followed),
            (b"\x1f", End::Followed),
        ] {
            let body = [&*packed(packing, b"<p>text"), behind].concat();
            let unpacked = packing.unpack(&body, MAX);
            assert_eq!((unpacked.bytes.as_slice(), unpacked.end), (&b"<p>text"[..], expected), "{packing:?}");
        }
    }
}

#[test]
fn members_and_frames_are_read_to_the_last() {
    for packing in [Packing::Gzip, Packing::Zstd] {
        let parts: Vec<u8> =
            ["one ", "", "two ", "three"].iter().flat_map(|part| packed(packing, part.as_bytes())).collect();
        let unpacked = packing.unpack(&parts, MAX);
        assert_eq!(
            (unpacked.bytes.as_slice(), unpacked.end),
            (&b"one two three"[..], End::Whole),
            "{packing:?}"
        );
        let cut = packing.unpack(&parts[..parts.len() - 6], MAX);
        assert!(cut.bytes.starts_with(b"one two ") && cut.end == End::CutOff, "{packing:?}");
    }
    let skippable = [&b"\x52\x2a\x4d\x18\x03\0\0\0abc"[..], &packed(Packing::Zstd, b"text")].concat();
    assert_eq!(Packing::by_magic(&skippable), Some(Packing::Zstd));
    assert_eq!(Packing::Zstd.unpack(&skippable, MAX).bytes, b"text");
}

#[test]
fn damage_is_noticed() {
    let text = text(2_000);
    for packing in [Packing::Gzip, Packing::Zlib] {
        let whole = packed(packing, text.as_bytes());
        for at in (2..whole.len()).step_by(13).filter(|at| packing == Packing::Zlib || *at > 10) {
            let mut broken = whole.clone();
            broken[at] ^= 0x55;
            let end = packing.unpack(&broken, MAX).end;
            assert!(matches!(end, End::Invalid | End::CutOff | End::TooLarge), "{packing:?} {at} {end:?}");
        }
    }
    let two = [packed(Packing::Gzip, b"one"), packed(Packing::Gzip, b"two")].concat();
    let mut broken = two.clone();
    let last = two.len() - 1;
    broken[last] ^= 1;
    assert_eq!(Packing::Gzip.unpack(&broken, MAX).end, End::Invalid);
}

#[test]
fn unpacking_is_bounded() {
    for packing in ALL {
        let bomb = packed(packing, &vec![0; 1 << 25]);
        let unpacked = packing.unpack(&bomb, MAX);
        assert_eq!(unpacked.end, End::TooLarge, "{packing:?}");
        assert!(unpacked.bytes.len() <= MAX + (64 << 10), "{packing:?}");
    }
    let many: Vec<u8> = packed(Packing::Gzip, &[b'x'; 1_000]).repeat(200);
    assert_eq!(Packing::Gzip.unpack(&many, MAX).end, End::TooLarge);
}

#[test]
fn windows_are_bounded() {
    let mut zstd = zstd::Encoder::new(Vec::new(), 3).unwrap();
    zstd.window_log(27).unwrap();
    zstd.include_contentsize(false).unwrap();
    zstd.write_all(&vec![b'x'; MAX]).unwrap();
    assert_eq!(Packing::Zstd.unpack(&zstd.finish().unwrap(), MAX).end, End::Invalid);
    // The first byte announces a large window, of 2^30 bytes.
    assert_eq!(Packing::Brotli.unpack(&[0x11, 0x1e, 0, 0, 0, 0], MAX).end, End::Invalid);
}

proptest::proptest! {
    #[test]
    fn any_bytes_end(bytes: Vec<u8>) {
        for packing in ALL {
            proptest::prop_assert!(packing.unpack(&bytes, 1_000).bytes.len() <= 1_001);
        }
    }
}
