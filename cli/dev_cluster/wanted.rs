//! What a cluster on this machine is to be: how many processes it has, how its ranges are dealt out, and whether the one in a
//! directory is like that.

use anyhow::ensure;
use doppel_model::RangeId;
use doppel_tier1::Settlement;

use super::{DevCluster, FILE, Process, Role, log_servers};
use crate::cluster::file::Contents;
use crate::cluster::{ClusterFile, Description, Node};
use crate::command::init::Init;

/// How many processes a new cluster has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counts {
    pub(crate) tier1: u16,
    pub(crate) tier2: u16,
    pub(crate) coordinators: u16,
    pub(crate) log: u16,
}

impl Counts {
    pub(super) fn of_roles(self) -> [(Role, &'static str, u16); 4] {
        let Self { tier1, tier2, coordinators, log } = self;
        [
            (Role::Log, "log", log),
            (Role::Tier1, "record", tier1),
            (Role::Tier2, "index", tier2),
            (Role::Coordinator, "front", coordinators),
        ]
    }
}

/// How the ranges of a cluster are dealt out; what is not said is as `doppel init` has it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dealt {
    pub(crate) ranges: Option<u16>,
    pub(crate) replicas: Option<u16>,
    pub(crate) log_max_bytes: Option<u64>,
    /// As the program of the log servers allows it.
    pub(crate) settlement: Settlement,
}

impl DevCluster {
    /// Whether it is what is wanted.
    pub(super) fn check(&self, counts: Counts) -> anyhow::Result<()> {
        let found = counts.of_roles().map(|(role, ..)| self.of(role).count());
        let [log, tier1, tier2, coordinators] = found;
        ensure!(
            found == counts.of_roles().map(|(.., count)| usize::from(count)),
            "{} has a cluster of --tier1 {tier1} --tier2 {tier2} --coordinators {coordinators} --log-servers {log}; give \
             these, or another directory",
            self.dir.display(),
        );
        Ok(())
    }

    /// Whether it is described as is wanted.
    fn check_dealt(&self, description: &Description, dealt: Dealt) -> anyhow::Result<()> {
        let ranges = description.ranges;
        let replicas = description.replicas_of(RangeId(0)).len();
        let is_same = dealt.ranges.is_none_or(|wanted| wanted == ranges)
            && dealt.replicas.is_none_or(|wanted| usize::from(wanted) == replicas)
            && dealt
                .log_max_bytes
                .is_none_or(|wanted| description.log.as_ref().is_some_and(|log| log.max_bytes == wanted));
        ensure!(
            is_same,
            "{} has a cluster of --ranges {ranges} --replicas {replicas}, or its streams are of another length; give the \
             same, or another directory",
            self.dir.display()
        );
        Ok(())
    }

    /// What makes the files of the cluster.
    pub(super) fn init(&self, dealt: Dealt) -> anyhow::Result<Init> {
        let Dealt { ranges, replicas, log_max_bytes, .. } = dealt;
        let nodes = |role| -> anyhow::Result<Vec<Node>> {
            let node =
                |process: &Process| Ok(Node { name: process.name.parse()?, address: process.address() });
            self.of(role).map(node).collect()
        };
        let init = Init::of(self.dir.join(FILE), nodes(Role::Tier1)?, nodes(Role::Tier2)?);
        let init = init.with(ranges, replicas);
        if !self.has_log() {
            return Ok(init);
        }
        let log_max_bytes = log_max_bytes.unwrap_or(log_servers::STREAM_BYTES);
        Ok(init.with_log(self.log_urls(), self.log_monitors(), log_max_bytes))
    }

    /// Makes what the nodes need while the log servers run: the files of a new cluster and its streams. Those of an old
    /// one are waited for.
    ///
    /// # Errors
    /// When they cannot be made, or do not answer, or the cluster is another than is wanted.
    pub(crate) fn ready(&self, dealt: Dealt) -> anyhow::Result<()> {
        let file = self.dir.join(FILE);
        if !file.exists() {
            return self.init(dealt)?.create(log_servers::PATIENCE, &|_| {}).map(drop);
        }
        let file = ClusterFile::read(&file)?;
        let description = match &file.contents {
            Contents::All(description) => description.clone(),
            Contents::Way(way) => self.wait_for_log(&file.id, &way.servers)?,
        };
        self.check_dealt(&description, dealt)
    }
}
