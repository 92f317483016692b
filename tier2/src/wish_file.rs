//! What is wished of the mapping, on disk from when it is accepted until it is done: a crash does not forget it.
//!
//! A crash between the plan that a wish asks for and the end of the wish has it carried out again, which changes nothing
//! but takes its time where a map is learned.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::Path;

use doppel_protocol::Rebalance;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::replace;

/// The version of the file.
const VERSION: u32 = 1;

/// Wishes, the first one first: of an operator one at a time, and of a start with another number of nodes.
pub(crate) type Wishes = VecDeque<Rebalance>;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    doppel_wishes: u32,
    wishes: Wishes,
}

/// The stored wishes. A damaged file is reported and put aside.
pub(crate) fn read(path: &Path) -> Wishes {
    parse(path).unwrap_or_else(|error| {
        let aside = path.with_extension("damaged");
        tracing::error!(path = %path.display(), aside = %aside.display(), %error,
            "what was wished of the mapping cannot be read; wish it again");
        if let Err(error) = fs::rename(path, &aside) {
            tracing::warn!(%error, "it cannot be put aside");
        }
        Wishes::new()
    })
}

/// Why a file cannot be used; none for a sound one, or where there is none.
pub(crate) fn damage(path: &Path) -> Option<String> {
    parse(path).err().map(|error| error.to_string())
}

fn parse(path: &Path) -> io::Result<Wishes> {
    let text = match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Wishes::new()),
        text => text?,
    };
    let document: Document = serde_json::from_slice(&text)?;
    if document.doppel_wishes != VERSION {
        let text = format!("it is of version {}, this reads {VERSION}", document.doppel_wishes);
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    Ok(document.wishes)
}

/// Stores these wishes and no others.
pub(crate) fn write(path: &Path, wishes: &Wishes) -> Result<(), Error> {
    let fail = |error| Error::io("write the wishes for the mapping", path, error);
    if wishes.is_empty() {
        return replace::remove(path).map_err(fail);
    }
    let document = Document { doppel_wishes: VERSION, wishes: wishes.clone() };
    let text = serde_json::to_string(&document).map_err(|error| fail(error.into()))?;
    replace::replace(path, &text).map_err(fail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_until_they_end_and_damage_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("wish.json");
        assert_eq!((read(&path), damage(&path)), (Wishes::new(), None));
        let mut wishes = Wishes::from([
            Rebalance::Balance,
            Rebalance::Learn,
            Rebalance::Drain { node: 3 },
            Rebalance::Join { node: 0 },
            Rebalance::Move { partition: 9, node: 1 },
        ]);
        while !wishes.is_empty() {
            write(&path, &wishes).unwrap();
            assert_eq!((&read(&path), damage(&path)), (&wishes, None));
            wishes.pop_front();
        }
        write(&path, &wishes).unwrap();
        write(&path, &wishes).unwrap();
        assert!(!path.exists());
        for text in ["", "{}", r#"{"doppel_wishes":2,"wishes":[]}"#] {
            fs::write(&path, text).unwrap();
            assert!(damage(&path).is_some() && read(&path).is_empty(), "{text}");
            assert!(!path.exists() && dir.path().join("wish.damaged").exists(), "{text}");
        }
    }
}
