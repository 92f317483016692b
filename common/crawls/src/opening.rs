//! Opens inputs and chooses the reader for their format.
//!
//! [`open`], [`open_as`] and [`open_copy`] open a path, and [`open_pipe`] reads a source that cannot seek.
//! The module decides when an input must be read more than once. A Parquet, Arrow or WACZ file is read from
//! its end. A guessed id field is checked over the whole file before it names a record. A pipe in either case
//! is first copied to a temporary file.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::Arc;

use super::columns::Rows;
use super::delimited::Delimited;
use super::directory::{self, Files};
use super::format::{self, Format};
use super::lines::Lines;
use super::record::{Field, OpenIdRows, RecordFile, Records, Setup};
use super::wacz::Wacz;
use super::warc::{ArchiveFormat, FilePaths, Pages};
use super::{Input, InputOptions, Item, Source, modified};
use doppel_streams::{InputError, InputPosition, Reason, Stream, TeeReader};

use tempfile::NamedTempFile;

/// Opens a file or directory, or the reading end of a named pipe. The format comes from the options, else
/// from the file name, else from the first bytes.
///
/// # Errors
/// If the path cannot be opened, or its format is not supported.
pub fn open(path: &Path, options: impl Into<InputOptions>) -> Result<Input, InputError> {
    open_as(path, RecordFile::single(path), options)
}

/// Like [`open`], but names records without a URL by `name`.
///
/// # Errors
/// If the path cannot be opened, or its format is not supported.
pub fn open_as(path: &Path, name: RecordFile, options: impl Into<InputOptions>) -> Result<Input, InputError> {
    let options = options.into();
    let limits = options.limits;
    let shared: Arc<Path> = path.into();
    let fail = |reason| InputError::new(&shared, InputPosition::File, reason);
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
        let format = format::detect(path, options.format, &mut Stream::open(path, &limits)?)?;
        if let Format::Page(kind) = format {
            return Ok(Source::Files(Box::new(Files::single(path, kind, limits))));
        }
        reader_of_file(FilePaths { stored: &shared, shown: &shared }, format, name, options.clone())
    };
    Ok(Input { source: open().map_err(fail)?, modified, first: None, bytes_total: metadata.len() })
}

/// Opens the file at `path`, which is a copy of the pipe called `of`. Refuses the inputs that [`open_pipe`]
/// refuses. The modification time is that of the copy.
///
/// # Errors
/// If the copy cannot be opened, or its format is not supported, or it is a page of HTML or text.
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
        let format = format::detect(of, options.format, &mut Stream::open(path, &limits)?)?;
        let paths = FilePaths { stored: &path.into(), shown: &shared };
        let source = reader_of_file(paths, format, name, options)?;
        Ok(Input {
            source,
            modified: modified(&metadata).min(limits.now),
            first: None,
            bytes_total: metadata.len(),
        })
    };
    open().map_err(|reason| InputError::new(&shared, InputPosition::File, reason))
}

/// Creates the reader for a file of the given format.
fn reader_of_file(
    paths: FilePaths<'_>,
    format: Format,
    file: RecordFile,
    options: InputOptions,
) -> Result<Source, Reason> {
    let archive_format = match format {
        Format::Warc => Some(ArchiveFormat::Warc),
        Format::Arc => Some(ArchiveFormat::Arc),
        _ => None,
    };
    if let Some(archive_format) = archive_format {
        let stream = Stream::open(paths.stored, &options.limits)?;
        return Ok(Source::Warc(Box::new(Pages::new(archive_format, paths, stream, &options))));
    }
    let stored = Arc::clone(paths.stored);
    reader_of_reopenable(paths.shown, format, Arc::new(move || File::open(&stored)), (file, options))
}

/// Opens a file from its beginning, any number of times.
type Reopen = Arc<dyn Fn() -> io::Result<File> + Send + Sync>;

/// Creates the reader for a file of records that can be opened any number of times.
fn reader_of_reopenable(
    shown: &Arc<Path>,
    format: Format,
    reopen: Reopen,
    (file, options): (RecordFile, InputOptions),
) -> Result<Source, Reason> {
    let open = {
        let shown = Arc::clone(shown);
        move |setup: Setup| -> Result<Source, Reason> {
            let stream = Stream::from_file(reopen().map_err(Reason::Io)?, &setup.options.limits)?;
            reader_of_stream(&shown, (format, stream), |_| reopen().map_err(Reason::Io), setup)
        }
    };
    let setup = Setup { file, options, open_ids: None };
    let open_ids: OpenIdRows = {
        let (open, setup) = (open.clone(), setup.clone());
        Arc::new(move || open(setup.clone())?.into_id_rows())
    };
    open(Setup { open_ids: Some(open_ids), ..setup })
}

/// Opens a source that can be read only once, such as standard input, and calls it `path`.
///
/// A pipe cannot go back. A WARC reader therefore skips revisits that refer to the content of another record.
/// Formats that are read from their end are copied to a temporary file. Records without a URL that a guessed
/// id would name are copied too, because the reader checks all ids before it names a record.
///
/// # Errors
/// If the format is not supported, or the input is a page of HTML or text.
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
        let tee = if is_guessed { TeeReader::copying(from)? } else { TeeReader::new(from) };
        let mut stream = Stream::unseekable(tee.clone(), &options.limits)?;
        let format = format::detect(path, options.format, &mut stream)?;
        if let Format::Parquet | Format::ArrowFile | Format::Wacz = format {
            tee.stop_copying();
            let copy = copy_to_temp_file(stream)?;
            let reopen = Arc::new(move || copy.reopen());
            return Ok((reader_of_reopenable(&shared, format, reopen, (name, options))?, None));
        }
        let setup = Setup { file: name.clone(), options: options.clone(), open_ids: None };
        let mut source = reader_of_stream(&shared, (format, stream), |_| Err(Reason::PageInPipe), setup)?;
        if matches!(format, Format::Warc | Format::Arc) || !is_guessed {
            tee.stop_copying();
            return Ok((source, None));
        }
        let first = source.next();
        // The reader knows only after the whole file whether a guessed id names the records.
        if !matches!(&first, Some(Item::Fields(map)) if Records::needs_id_check(map, &name, &options)) {
            tee.stop_copying();
            return Ok((source, first));
        }
        drop(source);
        let Some(copy) = tee.take_whole_copy().map_err(Reason::Io)? else { return Err(Reason::Truncated) };
        let reopen = Arc::new(move || copy.reopen());
        Ok((reader_of_reopenable(&shared, format, reopen, (name, options))?, None))
    };
    let (source, first) = open().map_err(|reason| InputError::new(&shared, InputPosition::File, reason))?;
    Ok(Input { source, first, modified, bytes_total: 0 })
}

/// Creates the reader for a stream of the given format. For a format that is read from its end, `file` turns
/// the stream into a file.
fn reader_of_stream(
    path: &Arc<Path>,
    (format, stream): (Format, Stream),
    file: impl FnOnce(Stream) -> Result<File, Reason>,
    setup: Setup,
) -> Result<Source, Reason> {
    let paths = FilePaths { stored: path, shown: path };
    Ok(match format {
        Format::Warc => {
            Source::Warc(Box::new(Pages::new(ArchiveFormat::Warc, paths, stream, &setup.options)))
        }
        Format::Arc => Source::Warc(Box::new(Pages::new(ArchiveFormat::Arc, paths, stream, &setup.options))),
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

/// Copies the unpacked bytes of a stream to a temporary file.
fn copy_to_temp_file(mut stream: Stream) -> Result<NamedTempFile, Reason> {
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
