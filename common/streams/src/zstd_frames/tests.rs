use std::io::Write;

use super::*;

/// The largest window that a frame may request in these tests.
const WINDOW: u64 = 8 << 20;

fn reader(bytes: &[u8], seekable: bool) -> BufReader<CountingReader> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    let counted = if seekable {
        CountingReader::open(file.path()).unwrap()
    } else {
        CountingReader::unseekable(std::fs::File::open(file.path()).unwrap())
    };
    BufReader::with_capacity(1_000, counted)
}

fn frames(bytes: &[u8]) -> Result<Vec<(u64, String)>, Reason> {
    let mut zstd = ZstdFrames::new(reader(bytes, true), WINDOW)?;
    let mut found = Vec::new();
    while zstd.next_frame()? {
        found.push((zstd.frame(), read_frame(&mut zstd)?));
    }
    assert_eq!(zstd.bytes_read(), bytes.len() as u64);
    Ok(found)
}

fn read_frame(zstd: &mut ZstdFrames) -> Result<String, Reason> {
    let mut content = Vec::new();
    let mut out = [0; 7];
    loop {
        match zstd.read(&mut out)? {
            0 => return Ok(String::from_utf8(content).unwrap()),
            bytes => content.extend_from_slice(&out[..bytes]),
        }
    }
}

fn frame(text: &str) -> Vec<u8> {
    zstd::encode_all(text.as_bytes(), 3).unwrap()
}

fn skippable(number: u8, content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).unwrap().to_le_bytes();
    [&[0x50 + number, 0x2a, 0x4d, 0x18], &length[..], content].concat()
}

#[test]
fn frames_are_read_one_by_one() {
    let (first, second) = (frame("the first"), frame("the second, which is longer"));
    let file = [skippable(0, b"12345"), first.clone(), skippable(13, &[0; 5_000]), second, frame("")];
    let offsets = [13, 13 + first.len() as u64 + 5_008, file[..4].concat().len() as u64];
    let expected = ["the first", "the second, which is longer", ""].map(str::to_owned);
    assert_eq!(frames(&file.concat()).unwrap(), offsets.into_iter().zip(expected).collect::<Vec<_>>());
    assert_eq!(frames(b"").unwrap(), []);
}

#[test]
fn damage_is_reported() {
    let file = frame("some text");
    for cut in 1..file.len() {
        assert!(matches!(frames(&file[..cut]), Err(Reason::Truncated)), "{cut}");
    }
    assert!(matches!(frames(&skippable(3, b"12345")[..10]), Err(Reason::Truncated)));
    assert!(matches!(frames(&[&file[..], b"more"].concat()), Err(Reason::Corrupt(_))));
}

fn trained() -> Vec<u8> {
    let samples: Vec<_> =
        (0..2_000).map(|n| format!("WARC/1.0 record {n} of {} words", n * 7 % 13)).collect();
    zstd::dict::from_samples(&samples, 4 << 10).unwrap()
}

#[test]
fn a_dictionary_applies_to_all_frames() {
    let dictionary = trained();
    let mut compressor = zstd::bulk::Compressor::with_dictionary(3, &dictionary).unwrap();
    let text = "WARC/1.0 record 17 of 5 words";
    let with_dictionary = compressor.compress(text.as_bytes()).unwrap();
    assert!(with_dictionary.len() < frame(text).len());
    let body = [with_dictionary.clone(), with_dictionary.clone()].concat();
    for stored in [dictionary.clone(), zstd::encode_all(&*dictionary, 19).unwrap()] {
        let found = frames(&[skippable(13, &stored), body.clone()].concat()).unwrap();
        assert_eq!(found.iter().map(|(_, content)| content.as_str()).collect::<Vec<_>>(), [text, text]);
        // Seeking back to a frame keeps the dictionary.
        let mut zstd =
            ZstdFrames::new(reader(&[skippable(13, &stored), body.clone()].concat(), true), WINDOW).unwrap();
        assert!(zstd.seek(found[1].0).unwrap());
        assert_eq!(read_frame(&mut zstd).unwrap(), text);
    }
    assert!(matches!(frames(&body), Err(Reason::Corrupt(_))), "frames without their dictionary are read");
}

#[test]
fn a_dictionary_is_bounded() {
    let bomb = zstd::encode_all(&*vec![0; DICTIONARY_BYTES_MAX + 1], 1).unwrap();
    let huge = [&DICTIONARY_FRAME[..], &u32::MAX.to_le_bytes(), b"x"].concat();
    for file in [skippable(13, &bomb), huge] {
        assert!(matches!(ZstdFrames::new(reader(&file, true), WINDOW), Err(Reason::TooLarge { .. })));
    }
    assert!(matches!(
        ZstdFrames::new(reader(&skippable(13, &bomb)[..20], true), WINDOW),
        Err(Reason::Truncated)
    ));
}

#[test]
fn the_next_frame_behind_damage_is_found() {
    let text = "WARC/1.0 and more";
    for damage in [20, 100_000, 300_000, 700_000] {
        let mut file = frame("broken");
        file.resize(damage, 0xff);
        file.extend(frame("of something else"));
        let offset = file.len() as u64;
        file.extend(frame(text));
        file.extend(frame("WARC/ the last"));
        for seekable in [true, false] {
            let mut zstd = ZstdFrames::new(reader(&file, seekable), WINDOW).unwrap();
            assert!(zstd.next_frame().unwrap());
            assert_eq!(read_frame(&mut zstd).unwrap(), "broken");
            assert!(matches!(zstd.next_frame(), Err(Reason::Corrupt(_))));
            assert!(zstd.find_frame(|bytes| bytes.starts_with(b"WARC/")).unwrap(), "{damage} {seekable}");
            assert_eq!((zstd.frame(), read_frame(&mut zstd).unwrap().as_str()), (offset, text));
            assert!(zstd.next_frame().unwrap());
            assert_eq!(read_frame(&mut zstd).unwrap(), "WARC/ the last");
            assert!(!zstd.next_frame().unwrap());
        }
    }
}
