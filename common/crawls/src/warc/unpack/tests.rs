use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

use super::*;

const MAX: usize = 100_000;

pub(in crate::warc) fn packed(packing: BodyCompression, bytes: &[u8]) -> Vec<u8> {
    let level = Compression::best();
    let mut out = Vec::new();
    match packing {
        BodyCompression::Gzip => {
            let mut encoder = GzEncoder::new(out, level);
            encoder.write_all(bytes).unwrap();
            out = encoder.finish().unwrap();
        }
        BodyCompression::Zlib => {
            let mut encoder = ZlibEncoder::new(out, level);
            encoder.write_all(bytes).unwrap();
            out = encoder.finish().unwrap();
        }
        BodyCompression::Deflate => {
            let mut encoder = DeflateEncoder::new(out, level);
            encoder.write_all(bytes).unwrap();
            out = encoder.finish().unwrap();
        }
        BodyCompression::Brotli => {
            let mut encoder = brotli::CompressorWriter::new(&mut out, 4096, 9, 22);
            encoder.write_all(bytes).unwrap();
            drop(encoder);
        }
        BodyCompression::Zstd => out = zstd::encode_all(bytes, 3).unwrap(),
    }
    out
}

pub(in crate::warc) const ALL: [BodyCompression; 5] = [
    BodyCompression::Gzip,
    BodyCompression::Zlib,
    BodyCompression::Deflate,
    BodyCompression::Brotli,
    BodyCompression::Zstd,
];

/// Text that does not compress to almost nothing.
pub(in crate::warc) fn text(words: usize) -> String {
    (0..words).map(|n| format!("word{} ", (n * 7_919) % 10_007)).collect()
}

#[test]
fn a_body_in_each_compression_is_unpacked() {
    for packing in ALL {
        for bytes in [b"".to_vec(), b"<p>a".to_vec(), text(5_000).into_bytes(), vec![b'x'; MAX]] {
            let unpacked = packing.unpack(&packed(packing, &bytes), MAX);
            assert_eq!(unpacked.end, UnpackEnd::Whole, "{packing:?}");
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
                // An empty body shows no compression.
                (BodyCompression::Gzip | BodyCompression::Zstd, 0) => UnpackEnd::Whole,
                (BodyCompression::Zlib, 0) => UnpackEnd::Invalid,
                _ => UnpackEnd::CutOff,
            };
            assert_eq!(unpacked.end, expected, "{packing:?} {length}");
        }
        let unpacked = packing.unpack(&whole[..whole.len() - 9], MAX);
        assert!(unpacked.bytes.len() * 2 > text.len() || packing == BodyCompression::Zstd, "{packing:?}");
    }
}

#[test]
fn data_behind_packed_data_are_left_out() {
    for packing in ALL {
        for (behind, expected) in [
            (&b"\r\n"[..], UnpackEnd::Whole),
            (&[0; 100], UnpackEnd::Whole),
            (b"<!-- cached -->", UnpackEnd::Followed),
            (b"\x1f", UnpackEnd::Followed),
        ] {
            let body = [&*packed(packing, b"<p>text"), behind].concat();
            let unpacked = packing.unpack(&body, MAX);
            assert_eq!((unpacked.bytes.as_slice(), unpacked.end), (&b"<p>text"[..], expected), "{packing:?}");
        }
    }
}

#[test]
fn all_members_and_frames_are_unpacked() {
    for packing in [BodyCompression::Gzip, BodyCompression::Zstd] {
        let parts: Vec<u8> =
            ["one ", "", "two ", "three"].iter().flat_map(|part| packed(packing, part.as_bytes())).collect();
        let unpacked = packing.unpack(&parts, MAX);
        assert_eq!(
            (unpacked.bytes.as_slice(), unpacked.end),
            (&b"one two three"[..], UnpackEnd::Whole),
            "{packing:?}"
        );
        let cut = packing.unpack(&parts[..parts.len() - 6], MAX);
        assert!(cut.bytes.starts_with(b"one two ") && cut.end == UnpackEnd::CutOff, "{packing:?}");
    }
    let skippable = [&b"\x52\x2a\x4d\x18\x03\0\0\0abc"[..], &packed(BodyCompression::Zstd, b"text")].concat();
    assert_eq!(BodyCompression::from_magic(&skippable), Some(BodyCompression::Zstd));
    assert_eq!(BodyCompression::Zstd.unpack(&skippable, MAX).bytes, b"text");
}

#[test]
fn damage_is_detected_by_the_checksum() {
    let text = text(2_000);
    for packing in [BodyCompression::Gzip, BodyCompression::Zlib] {
        let whole = packed(packing, text.as_bytes());
        for at in (2..whole.len()).step_by(13).filter(|at| packing == BodyCompression::Zlib || *at > 10) {
            let mut broken = whole.clone();
            broken[at] ^= 0x55;
            let end = packing.unpack(&broken, MAX).end;
            assert!(
                matches!(end, UnpackEnd::Invalid | UnpackEnd::CutOff | UnpackEnd::TooLarge),
                "{packing:?} {at} {end:?}"
            );
        }
    }
    let two = [packed(BodyCompression::Gzip, b"one"), packed(BodyCompression::Gzip, b"two")].concat();
    let mut broken = two.clone();
    let last = two.len() - 1;
    broken[last] ^= 1;
    assert_eq!(BodyCompression::Gzip.unpack(&broken, MAX).end, UnpackEnd::Invalid);
}

#[test]
fn the_unpacked_size_is_bounded() {
    for packing in ALL {
        let bomb = packed(packing, &vec![0; 1 << 25]);
        let unpacked = packing.unpack(&bomb, MAX);
        assert_eq!(unpacked.end, UnpackEnd::TooLarge, "{packing:?}");
        assert!(unpacked.bytes.len() <= MAX + (64 << 10), "{packing:?}");
    }
    let many: Vec<u8> = packed(BodyCompression::Gzip, &[b'x'; 1_000]).repeat(200);
    assert_eq!(BodyCompression::Gzip.unpack(&many, MAX).end, UnpackEnd::TooLarge);
}

#[test]
fn a_window_above_the_limit_is_refused() {
    let mut zstd = zstd::Encoder::new(Vec::new(), 3).unwrap();
    zstd.window_log(27).unwrap();
    zstd.include_contentsize(false).unwrap();
    zstd.write_all(&vec![b'x'; MAX]).unwrap();
    assert_eq!(BodyCompression::Zstd.unpack(&zstd.finish().unwrap(), MAX).end, UnpackEnd::Invalid);
    // The first byte announces a large window, of 2^30 bytes.
    assert_eq!(BodyCompression::Brotli.unpack(&[0x11, 0x1e, 0, 0, 0, 0], MAX).end, UnpackEnd::Invalid);
}

proptest::proptest! {
    #[test]
    fn unpacking_any_bytes_terminates_within_the_limit(bytes: Vec<u8>) {
        for packing in ALL {
            proptest::prop_assert!(packing.unpack(&bytes, 1_000).bytes.len() <= 1_001);
        }
    }
}
