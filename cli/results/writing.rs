//! The second reading: each record goes to its side.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, anyhow, bail, ensure};
use doppel_crawls::copy::{Copied, CopyError, Side, Sides, copy, copy_directory};
use doppel_crawls::record::RecordFile;
use doppel_crawls::{InputOptions, Limits};
use doppel_model::Timestamp;

use super::checked::{Results, Seen};
use super::part_file::PartFile;
use super::places::no_object;
use super::verdicts::Decisions;
use crate::args::InputArgs;
use crate::inputs::{self, Place};
use crate::output::count;
use crate::progress;

/// What is written at a time.
const BUFFER: usize = 64 << 10;

/// A file of a side: its path, and how many bytes were written.
type Told = (PathBuf, Arc<AtomicU64>);

impl Results {
    /// Copies all records. The inputs were read first at `now`, and had so many `pages`.
    ///
    /// # Errors
    /// When a file cannot be written, or an input has changed. Files that were finished before are whole, and stay.
    pub(crate) fn write(
        &self,
        inputs: &InputArgs,
        (now, pages): (Timestamp, u64),
        mut decisions: Decisions,
    ) -> anyhow::Result<Copied> {
        let sources = inputs::sources(&inputs.inputs)?.all;
        ensure!(sources.len() == self.places.len(), "there are other inputs than when they were read first");
        let options = inputs.records.fields.options(Limits::at(now));
        let bar = progress::bytes(sources.iter().map(|source| source.bytes).sum(), "writing");
        let mut copied = Copied::default();
        for (source, (place, seen)) in sources.iter().zip(&self.places) {
            let path = source.path();
            let before = bar.position();
            let read = |bytes| bar.set_position(before + bytes);
            if seen.is_some_and(|seen| Seen::of(path) != Some(seen)) {
                bail!("{} has changed since it was read first; begin anew", path.display());
            }
            match &source.place {
                Place::Standard => bail!("standard input cannot be read twice"),
                Place::Object(_) => return Err(no_object(path).into()),
                Place::Pages(dir) => {
                    copied.add(&self.directory(dir, place, &options, (&mut decisions, &read))?);
                }
                Place::File(path, name) => {
                    copied.add(&self.file((path, name), place, &options, (&mut decisions, &read))?);
                }
            }
            bar.set_position(before + source.bytes);
        }
        bar.finish_and_clear();
        let asked = decisions.asked();
        ensure!(
            asked == pages,
            "the inputs had {} pages and have {} now; begin anew",
            count(pages),
            count(asked)
        );
        Ok(copied)
    }

    /// Copies the records of a file.
    fn file(
        &self,
        (path, name): (&Path, &RecordFile),
        place: &Path,
        options: &InputOptions,
        (decisions, read): (&mut Decisions, &dyn Fn(u64)),
    ) -> anyhow::Result<Copied> {
        let mut told: Vec<(Side, Told)> = Vec::new();
        let sides = Sides { kept: self.dirs.kept.as_deref(), removed: self.dirs.removed.as_deref() };
        let sides = sides.try_map(|side, dir| {
            let path = dir.join(place);
            let file = PartFile::begin(&path).with_context(|| cannot(&path))?;
            told.push((side, (path, file.written())));
            Ok::<_, anyhow::Error>(BufWriter::with_capacity(BUFFER, file))
        })?;
        let mut judge = decisions.judge(read);
        let (copied, sides) = match copy(path, name.clone(), options, sides, (&mut judge, self.annotate)) {
            Ok(done) => done,
            // The first reading has told of it, and had no page of it.
            Err(CopyError::Open(_)) => return Ok(Copied { bad: 1, ..Copied::default() }),
            Err(CopyError::Write(side, error)) => return Err(failed(side, error, &told)),
            Err(other) => return Err(other.into()),
        };
        sides.try_map(|side, out| {
            let finish = || out.into_inner().map_err(io::IntoInnerError::into_error)?.finish();
            finish().map_err(|error| failed(side, error, &told))
        })?;
        Ok(copied)
    }

    /// Copies the files of a directory of pages.
    fn directory(
        &self,
        dir: &Path,
        place: &Path,
        options: &InputOptions,
        (decisions, read): (&mut Decisions, &dyn Fn(u64)),
    ) -> anyhow::Result<Copied> {
        let mut judge = decisions.judge(read);
        // The failure of a file, which is told with its path.
        let mut failure = None;
        let copied = copy_directory(dir, options, &mut judge, &mut |side, below, file| {
            self.page(side, &place.join(below), file).map_err(|error| {
                failure = Some(error);
                CopyError::Write(side, io::ErrorKind::Other.into())
            })
        });
        match (copied, failure) {
            (_, Some(failure)) => Err(failure),
            (Err(CopyError::Open(_)), None) => Ok(Copied { bad: 1, ..Copied::default() }),
            (copied, None) => Ok(copied?),
        }
    }

    /// Copies the file of a page. What an earlier run has put on the other side goes.
    fn page(&self, side: Side, place: &Path, file: &Path) -> anyhow::Result<()> {
        let Sides { kept, removed } = &self.dirs;
        let (dir, other) = if side == Side::Kept { (kept, removed) } else { (removed, kept) };
        if let Some(dir) = dir {
            let path = dir.join(place);
            let mut from = File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
            let mut part = PartFile::begin(&path).with_context(|| cannot(&path))?;
            let written = part.written();
            let copied = io::copy(&mut from, &mut part).and_then(|_| part.finish());
            copied.map_err(|error| failed(side, error, &[(side, (path, written))]))?;
        }
        match other.as_ref().map(|other| fs::remove_file(other.join(place))) {
            Some(Err(error))
                if error.kind() != io::ErrorKind::NotFound
                    && error.kind() != io::ErrorKind::NotADirectory =>
            {
                Err(error).with_context(|| format!("cannot remove {}", place.display()))
            }
            _ => Ok(()),
        }
    }
}

/// Why the file of a side is not there.
fn failed(side: Side, error: io::Error, told: &[(Side, Told)]) -> anyhow::Error {
    let Some((_, (path, written))) = told.iter().find(|(of, _)| *of == side) else {
        return anyhow!(error);
    };
    let bytes = count(written.load(Ordering::Relaxed));
    anyhow!(error).context(format!("cannot write {} past its first {bytes} bytes", path.display()))
}

fn cannot(path: &Path) -> String {
    format!("cannot write {}", path.display())
}
