//! The second reading of the inputs, which copies each record to its side.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, anyhow, bail, ensure};
use doppel_crawls::copy::{Copied, CopyError, CopySide, Sides, copy, copy_directory};
use doppel_crawls::record::RecordFile;
use doppel_crawls::{InputOptions, Limits};
use doppel_inputs::arguments::InputArgs;
use doppel_inputs::sources::{InputSource, SourceKind};
use doppel_inputs::tally::SourceCounts;
use doppel_inputs::version::Version;
use doppel_model::Timestamp;
use doppel_terminal::destination::directory_of;
use doppel_terminal::output::{count, plural};
use doppel_terminal::progress;

use super::checked::Results;
use super::earlier::{self, EarlierResults, NamedInputs, Reading};
use super::part_file::{PartFile, Prepared};
use super::places::no_object;
use super::verdicts::{QueriedRecords, RecordDecisions};

/// Size of a write buffer, in bytes.
const BUFFER: usize = 64 << 10;

/// A file of a side: its path, and the counter of its written bytes.
type SideFile = (PathBuf, Arc<AtomicU64>);

/// State of the second reading: the results so far, and the name of the present input.
struct Writing {
    earlier: EarlierResults,
    prepared: Prepared,
    input: String,
}

impl Writing {
    /// Begins the file of a side.
    fn begin(&mut self, dir: &Path, path: &Path) -> anyhow::Result<PartFile> {
        let prepared = self.prepared.prepare(dir, directory_of(path));
        prepared.and_then(|()| PartFile::begin(path)).with_context(|| cannot(path))
    }

    /// Gives the file of a side its final name.
    fn finish(&mut self, file: PartFile, side: CopySide, below: &Path) -> io::Result<()> {
        file.finish(|written| self.earlier.note((side, below), &self.input, written))
    }
}

/// Checks that an input is unchanged, from the counts of its copied records, before the files get their final
/// names.
type CheckUnchanged<'f> = &'f dyn Fn(&Copied, &RecordDecisions) -> anyhow::Result<()>;

/// What the first reading found in a source. The second reading has to find the same; otherwise a file that
/// has become shorter would not be noticed.
struct FirstReading<'s> {
    path: &'s Path,
    seen: Option<&'s Version>,
    met: SourceCounts,
    /// Records that the second reading has queried before this source.
    queried: QueriedRecords,
}

impl FirstReading<'_> {
    fn check_seen(&self, source: &InputSource) -> anyhow::Result<()> {
        let is_as_seen = |seen: &Version| source.version().is_some_and(|now| now.is_as_written(seen));
        let has_changed = !self.seen.is_none_or(is_as_seen);
        ensure!(!has_changed, "{} has changed since it was read first; begin anew", self.path.display());
        Ok(())
    }

    fn check_met(&self, copied: &Copied, decisions: &RecordDecisions) -> anyhow::Result<()> {
        let QueriedRecords { all, unusable } = decisions.queried();
        let pages = all - self.queried.all;
        let bad = copied.bad.saturating_sub(unusable - self.queried.unusable);
        let is_same = SourceCounts { pages, bad } == self.met;
        let told = |met: SourceCounts| {
            format!("{} and {}", plural(met.pages, "page"), plural(met.bad, "bad record"))
        };
        ensure!(
            is_same,
            "{} had {} when it was read first, and {} now; begin anew",
            self.path.display(),
            told(self.met),
            told(SourceCounts { pages, bad })
        );
        Ok(())
    }
}

impl Results {
    /// Copies all records to their sides. `now` is the time of the first reading, and `met` are the counts
    /// that it found.
    ///
    /// # Errors
    /// If a file cannot be written, an input has changed, or a foreign file is at the path of a result. Files
    /// that were finished before stay.
    pub fn write(
        &self,
        inputs: &InputArgs,
        (now, met): (Timestamp, &[SourceCounts]),
        mut decisions: RecordDecisions,
    ) -> anyhow::Result<Copied> {
        let sources = &inputs.sources()?.all;
        let is_same = sources.len() == self.places.len() && sources.len() == met.len();
        ensure!(is_same, "the inputs are others than at the first reading; run the command again");
        let options = inputs.records.fields.options(Limits::at(now));
        let bar = progress::bytes(sources.iter().map(|source| source.bytes).sum(), "writing");
        let mut copied = Copied::default();
        let earlier = EarlierResults::of(&self.dirs, self.is_collection, NamedInputs::of(&inputs.inputs))?;
        let mut writing = Writing { earlier, prepared: Prepared::default(), input: String::new() };
        for ((source, (place, seen)), met) in sources.iter().zip(&self.places).zip(met) {
            let path = source.path();
            let before = bar.position();
            let read = |bytes| bar.set_position(before + bytes);
            let first = FirstReading { path, seen: seen.as_ref(), met: *met, queried: decisions.queried() };
            first.check_seen(source)?;
            writing.input = earlier::name_of(source);
            let reading;
            match &source.kind {
                SourceKind::Standard => bail!("standard input cannot be read twice"),
                SourceKind::Object(_) => return Err(no_object(path).into()),
                SourceKind::Pages(dir) => {
                    let of = (&mut decisions, &read as &dyn Fn(u64));
                    let (here, is_whole) = self.directory((dir, place), &options, of, &mut writing)?;
                    first.check_met(&here, &decisions)?;
                    reading = if is_whole && here != Copied::default() {
                        Reading::Pages
                    } else {
                        Reading::PagesInPart
                    };
                    copied.add(&here);
                }
                SourceKind::File(path, name) => {
                    let is_as_it_was = |here: &Copied, decisions: &RecordDecisions| {
                        first.check_met(here, decisions)?;
                        first.check_seen(source)
                    };
                    let file = (&**path, name, &is_as_it_was as CheckUnchanged<'_>);
                    let of = (&mut decisions, &read as &dyn Fn(u64));
                    let here = self.file(file, place, &options, of, &mut writing)?;
                    reading = if here.is_some() { Reading::File } else { Reading::Bad };
                    copied.add(&here.unwrap_or(Copied { bad: 1, ..Copied::default() }));
                }
            }
            writing.earlier.note_input(std::mem::take(&mut writing.input), reading);
            bar.set_position(before + source.bytes);
        }
        bar.finish_and_clear();
        writing.earlier.end()?;
        Ok(copied)
    }

    /// Copies the records of a file. Returns `None` if the file cannot be opened in its format.
    fn file(
        &self,
        (path, name, is_as_it_was): (&Path, &RecordFile, CheckUnchanged<'_>),
        place: &Path,
        options: &InputOptions,
        (decisions, read): (&mut RecordDecisions, &dyn Fn(u64)),
        writing: &mut Writing,
    ) -> anyhow::Result<Option<Copied>> {
        let mut files: Vec<(CopySide, SideFile)> = Vec::new();
        let Sides { kept, removed, superseded } = &self.dirs;
        let sides =
            Sides { kept: kept.as_deref(), removed: removed.as_deref(), superseded: superseded.as_deref() };
        let sides = sides.try_map(|side, dir| {
            let path = dir.join(place);
            let file = writing.begin(dir, &path)?;
            files.push((side, (path, file.written())));
            Ok::<_, anyhow::Error>(BufWriter::with_capacity(BUFFER, file))
        })?;
        let mut judge = decisions.judge(read);
        let done = copy(path, name.clone(), options, sides, (&mut judge, self.annotate));
        drop(judge);
        let (copied, sides) = match done {
            Ok(done) => done,
            // The first reading has reported the file and found no page in it.
            Err(CopyError::Open(_)) => {
                let copied = Copied { bad: 1, ..Copied::default() };
                is_as_it_was(&copied, decisions)?;
                writing.earlier.note_side(place, None);
                return Ok(None);
            }
            Err(CopyError::Write(side, error)) => return Err(failed(side, error, &files)),
            Err(other) => return Err(other.into()),
        };
        is_as_it_was(&copied, decisions)?;
        sides.try_map(|side, out| {
            let file = out.into_inner().map_err(io::IntoInnerError::into_error);
            let finished = file.and_then(|file| writing.finish(file, side, place));
            finished.map_err(|error| failed(side, error, &files))
        })?;
        Ok(Some(copied))
    }

    /// Copies the files of a directory of pages. The result says as well whether the whole directory could be
    /// read.
    fn directory(
        &self,
        (dir, place): (&Path, &Path),
        options: &InputOptions,
        (decisions, read): (&mut RecordDecisions, &dyn Fn(u64)),
        writing: &mut Writing,
    ) -> anyhow::Result<(Copied, bool)> {
        let mut judge = decisions.judge(read);
        // The error of a file, with its path.
        let mut failure = None;
        let copied = copy_directory(dir, options, &mut judge, &mut |side, below, file| {
            let place = place.join(below);
            writing.earlier.note_side(&place, side);
            let Some(side) = side else { return Ok(()) };
            self.page(side, &place, file, writing).map_err(|error| {
                failure = Some(error);
                CopyError::Write(side, io::ErrorKind::Other.into())
            })
        });
        match (copied, failure) {
            (_, Some(failure)) => Err(failure),
            (Err(CopyError::Open(_)), None) => Ok((Copied { bad: 1, ..Copied::default() }, false)),
            (copied, None) => Ok(copied?),
        }
    }

    /// Copies the file of a page. A result of an earlier run on another side is removed at the end.
    fn page(&self, side: CopySide, place: &Path, file: &Path, writing: &mut Writing) -> anyhow::Result<()> {
        let Sides { kept, removed, superseded } = &self.dirs;
        let dir = match side {
            CopySide::Kept => kept,
            CopySide::Removed => removed,
            CopySide::Superseded => superseded,
        };
        let Some(dir) = dir else { return Ok(()) };
        let path = dir.join(place);
        let mut from = File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
        let mut part = writing.begin(dir, &path)?;
        let written = part.written();
        let copied = io::copy(&mut from, &mut part).and_then(|_| writing.finish(part, side, place));
        copied.map_err(|error| failed(side, error, &[(side, (path, written))]))
    }
}

/// The error for a file of a side that could not be written, with its path and the number of written bytes.
fn failed(side: CopySide, error: io::Error, files: &[(CopySide, SideFile)]) -> anyhow::Error {
    let Some((_, (path, written))) = files.iter().find(|(of, _)| *of == side) else {
        return anyhow!(error);
    };
    let bytes = count(written.load(Ordering::Relaxed));
    anyhow!(error).context(format!("cannot write {} past its first {bytes} bytes", path.display()))
}

fn cannot(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::{fs, iter};

    use doppel_contract::SubmissionOutcome;
    use doppel_model::PageUrl;
    use doppel_protocol::Line;

    use super::super::{ResultArgs, Verdicts};
    use super::*;

    #[test]
    fn a_changed_input_produces_no_file() {
        let home = tempfile::tempdir().unwrap();
        let (path, kept) = (home.path().join("a.jsonl"), home.path().join("kept"));
        let urls = ["http://a/0", "http://a/1"];
        fs::write(&path, urls.map(|url| format!("{{\"url\": \"{url}\", \"text\": \"x\"}}\n")).concat())
            .unwrap();
        let inputs = InputArgs::from(vec![path]);
        let args = ResultArgs { kept: Some(kept.clone()), ..ResultArgs::default() };
        let results = Results::check(&args, &inputs, &[], None).unwrap().unwrap();
        let write = |pages, bad| {
            let mut verdicts = Verdicts::default();
            for (number, url) in urls.into_iter().enumerate() {
                let page = PageUrl::parse(url).unwrap().id();
                verdicts.note((number as u64, None), (page, false), SubmissionOutcome::Pending);
            }
            let decisions = verdicts.decide(iter::empty::<Result<Line, Infallible>>(), false).unwrap();
            results.write(&inputs, (Timestamp::now(), &[SourceCounts { pages, bad }]), decisions)
        };
        for (pages, bad) in [(3, 0), (1, 0), (2, 1)] {
            let error = write(pages, bad).unwrap_err().to_string();
            assert!(
                error.ends_with("when it was read first, and 2 pages and 0 bad records now; begin anew"),
                "{error}"
            );
            assert_eq!(fs::read_dir(&kept).unwrap().count(), 0);
        }
        write(2, 0).unwrap();
        assert!(kept.join("a.jsonl").exists());
    }
}
