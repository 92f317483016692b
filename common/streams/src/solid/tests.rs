use std::io::{Seek, Write};

use bzip2::write::BzEncoder;
use lzma_rust2::{XzOptions, XzWriter};

use super::*;

fn reader(bytes: &[u8]) -> BufReader<CountingReader> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    BufReader::with_capacity(100, CountingReader::unseekable(file))
}

fn read_all(mut read: impl FnMut(&mut [u8]) -> Result<usize, Reason>) -> Result<Vec<u8>, Reason> {
    let (mut content, mut out) = (Vec::new(), [0; 1_000]);
    loop {
        match read(&mut out)? {
            0 => return Ok(content),
            bytes => content.extend_from_slice(&out[..bytes]),
        }
    }
}

fn from_bzip2(bytes: &[u8]) -> Result<Vec<u8>, Reason> {
    let mut bzip2 = Bzip2::new(reader(bytes));
    let content = read_all(|out| bzip2.read(out))?;
    assert_eq!(bzip2.bytes_read(), bytes.len() as u64);
    Ok(content)
}

fn from_xz(bytes: &[u8]) -> Result<Vec<u8>, Reason> {
    let mut xz = Xz::new(reader(bytes));
    let content = read_all(|out| xz.read(out))?;
    assert_eq!(xz.bytes_read(), bytes.len() as u64);
    Ok(content)
}

fn bzip2(content: &[u8]) -> Vec<u8> {
    let mut encoder = BzEncoder::new(Vec::new(), bzip2::Compression::best());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn xz(content: &[u8]) -> Vec<u8> {
    xz_with(content, 6, None)
}

fn xz_with(content: &[u8], preset: u32, dictionary: Option<u32>) -> Vec<u8> {
    let mut options = XzOptions::with_preset(preset);
    if let Some(bytes) = dictionary {
        options.lzma_options.dict_size = bytes;
    }
    let mut encoder = XzWriter::new(Vec::new(), options).unwrap();
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn text() -> Vec<u8> {
    (0..20_000).flat_map(|n| format!("{} words in line {n}\n", n * 31 % 97).into_bytes()).collect()
}

type Reader = fn(&[u8]) -> Result<Vec<u8>, Reason>;
type Writer = fn(&[u8]) -> Vec<u8>;
const FORMATS: [(Reader, Writer); 2] = [(from_bzip2, bzip2), (from_xz, xz)];

#[test]
fn concatenated_streams_are_one_content() {
    let text = text();
    let (first, second) = text.split_at(text.len() / 3);
    for (read, write) in FORMATS {
        assert_eq!(read(&write(&text)).unwrap(), text);
        assert_eq!(read(&[write(first), write(b""), write(second)].concat()).unwrap(), text);
        assert_eq!(read(&write(b"")).unwrap(), b"");
    }
    let padded = [xz(first), vec![0; 8], xz(second), vec![0; 4]].concat();
    assert_eq!(from_xz(&padded).unwrap(), text);
}

#[test]
fn damage_is_reported() {
    let text = text();
    for (read, write) in FORMATS {
        let file = write(&text);
        for cut in [7, 20, file.len() / 2, file.len() - 1] {
            let error = read(&file[..cut]).unwrap_err();
            assert!(matches!(error, Reason::Truncated), "{cut}: {error}");
        }
        let mut damaged = file.clone();
        damaged[file.len() / 2] ^= 4;
        assert!(matches!(read(&damaged), Err(Reason::Corrupt(_))));
        let error = read(&[&file[..], b"something else"].concat()).unwrap_err();
        assert!(matches!(error, Reason::Corrupt(_) | Reason::Truncated), "{error}");
    }
}

#[test]
fn the_memory_of_an_xz_file_is_bounded() {
    assert_eq!(from_xz(&xz_with(b"best", 9, None)).unwrap(), b"best");
    let error = from_xz(&xz_with(b"huge", 6, Some(256 << 20))).unwrap_err();
    assert_eq!(error.to_string(), "corrupt compressed data: it asks for more than 132 MiB of memory");
}

#[test]
fn a_file_is_recognised_by_its_first_bytes() {
    assert!(is_bzip2(&bzip2(b"")[..8]) && is_bzip2(&bzip2(b"text")[..8]));
    assert!(!is_bzip2(b"BZh9 is a word") && !is_bzip2(b"BZh"));
    assert!(xz(b"").starts_with(&XZ_MAGIC));
}
