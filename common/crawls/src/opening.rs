//! Opens inputs: files and directories by their path, and pipes, which are read once.

use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::Arc;

use super::columns::Rows;
use super::delimited::Delimited;
use super::directory::{self, Files};
use super::error::{InputError, Place, Reason};
use super::format::{self, Format};
use super::lines::Lines;
use super::record::RecordFile;
use super::stream::Stream;
use super::wacz::Wacz;
use super::warc::{Form, Pages};
use super::{Input, InputOptions, Source, modified};

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
        return Ok(Input { source: files, modified, bytes_total: directory::size(path) });
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
        file_source(&shared, &shared, format, (name, options.clone()))
    };
    Ok(Input { source: open().map_err(fail)?, modified, bytes_total: metadata.len() })
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
        let source = file_source(&path.into(), &shared, format, (name, options))?;
        Ok(Input { source, modified: modified(&metadata).min(limits.now), bytes_total: metadata.len() })
    };
    open().map_err(|reason| InputError::new(&shared, Place::File, reason))
}

/// What reads a file of this format that is at `path` and called `shown`.
fn file_source(
    path: &Arc<Path>,
    shown: &Arc<Path>,
    format: Format,
    records: (RecordFile, InputOptions),
) -> Result<Source, Reason> {
    let stream = Stream::open(path, &records.1.limits)?;
    let form = match format {
        Format::Warc => Some(Form::Warc),
        Format::Arc => Some(Form::Arc),
        _ => None,
    };
    if let Some(form) = form {
        return Ok(Source::Warc(Box::new(Pages::new(form, (shown, path), stream, records.1.limits))));
    }
    source(shown, (format, stream), |_| File::open(path).map_err(Reason::Io), records)
}

/// Reads a pipe, such as standard input, or anything else that can be read once, which is called `path`. Of WARC those revisits are skipped that refer to the content of
/// another record, because a pipe cannot go back. Formats that are read from their end are copied to a temporary file.
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
    let open = || -> Result<Source, Reason> {
        let mut stream = Stream::once(from, &options.limits)?;
        let format = format::of(path, options.format, &mut stream)?;
        source(&shared, (format, stream), spooled, (name, options))
    };
    let source = open().map_err(|reason| InputError::new(&shared, Place::File, reason))?;
    Ok(Input { source, modified, bytes_total: 0 })
}

/// What reads a stream of this format. `file` gives the file for a format that is read from its end.
fn source(
    path: &Arc<Path>,
    (format, stream): (Format, Stream),
    file: impl FnOnce(Stream) -> Result<File, Reason>,
    records: (RecordFile, InputOptions),
) -> Result<Source, Reason> {
    Ok(match format {
        Format::Warc => {
            Source::Warc(Box::new(Pages::new(Form::Warc, (path, path), stream, records.1.limits)))
        }
        Format::Arc => Source::Warc(Box::new(Pages::new(Form::Arc, (path, path), stream, records.1.limits))),
        Format::Lines => Source::Lines(Box::new(Lines::new(path, stream, records.0, records.1))),
        Format::Delimited(separator) => {
            Source::Delimited(Box::new(Delimited::new(path, stream, separator, records)?))
        }
        Format::Parquet => Source::Columns(Box::new(Rows::parquet(path, file(stream)?, records)?)),
        Format::ArrowFile => Source::Columns(Box::new(Rows::arrow_file(path, file(stream)?, records)?)),
        Format::ArrowStream => Source::Columns(Box::new(Rows::arrow_stream(path, stream, records)?)),
        Format::Wacz => Source::Wacz(Box::new(Wacz::new(path, file(stream)?, records.1.limits)?)),
        Format::Page(_) => return Err(Reason::PageInPipe),
    })
}

/// A copy of a stream, in a file that has no name.
fn spooled(mut stream: Stream) -> Result<File, Reason> {
    let mut file = tempfile::tempfile().map_err(Reason::Io)?;
    loop {
        let data = stream.data()?;
        let bytes = data.len();
        if bytes == 0 {
            break;
        }
        file.write_all(data).map_err(Reason::Io)?;
        stream.consume(bytes);
    }
    file.rewind().map_err(Reason::Io)?;
    Ok(file)
}

#[cfg(test)]
mod tests;
