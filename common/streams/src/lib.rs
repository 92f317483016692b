//! Reads untrusted files as bounded streams of unpacked bytes.
//!
//! A [`Stream`] detects gzip, zstd, bzip2 and xz by the first bytes of a file, and unpacks them. It bounds
//! memory and expansion by [`Limits`], and finds the next compressed member after damage. [`RawLines`] cuts a
//! stream into lines, [`FilePart`] opens a range of a file as a stream, and [`TeeReader`] copies what is read
//! of a pipe.
//!
//! The crate does not interpret the bytes. It defines the errors of all readers of crawls, because damage to
//! a compressed file and damage to a record are reported alike: an [`InputError`] has a position and a
//! [`Reason`].
#![forbid(unsafe_code)]

mod counting_reader;
mod error;
mod file_part;
mod gzip;
mod limits;
mod members;
mod packing;
mod raw_lines;
mod skip_reason;
mod solid;
mod stream;
mod tee_reader;
mod zstd_frames;
mod zstd_header;

pub use error::{FieldError, FieldProblem, HeadError, InputError, InputPosition, Location, Reason};
pub use file_part::FilePart;
pub use gzip::read_gzip_header;
pub use limits::{Limits, too_large};
pub use packing::Packing;
pub use raw_lines::RawLines;
pub use skip_reason::SkipReason;
pub use stream::{ReturnPoint, Stream};
pub use tee_reader::TeeReader;
pub use zstd_header::ZSTD_WINDOW_BYTES_MAX;
