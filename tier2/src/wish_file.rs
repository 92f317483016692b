//! What an operator wishes of the mapping, on disk from when it is accepted until it is done: a crash does not forget it.

use std::fs;
use std::io;
use std::path::Path;

use doppel_common::api::Rebalance;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::replace;

/// The version of the file.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    doppel_wish: u32,
    wish: Rebalance,
}

/// The stored wish, if there is one. A damaged one is reported and left out.
pub(crate) fn read(path: &Path) -> Option<Rebalance> {
    parse(path).unwrap_or_else(|error| {
        tracing::warn!(path = %path.display(), %error, "the wish for the mapping is damaged and left out");
        None
    })
}

/// Why a file cannot be used; none for a sound one, or where there is none.
pub(crate) fn damage(path: &Path) -> Option<String> {
    parse(path).err().map(|error| error.to_string())
}

fn parse(path: &Path) -> io::Result<Option<Rebalance>> {
    let text = match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        text => text?,
    };
    let document: Document = serde_json::from_slice(&text)?;
    if document.doppel_wish != VERSION {
        let text = format!("it is of version {}, this reads {VERSION}", document.doppel_wish);
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    Ok(Some(document.wish))
}

/// Stores a wish in the place of an earlier one.
pub(crate) fn write(path: &Path, wish: Rebalance) -> Result<(), Error> {
    let fail = |error| Error::io("write the wish for the mapping", path, error);
    let document = Document { doppel_wish: VERSION, wish };
    let text = serde_json::to_string(&document).map_err(|error| fail(error.into()))?;
    replace::replace(path, &text).map_err(fail)
}

/// The wish is done, or will never be.
pub(crate) fn end(path: &Path) {
    if let Err(error) = replace::remove(path) {
        tracing::error!(path = %path.display(), %error, "cannot remove a wish that is done; the next start finds it done");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_until_it_ends_and_damage_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("wish.json");
        assert_eq!((read(&path), damage(&path)), (None, None));
        for wish in [
            Rebalance::Balance,
            Rebalance::Learn,
            Rebalance::Drain { node: 3 },
            Rebalance::Join { node: 0 },
            Rebalance::Move { partition: 9, node: 1 },
        ] {
            write(&path, wish).unwrap();
            assert_eq!((read(&path), damage(&path)), (Some(wish), None));
        }
        end(&path);
        end(&path);
        assert_eq!(read(&path), None);
        for text in ["", "{}", r#"{"doppel_wish":2,"wish":{"wish":"balance"}}"#] {
            fs::write(&path, text).unwrap();
            assert!(read(&path).is_none() && damage(&path).is_some(), "{text}");
        }
    }
}
