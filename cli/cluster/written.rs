//! The file of a cluster as it is written, and whether its parts go together.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use doppel_model::{RangeId, Tau};
use doppel_protocol::WinnerOrder;
use doppel_wire::NodeName;
use serde::{Deserialize, Serialize};

use super::{LogSettings, Node, Tier1Node, log};

/// The file as it is written.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Written {
    /// 32 hex digits.
    pub(crate) cluster: String,
    /// The file of the secret, beside this one.
    pub(crate) secret: PathBuf,
    pub(crate) tau: Tau,
    pub(crate) shards: u16,
    pub(crate) ranges: u16,
    #[serde(default)]
    pub(crate) winners: WinnerOrder,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) log: Option<LogSettings>,
    pub(crate) tier1: Vec<Tier1Node>,
    pub(crate) tier2: Vec<Node>,
}

/// Whether a text is a host and a port, as they are in a URL.
fn is_address(text: &str) -> bool {
    let written = format!("http://{text}/");
    let url = reqwest::Url::parse(&written).ok().filter(|url| url.as_str() == written);
    // Port 80 is not written in a URL.
    let port = text.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
    port.is_some_and(|port| port > 0)
        && url.is_some_and(|url| url.port() == port && url.username().is_empty())
}

impl Written {
    /// Whether its parts go together.
    ///
    /// # Errors
    /// When they do not; with the reason.
    pub(crate) fn check(&self) -> Result<(), String> {
        let is_id = self.cluster.len() == 32 && self.cluster.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_id {
            return Err("cluster: 32 hex digits are expected, as `doppel init` draws them".to_owned());
        }
        if !(1..=64).contains(&self.tier1.len()) {
            return Err("tier1: 1 to 64 nodes are expected".to_owned());
        }
        self.check_ranges()?;
        if let Some(log) = &self.log {
            log.check()?;
        }
        if !(1..=128).contains(&self.tier2.len()) {
            return Err("tier2: 1 to 128 nodes are expected".to_owned());
        }
        let tier1 = self.tier1.iter().map(|node| (&node.name, &node.address));
        let tier2 = self.tier2.iter().map(|node| (&node.name, &node.address));
        let mut seen: Vec<(&NodeName, &String)> = Vec::new();
        for (name, address) in tier1.chain(tier2) {
            if let Some((other, _)) = seen.iter().find(|other| other.0 == name || other.1 == address) {
                return Err(format!("{other} and {name} have the same name or address"));
            }
            if !is_address(address) {
                return Err(format!("{name}: {address:?} is no address such as 10.0.0.7:7801"));
            }
            seen.push((name, address));
        }
        Ok(())
    }

    /// Whether every range has one owner, and its replicas are on other nodes.
    fn check_ranges(&self) -> Result<(), String> {
        let mut owners = vec![None; usize::from(self.ranges)];
        for Tier1Node { name, ranges, standby, .. } in &self.tier1 {
            match (&self.log, ranges.is_empty(), standby.is_empty()) {
                (None, _, false) => {
                    return Err(format!("{name}: standby: without a table [log] nothing is replicated"));
                }
                (None, true, true) => return Err(format!("{name}: ranges: at least one is expected")),
                (Some(_), true, true) => {
                    return Err(format!("{name}: ranges or standby: at least one range is expected"));
                }
                _ => {}
            }
            for range in ranges {
                let owner = owners.get_mut(usize::from(range.0)).ok_or_else(|| {
                    format!("{name}: there is no range {range}; they are 0 to {}", self.ranges.max(1) - 1)
                })?;
                if let Some(other) = owner.replace(name) {
                    return Err(format!("range {range} is at {other} and at {name}"));
                }
            }
            for (at, range) in standby.iter().enumerate() {
                if range.0 >= self.ranges {
                    return Err(format!(
                        "{name}: standby: there is no range {range}; they are 0 to {}",
                        self.ranges.max(1) - 1
                    ));
                }
                if standby[..at].contains(range) {
                    return Err(format!("{name}: standby: range {range} is there twice"));
                }
                if ranges.contains(range) {
                    return Err(format!(
                        "{name}: standby: range {range} is among its own ranges; a standby is another node"
                    ));
                }
            }
        }
        match owners.iter().position(Option::is_none) {
            Some(range) => Err(format!("tier1: no node has range {range} in its ranges")),
            None => Ok(()),
        }
    }

    /// Whether the file, or its secret, is there already.
    pub(crate) fn is_there(&self, path: &Path) -> bool {
        path.exists() || path.with_file_name(&self.secret).exists()
    }

    /// The streams of all ranges, by their numbers.
    pub(crate) fn streams(&self) -> Vec<String> {
        (0..self.ranges).map(|range| log::stream(&self.cluster, RangeId(range))).collect()
    }

    /// Writes the file and a new secret beside it, which only its owner may read. Neither is replaced.
    ///
    /// # Errors
    /// When one of them is there, or cannot be written.
    pub(crate) fn create(&self, path: &Path, secret: &str) -> io::Result<()> {
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::create_dir_all(dir)?;
        let put = |path: &Path, text: &str| {
            // Readable by its owner alone from the beginning on.
            let mut file = tempfile::NamedTempFile::new_in(dir)?;
            io::Write::write_all(&mut file, text.as_bytes())?;
            file.as_file().sync_all()?;
            file.persist_noclobber(path)?;
            Ok::<(), io::Error>(())
        };
        if self.is_there(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let text = toml::to_string(self).map_err(io::Error::other)?;
        put(&dir.join(&self.secret), &format!("{secret}\n"))?;
        put(
            path,
            &format!(
                "# A cluster of Doppel. Every process reads a copy of this file and of the secret.\n{text}"
            ),
        )?;
        File::open(dir)?.sync_all()
    }
}
