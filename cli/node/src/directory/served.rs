//! A file in a data directory that names the server that uses it, for the messages of commands that find the
//! directory in use.
//!
//! The file is only a hint: the lock of the storage engine decides whether the directory is in use. A killed
//! server leaves the file behind, and the next server replaces it.

use std::fs;
use std::path::{Path, PathBuf};

use doppel_tier1::StoreError;

const NAME: &str = "served-at";

/// The file that names the server. Dropping this removes the file.
#[derive(Debug)]
pub struct Served(PathBuf);

impl Served {
    /// Writes the file with the URL at which this process listens. If it cannot be written, there is no hint.
    pub fn at(dir: &Path, url: &str) -> Self {
        let path = dir.join(NAME);
        if let Err(error) = fs::write(&path, format!("{} {url}\n", std::process::id())) {
            tracing::debug!(%error, "cannot write the file that tells other commands which server has the directory");
        }
        Self(path)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// The process that serves a directory, and its address, if that is known.
fn server(dir: &Path) -> Option<(u32, String)> {
    let noted = fs::read_to_string(dir.join(NAME)).ok()?;
    let (process, address) = noted.trim_end().split_once(' ')?;
    let process = process.parse().ok()?;
    // A process that has ended may have left the file behind.
    let is_there = !Path::new("/proc/self").exists() || Path::new(&format!("/proc/{process}")).exists();
    is_there.then(|| (process, address.to_owned()))
}

/// Adds the name of the server to an error, if the error says that another process uses the directory.
pub fn name_server(dir: &Path, error: anyhow::Error) -> anyhow::Error {
    let is_in_use = error.chain().any(|cause| {
        matches!(cause.downcast_ref(), Some(StoreError::InUse))
            || matches!(cause.downcast_ref(), Some(doppel_tier1::Error::Store(StoreError::InUse)))
    });
    match server(dir).filter(|_| is_in_use) {
        Some((process, address)) => error.context(format!(
            "{} is open in the server at {address} (process {process}): ask that server, as with \
             `doppel backup --server {address} --out FILE`",
            dir.display()
        )),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_while_it_has_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        let named = |error| format!("{:#}", name_server(dir.path(), anyhow::Error::from(error)));
        assert!(named(StoreError::InUse).starts_with("another process uses it"));
        let served = Served::at(dir.path(), "http://127.0.0.1:7700");
        let said = named(StoreError::InUse);
        assert!(said.contains("`doppel backup --server http://127.0.0.1:7700 --out FILE`"), "{said}");
        assert!(said.contains(&format!("(process {})", std::process::id())), "{said}");
        assert!(!named(StoreError::DiskFull).contains("7700"));
        drop(served);
        assert!(named(StoreError::InUse).starts_with("another process uses it"));
        fs::write(dir.path().join(NAME), format!("{} http://127.0.0.1:7700\n", u32::MAX)).unwrap();
        assert!(named(StoreError::InUse).starts_with("another process uses it"));
    }
}
