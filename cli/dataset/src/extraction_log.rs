//! A log of the pages extracted by a command that writes a whole data directory, so that an interrupted run
//! can go on.
//!
//! The pages of each batch are one or two frames. A frame is its length (4 bytes, little-endian), a 64-bit
//! hash of the rest, and the rest in postcard format. A frame in which files end has no pages of later files.
//! The log is removed when the directory is complete.
//!
//! Invariants:
//! - A run goes on after the last file that ends in the log, provided that this file and all files before it
//!   are the first inputs and unchanged. Pages are replayed in the order in which they would be read.
//! - The rest of the log, and any unreadable part, is cut off.
//! - The log only saves time. If it cannot be written, or the disk has less free space than the log takes,
//!   the log is given up, and the run goes on without it.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::PathBuf;

use anyhow::{Context, ensure};
use doppel_inputs::ingested::{IngestedFile, ReadingPlan};
use doppel_inputs::reading::crawl::FileEnd;
use doppel_inputs::sources::InputSource;
use doppel_model::stable_hash64;
use doppel_terminal::interrupt;
use doppel_terminal::output::{plural, say};
use serde::{Deserialize, Serialize};

use crate::extracted::{ExtractedBatch, ExtractedPage};

/// Version of the frames in the extraction log. A log with frames of another version is not replayed.
pub const FRAMES_VERSION: u32 = 3;

/// Size of the head of a frame (length and hash), in bytes.
const HEAD: usize = 12;

/// Largest size of a frame, in bytes. A batch has 4 MiB of text, or one page more, and a signature is smaller
/// than its text unless the text is short.
const FRAME_MAX: u32 = 1 << 30;

/// Message of an interrupted run whose log lets the next run go on.
pub const GOES_ON: &str =
    "interrupted; the same command goes on behind the last file that was read to its end";
/// Message of an interrupted run that leaves nothing behind.
pub const BEGINS_ANEW: &str = "interrupted; nothing is kept, and the same command begins anew";

/// A frame as it is written.
#[derive(Serialize)]
struct FrameRef<'f> {
    ended: &'f [FileEnd],
    pages: &'f [ExtractedPage],
}

/// A frame as it is read.
#[derive(Deserialize)]
struct Frame {
    ended: Vec<FileEnd>,
    pages: Vec<ExtractedPage>,
}

/// The log of extracted pages, open for replay and writing.
#[derive(Debug)]
pub struct ExtractionLog {
    path: PathBuf,
    /// The open file; `None` after the log was given up.
    file: Option<File>,
    /// Position of the input that has to end next, among all inputs.
    next: usize,
    /// Range of bytes of the log that is replayed.
    replayed: Range<u64>,
}

impl ExtractionLog {
    /// Opens the log of an interrupted run, or begins a new one. `maker` identifies the maker of the
    /// signatures; pages of another maker are not replayed.
    ///
    /// Also returns the files that need not be read again, which are the first inputs. The caller must
    /// [replay](Self::replay) their pages.
    ///
    /// # Errors
    /// If the message for signals cannot be set.
    pub fn open(
        path: PathBuf,
        maker: &str,
        (sources, reading): (&[InputSource], &ReadingPlan),
    ) -> io::Result<(Self, Vec<IngestedFile>)> {
        interrupt::set_message(GOES_ON)?;
        let mut this = Self { path, file: None, next: 0, replayed: 0..0 };
        if !sources.first().is_some_and(ReadingPlan::may_list) {
            this.end()?;
            return Ok((this, Vec::new()));
        }
        let opened = File::options().read(true).write(true).create(true).truncate(false).open(&this.path);
        match opened.and_then(|file| usable(file, maker, (sources, reading))) {
            Ok(Usable { file, begin, end, ended }) => {
                (this.file, this.next, this.replayed) = (Some(file), ended.len(), begin..end);
                Ok((this, ended))
            }
            Err(error) => {
                this.give_up(&error)?;
                Ok((this, Vec::new()))
            }
        }
    }

    /// Whether at least one file is complete in the log, so that the next run could skip it.
    pub fn has_files(&self) -> bool {
        self.next > 0
    }

    /// Hands the pages of the files that need not be read again to `take`.
    ///
    /// # Errors
    /// If the log cannot be read; or the error of `take`.
    pub fn replay(
        &mut self,
        mut take: impl FnMut(ExtractedBatch) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let (range, path) = (self.replayed.clone(), &self.path);
        let Some(file) = self.file.as_mut().filter(|_| self.next > 0) else { return Ok(()) };
        let files = plural(self.next as u64, "file");
        say!("doppel: going on after {files} that an interrupted run has read");
        let cannot = || format!("cannot read {}; remove it to begin anew", path.display());
        file.seek(SeekFrom::Start(range.start)).with_context(cannot)?;
        let mut at = range.start;
        let mut frames = BufReader::new(&*file).take(range.end - range.start);
        while let Some(frame) = next(&mut frames).with_context(cannot)? {
            at += (HEAD + frame.len()) as u64;
            let Frame { ended, pages } = postcard::from_bytes(&frame).with_context(cannot)?;
            take(ExtractedBatch { pages, ended })?;
        }
        ensure!(at == range.end, "{}", cannot());
        file.seek(SeekFrom::Start(range.end)).with_context(cannot)?;
        Ok(())
    }

    /// Appends a batch of pages. The log takes no more batches after a file that has no end in its turn,
    /// because a later run could not skip the files after it.
    ///
    /// # Errors
    /// If the message for signals cannot be changed.
    pub fn add(&mut self, ExtractedBatch { pages, ended }: &ExtractedBatch) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        if !has_room(file) {
            return self.give_up(&io::Error::from(io::ErrorKind::StorageFull));
        }
        let in_turn = ended.iter().zip(self.next..).take_while(|(end, next)| end.source == *next).count();
        let is_broken = in_turn < ended.len();
        let ended = &ended[..in_turn];
        let before = ended.last().map_or(0, |end| end.before);
        let of_ended = pages.partition_point(|page| page.record < before);
        let (of_ended, others) = pages.split_at(of_ended);
        let others = if is_broken { &[] } else { others };
        let written = [(ended, of_ended), (&[], others)]
            .into_iter()
            .filter(|(ended, pages)| !ended.is_empty() || !pages.is_empty())
            .try_for_each(|(ended, pages)| write(file, &FrameRef { ended, pages }));
        if let Err(error) = written {
            return self.give_up(&error);
        }
        self.next += in_turn;
        if !is_broken {
            return Ok(());
        }
        // The frames written so far stay useful.
        if self.next == 0 {
            return self.end();
        }
        self.file = None;
        Ok(())
    }

    fn give_up(&mut self, error: &io::Error) -> io::Result<()> {
        let path = self.path.display();
        say!("doppel: cannot write {path}: {error}; if this run is interrupted, the next one begins anew");
        self.end()
    }

    /// Closes and removes the log, and changes the message of an interruption.
    fn end(&mut self) -> io::Result<()> {
        (self.file, self.next) = (None, 0);
        let _is_removed = fs::remove_file(&self.path);
        interrupt::set_message(BEGINS_ANEW)
    }
}

/// The part of a log that a run can replay.
struct Usable {
    file: File,
    begin: u64,
    end: u64,
    ended: Vec<IngestedFile>,
}

/// Reads a log and cuts off the part that cannot be replayed. A log of another maker is emptied.
fn usable(
    mut file: File,
    maker: &str,
    (sources, reading): (&[InputSource], &ReadingPlan),
) -> io::Result<Usable> {
    let mut frames = BufReader::new(&file);
    let is_same = next(&mut frames)?.is_some_and(|made_by| made_by == maker.as_bytes());
    let begin = (HEAD + maker.len()) as u64;
    let (mut at, mut end, mut ended) = (begin, begin, Vec::new());
    while is_same && let Some(frame) = next(&mut frames)? {
        at += (HEAD + frame.len()) as u64;
        let Ok(Frame { ended: these, .. }) = postcard::from_bytes(&frame) else { break };
        if these.is_empty() {
            continue;
        }
        let these = these.into_iter().map(|end| end.ingested).collect::<Vec<_>>();
        let are_next = sources.get(ended.len()..ended.len() + these.len()).is_some_and(|sources| {
            these.iter().zip(sources).all(|(ingested, source)| reading.is_same(ingested, source))
        });
        if !are_next {
            break;
        }
        ended.extend(these);
        end = at;
    }
    file.set_len(if is_same { end } else { 0 })?;
    file.seek(SeekFrom::End(0))?;
    if !is_same {
        put(&mut file, maker.as_bytes())?;
    }
    Ok(Usable { file, begin, end, ended })
}

/// Whether the disk has at least as much free space as the log takes, because the collection needs space,
/// too.
fn has_room(file: &File) -> bool {
    let taken = file.metadata().map_or(0, |metadata| metadata.len());
    rustix::fs::fstatvfs(file).map_or(true, |disk| disk.f_bavail.saturating_mul(disk.f_frsize) >= taken)
}

/// Writes a frame.
fn write(file: &mut File, frame: &FrameRef<'_>) -> io::Result<()> {
    put(file, &postcard::to_stdvec(frame).map_err(io::Error::other)?)
}

fn put(file: &mut File, rest: &[u8]) -> io::Result<()> {
    let length = u32::try_from(rest.len()).ok().filter(|length| *length <= FRAME_MAX);
    let length = length.ok_or_else(|| io::Error::other("a batch is too large"))?;
    file.write_all(&[&length.to_le_bytes()[..], &stable_hash64(rest).to_le_bytes()].concat())?;
    file.write_all(rest)
}

/// Reads the rest of the next frame. Returns `None` at the end of the log, or at a damaged or incomplete
/// frame.
fn next(frames: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut head = Vec::with_capacity(HEAD);
    frames.take(HEAD as u64).read_to_end(&mut head)?;
    let Ok(head) = <[u8; HEAD]>::try_from(head) else { return Ok(None) };
    let [l0, l1, l2, l3, hash @ ..] = head;
    let (length, hash) = (u32::from_le_bytes([l0, l1, l2, l3]), u64::from_le_bytes(hash));
    if length > FRAME_MAX {
        return Ok(None);
    }
    let mut rest = Vec::new();
    frames.take(length.into()).read_to_end(&mut rest)?;
    let is_whole = rest.len() as u64 == u64::from(length) && stable_hash64(&rest) == hash;
    Ok(is_whole.then_some(rest))
}

#[cfg(test)]
mod tests;
