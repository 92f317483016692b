//! Opens inputs: files and directories by their path, and pipes, which are read once.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::Arc;

use super::columns::Rows;
use super::delimited::Delimited;
use super::directory::{self, Files};
use super::error::{InputError, Place, Reason};
use super::format::{self, Format};
use super::lines::Lines;
use super::record::{Again, Field, RecordFile, Records, Setup};
use super::stream::Stream;
use super::teed::Teed;
use super::wacz::Wacz;
use super::warc::{Form, Pages};
use super::{Input, InputOptions, Item, Source, modified};

use tempfile::NamedTempFile;

/// Opens a file or directory, or the reading end of a named pipe. The format is that of the options, or else taken from the
/// file name, or else from the first bytes.
///
/// # Errors
/// When the path cannot be opened, or its format is not supported.
pub fn open(path: &Path, options: impl Into<InputOptions>) -> Result<Input, InputError> {
    open_as(path, RecordFile::single(path), options)
}

/// The same; records that have no URL are named by `name`.
///
/// # Errors
/// The same.
pub fn open_as(path: &Path, name: RecordFile, options: impl Into<InputOptions>) -> Result<Input, InputError> {
    let options = options.into();
    let limits = options.limits;
    let shared: Arc<Path> = path.into();
    let fail = |reason| InputError::new(&shared, Place::File, reason);
    let metadata = fs::metadata(path).map_err(|e| fail(Reason::Io(e)))?;
    let modified = modified(&metadata).min(limits.now);
    if metadata.is_dir() {
        let files = Source::Files(Box::new(Files::below(path, limits)));
        return Ok(Input { source: files, modified, first: None, bytes_total: directory::size(path) });
    }
    if metadata.file_type().is_fifo() {
        let file = File::open(path).map_err(|error| fail(Reason::Io(error)))?;
        return open_pipe(file, path, name, options);
    }
    if !metadata.is_file() {
        return Err(fail(Reason::FileKind));
    }
    let open = || -> Result<Source, Reason> {
        let format = format::of(path, options.format, &mut Stream::open(path, &limits)?)?;
        if let Format::Page(kind) = format {
            return Ok(Source::Files(Box::new(Files::single(path, kind, limits))));
        }
        file_source((&shared, &shared), format, (name, options.clone()))
    };
    Ok(Input { source: open().map_err(fail)?, modified, first: None, bytes_total: metadata.len() })
}

/// Opens the file at `path`, a copy of something that can be read once, which is called `of`. What a pipe cannot hold is refused here, too. Its
/// modification time is that of the copy.
///
/// # Errors
/// When the copy cannot be opened, or its format is not supported, or is a page of HTML or text.
pub fn open_copy(
    path: &Path,
    of: &Path,
    name: RecordFile,
    options: impl Into<InputOptions>,
) -> Result<Input, InputError> {
    let options = options.into();
    let limits = options.limits;
    let shared: Arc<Path> = of.into();
    let open = || -> Result<Input, Reason> {
        let metadata = fs::metadata(path).map_err(Reason::Io)?;
        let format = format::of(of, options.format, &mut Stream::open(path, &limits)?)?;
        let source = file_source((&path.into(), &shared), format, (name, options))?;
        Ok(Input {
            source,
            modified: modified(&metadata).min(limits.now),
            first: None,
            bytes_total: metadata.len(),
        })
    };
    open().map_err(|reason| InputError::new(&shared, Place::File, reason))
}

/// What reads a file of this format that is at `path` and called `shown`.
fn file_source(
    (path, shown): (&Arc<Path>, &Arc<Path>),
    format: Format,
    (file, options): (RecordFile, InputOptions),
) -> Result<Source, Reason> {
    let form = match format {
        Format::Warc => Some(Form::Warc),
        Format::Arc => Some(Form::Arc),
        _ => None,
    };
    if let Some(form) = form {
        let stream = Stream::open(path, &options.limits)?;
        return Ok(Source::Warc(Box::new(Pages::new(form, (shown, path), stream, &options))));
    }
    let copy = Arc::clone(path);
    records_of(shown, format, Arc::new(move || File::open(&copy)), (file, options))
}

/// Opens a file once more.
type Reopen = Arc<dyn Fn() -> io::Result<File> + Send + Sync>;

/// What reads the records of a file of this format that can be opened any number of times.
fn records_of(
    shown: &Arc<Path>,
    format: Format,
    reopen: Reopen,
    (file, options): (RecordFile, InputOptions),
) -> Result<Source, Reason> {
    let open = {
        let shown = Arc::clone(shown);
        move |setup: Setup| -> Result<Source, Reason> {
            let stream = Stream::of_file(reopen().map_err(Reason::Io)?, &setup.options.limits)?;
            source(&shown, (format, stream), |_| reopen().map_err(Reason::Io), setup)
        }
    };
    let setup = Setup { file, options, again: None };
    let again: Again = {
        let (open, setup) = (open.clone(), setup.clone());
        Arc::new(move || open(setup.clone())?.into_id_rows())
    };
    open(Setup { again: Some(again), ..setup })
}

/// Reads a pipe, such as standard input, or anything else that can be read once, which is called `path`. Of WARC those revisits are skipped that refer to the content of
/// another record, because a pipe cannot go back. Formats that are read from their end are copied to a temporary file, and so are records that are
/// named by an id that is guessed, because all ids are read before a record is named.
///
/// # Errors
/// When the format is not supported, or is a page of HTML or text.
pub fn open_pipe(
    from: impl Read + Send + 'static,
    path: &Path,
    name: RecordFile,
    options: impl Into<InputOptions>,
) -> Result<Input, InputError> {
    let options = options.into();
    let modified = options.limits.now;
    let shared: Arc<Path> = path.into();
    let open = || -> Result<(Source, Option<Item>), Reason> {
        let is_guessed = options.fields.path(Field::Id).is_none() && !options.fields.is_off(Field::Id);
        let teed = if is_guessed { Teed::copying(from)? } else { Teed::new(from) };
        let mut stream = Stream::once(teed.clone(), &options.limits)?;
        let format = format::of(path, options.format, &mut stream)?;
        if let Format::Parquet | Format::ArrowFile | Format::Wacz = format {
            teed.stop();
            let copy = spooled(stream)?;
            let reopen = Arc::new(move || copy.reopen());
            return Ok((records_of(&shared, format, reopen, (name, options))?, None));
        }
        let setup = Setup { file: name.clone(), options: options.clone(), again: None };
        let mut source = source(&shared, (format, stream), |_| Err(Reason::PageInPipe), setup)?;
        if matches!(format, Format::Warc | Format::Arc) || !is_guessed {
            teed.stop();
            return Ok((source, None));
        }
        let first = source.next();
        // Whether a guessed id names the records is known when all of them were read.
        if !matches!(&first, Some(Item::Fields(map)) if Records::needs_again(map, &name, &options)) {
            teed.stop();
            return Ok((source, first));
        }
        drop(source);
        let Some(copy) = teed.whole().map_err(Reason::Io)? else { return Err(Reason::Truncated) };
        let reopen = Arc::new(move || copy.reopen());
        Ok((records_of(&shared, format, reopen, (name, options))?, None))
    };
    let (source, first) = open().map_err(|reason| InputError::new(&shared, Place::File, reason))?;
    Ok(Input { source, first, modified, bytes_total: 0 })
}

/// What reads a stream of this format. `file` gives the file for a format that is read from its end.
fn source(
    path: &Arc<Path>,
    (format, stream): (Format, Stream),
    file: impl FnOnce(Stream) -> Result<File, Reason>,
    setup: Setup,
) -> Result<Source, Reason> {
    Ok(match format {
        Format::Warc => Source::Warc(Box::new(Pages::new(Form::Warc, (path, path), stream, &setup.options))),
        Format::Arc => Source::Warc(Box::new(Pages::new(Form::Arc, (path, path), stream, &setup.options))),
        Format::Lines => Source::Lines(Box::new(Lines::new(path, stream, setup))),
        Format::Delimited(separator) => {
            Source::Delimited(Box::new(Delimited::new(path, stream, separator, setup)?))
        }
        Format::Parquet => Source::Columns(Box::new(Rows::parquet(path, file(stream)?, setup)?)),
        Format::ArrowFile => Source::Columns(Box::new(Rows::arrow_file(path, file(stream)?, setup)?)),
        Format::ArrowStream => Source::Columns(Box::new(Rows::arrow_stream(path, stream, setup)?)),
        Format::Wacz => Source::Wacz(Box::new(Wacz::new(path, file(stream)?, setup.options)?)),
        Format::Page(_) => return Err(Reason::PageInPipe),
    })
}

/// A copy of a stream.
fn spooled(mut stream: Stream) -> Result<NamedTempFile, Reason> {
    let mut file = NamedTempFile::new().map_err(Reason::Io)?;
    loop {
        let data = stream.data()?;
        let bytes = data.len();
        if bytes == 0 {
            break;
        }
        file.write_all(data).map_err(Reason::Io)?;
        stream.consume(bytes);
    }
    Ok(file)
}

#[cfg(test)]
mod tests;
