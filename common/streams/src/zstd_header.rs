//! Parses the header of a zstd frame (RFC 8878, section 3.1.1.1) to find how much memory the frame requests.
//!
//! The reader of frames checks the window before it decodes, so that its error message can name the requested
//! size.

/// The largest window that the decoder of zstd supports, in bytes.
pub const ZSTD_WINDOW_BYTES_MAX: u64 = 1 << 31;

/// Length of the longest frame header after the magic number, in bytes.
pub(crate) const HEADER_MAX: usize = 1 + 1 + 4 + 8;

/// Length of a header whose first byte is `descriptor`, in bytes. The magic number is not part of the header.
pub(crate) fn length(descriptor: u8) -> usize {
    let window = usize::from(!is_single_segment(descriptor));
    1 + window + dictionary_bytes(descriptor) + content_size_bytes(descriptor)
}

/// The window that a frame requests, in bytes. `header` begins after the magic number. `None` if the header
/// is cut off.
pub(crate) fn window(header: &[u8]) -> Option<u64> {
    let (descriptor, rest) = header.split_first()?;
    if !is_single_segment(*descriptor) {
        let window = rest.first()?;
        let base = 1_u64 << (10 + (window >> 3));
        return Some(base + base / 8 * u64::from(window & 7));
    }
    // The window of a single-segment frame is as large as its content.
    let size = rest.get(dictionary_bytes(*descriptor)..)?.get(..content_size_bytes(*descriptor))?;
    let number = size.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte));
    Some(if size.len() == 2 { number + 256 } else { number })
}

fn is_single_segment(descriptor: u8) -> bool {
    descriptor & 0x20 != 0
}

fn dictionary_bytes(descriptor: u8) -> usize {
    [0, 1, 2, 4][usize::from(descriptor & 3)]
}

fn content_size_bytes(descriptor: u8) -> usize {
    match descriptor >> 6 {
        0 => usize::from(is_single_segment(descriptor)),
        1 => 2,
        2 => 4,
        _ => 8,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn header(bytes: &[u8], pledged: bool, log: u32) -> Vec<u8> {
        let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
        encoder.window_log(log).unwrap();
        encoder.long_distance_matching(true).unwrap();
        if pledged {
            encoder.set_pledged_src_size(Some(bytes.len() as u64)).unwrap();
        }
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()[4..].to_vec()
    }

    #[test]
    fn the_window_of_a_frame_is_read_from_its_header() {
        for log in [10, 17, 23, 27] {
            let header = header(b"some content", false, log);
            assert_eq!(window(&header[..length(header[0])]), Some(1 << log), "{log}");
        }
        // A frame with a small declared content size requests no larger window than that.
        for size in [1, 255, 256, 1_000, 70_000] {
            let header = header(&vec![b'x'; size], true, 27);
            assert_eq!(window(&header[..length(header[0])]), Some(size as u64));
            assert!(length(header[0]) <= HEADER_MAX);
        }
        // A base of 2^31 and the largest base, 2^41, each with the largest mantissa: seven eighths of the
        // base.
        assert_eq!(window(&[0, 0b1010_1111]), Some((1 << 31) / 8 * 15));
        assert_eq!(window(&[0, 0xff]), Some((1 << 41) / 8 * 15));
        for cut in [&[][..], &[0], &[0x20], &[0xe3, 1, 2, 3]] {
            assert_eq!(window(cut), None);
        }
    }
}
