//! What is requested of the mapping, on disk from when it is accepted until it is done: a crash does not forget it.
//!
//! A crash between the plan that a request asks for and the end of the request has it carried out again, which changes
//! nothing but takes its time where a map is learned.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::Path;

use doppel_protocol::RebalanceRequest;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::replace;

/// The version of the file.
const VERSION: u32 = 1;

/// Requests, the first one first: of an operator one at a time, and of a start with another number of nodes.
pub(crate) type RebalanceRequests = VecDeque<RebalanceRequest>;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RebalanceFile {
    doppel_rebalance: u32,
    requests: RebalanceRequests,
}

/// The stored requests. A damaged file is reported and put aside.
pub(crate) fn read(path: &Path) -> RebalanceRequests {
    parse(path).unwrap_or_else(|error| {
        let aside = path.with_extension("damaged");
        tracing::error!(path = %path.display(), aside = %aside.display(), %error,
            "what was requested of the mapping cannot be read; request it again");
        if let Err(error) = fs::rename(path, &aside) {
            tracing::warn!(%error, "it cannot be put aside");
        }
        RebalanceRequests::new()
    })
}

/// Why a file cannot be used; none for a sound one, or where there is none.
pub(crate) fn damage(path: &Path) -> Option<String> {
    parse(path).err().map(|error| error.to_string())
}

fn parse(path: &Path) -> io::Result<RebalanceRequests> {
    let text = match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(RebalanceRequests::new()),
        text => text?,
    };
    let document: RebalanceFile = serde_json::from_slice(&text)?;
    if document.doppel_rebalance != VERSION {
        let text = format!("it is of version {}, this reads {VERSION}", document.doppel_rebalance);
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    Ok(document.requests)
}

/// Stores these requests and no others.
pub(crate) fn write(path: &Path, requests: &RebalanceRequests) -> Result<(), Error> {
    let fail = |error| Error::io("write the requests for the mapping", path, error);
    if requests.is_empty() {
        return replace::remove(path).map_err(fail);
    }
    let document = RebalanceFile { doppel_rebalance: VERSION, requests: requests.clone() };
    let text = serde_json::to_string(&document).map_err(|error| fail(error.into()))?;
    replace::replace(path, &text).map_err(fail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_until_they_end_and_damage_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("request.json");
        assert_eq!((read(&path), damage(&path)), (RebalanceRequests::new(), None));
        let mut requests = RebalanceRequests::from([
            RebalanceRequest::Balance,
            RebalanceRequest::Learn,
            RebalanceRequest::Drain { node: 3 },
            RebalanceRequest::Join { node: 0 },
            RebalanceRequest::Move { partition: 9, node: 1 },
        ]);
        while !requests.is_empty() {
            write(&path, &requests).unwrap();
            assert_eq!((&read(&path), damage(&path)), (&requests, None));
            requests.pop_front();
        }
        write(&path, &requests).unwrap();
        write(&path, &requests).unwrap();
        assert!(!path.exists());
        for text in ["", "{}", r#"{"doppel_rebalance":2,"requests":[]}"#] {
            fs::write(&path, text).unwrap();
            assert!(damage(&path).is_some() && read(&path).is_empty(), "{text}");
            assert!(!path.exists() && dir.path().join("request.damaged").exists(), "{text}");
        }
    }
}
