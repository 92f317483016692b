//! Small files that are replaced as a whole.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Gives a file other contents in one step: after a crash, also of the machine, there are the ones or the others.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut file = File::create(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    sync_name(path)
}

/// Removes a file, if it is there.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(()) => sync_name(path),
    }
}

/// A name is durable when its directory is.
fn sync_name(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |dir| File::open(dir)?.sync_all())
}
