//! Settings that the user wants for a cluster on this machine: numbers of processes, ranges, and how pages
//! are compared. Checks whether an existing cluster has these settings.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use doppel_control::description::file::ClusterFile;
use doppel_control::description::file::ClusterFileContents;
use doppel_control::description::{Description, Tier2Node};
use doppel_model::RangeId;
use doppel_node::args::PolicyArgs;
use doppel_protocol::Settlement;

use super::{DevCluster, FILE, Process, Role, log_servers};
use crate::command::servers::init::Init;

/// Numbers of processes of a new cluster.
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

/// How the ranges of a cluster are divided, and how its pages are compared. `doppel init` supplies the
/// defaults.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) policy: PolicyArgs,
    /// File of winner rules and markets.
    pub(crate) winners: Option<PathBuf>,
    /// Number of distinct contents above which a group is quarantined.
    pub(crate) group_members_max: Option<u64>,
    pub(crate) ranges: Option<u16>,
    pub(crate) replicas: Option<u16>,
    pub(crate) log_max_bytes: Option<u64>,
    /// Settlement that the program of the log servers allows.
    pub(crate) settlement: Settlement,
}

impl Plan {
    /// Returns the options with which each process of a role is started.
    ///
    /// # Errors
    /// If a file that they name cannot be found.
    pub(super) fn options(&self, role: Role) -> anyhow::Result<Vec<String>> {
        let file = |option: &str, path: Option<&Path>| -> anyhow::Result<Vec<String>> {
            let Some(path) = path else { return Ok(Vec::new()) };
            let path = path.canonicalize().with_context(|| format!("{option} {}", path.display()))?;
            Ok(vec![option.to_owned(), path.display().to_string()])
        };
        match role {
            Role::Tier1 => {
                let max = self.group_members_max.iter();
                Ok(max.flat_map(|max| ["--group-members-max".to_owned(), max.to_string()]).collect())
            }
            Role::Coordinator => {
                let tables = file("--policy-tables", self.policy.policy_tables.as_deref())?;
                Ok([tables, file("--winners", self.winners.as_deref())?].concat())
            }
            Role::Tier2 | Role::Log => Ok(Vec::new()),
        }
    }
}

impl DevCluster {
    /// Ensures that the cluster has the wanted processes and options.
    pub(super) fn check(&self, counts: Counts, plan: &Plan) -> anyhow::Result<()> {
        let found = counts.of_roles().map(|(role, ..)| self.of(role).count());
        let [log, tier1, tier2, coordinators] = found;
        ensure!(
            found == counts.of_roles().map(|(.., count)| usize::from(count)),
            "{} has a cluster of --tier1 {tier1} --tier2 {tier2} --coordinators {coordinators} --log-servers {log}; give \
             these, or another directory",
            self.dir.display(),
        );
        for process in &self.processes {
            let wanted = plan.options(process.role)?;
            let is_same = wanted.chunks(2).all(|option| process.options.chunks(2).any(|had| had == option));
            ensure!(
                is_same,
                "{} starts {} with the options `{}`, not with `{}`; give the same, or another directory",
                self.dir.display(),
                process.name,
                process.options.join(" "),
                wanted.join(" "),
            );
        }
        Ok(())
    }

    /// Ensures that the description of the cluster has the wanted settings.
    fn check_description(&self, description: &Description, plan: &Plan) -> anyhow::Result<()> {
        let ranges = description.ranges;
        let replicas = description.replicas_of(RangeId(0)).len();
        let is_same = plan.ranges.is_none_or(|wanted| wanted == ranges)
            && plan.replicas.is_none_or(|wanted| usize::from(wanted) == replicas)
            && plan
                .log_max_bytes
                .is_none_or(|wanted| description.log.as_ref().is_some_and(|log| log.max_bytes == wanted));
        ensure!(
            is_same,
            "{} has a cluster of --ranges {ranges} --replicas {replicas}, or its streams are of another length; give the \
             same, or another directory",
            self.dir.display()
        );
        let policy = description.policy;
        ensure!(
            plan.policy.policy()?.is_none_or(|wanted| wanted == policy),
            "{} has a cluster of --policy {policy}; give the same, or another directory",
            self.dir.display()
        );
        Ok(())
    }

    /// Returns the `doppel init` command that creates the files of the cluster.
    pub(super) fn init(&self, plan: &Plan) -> anyhow::Result<Init> {
        let nodes = |role| -> anyhow::Result<Vec<Tier2Node>> {
            let node =
                |process: &Process| Ok(Tier2Node { name: process.name.parse()?, address: process.address() });
            self.of(role).map(node).collect()
        };
        let init = Init::of(self.dir.join(FILE), nodes(Role::Tier1)?, nodes(Role::Tier2)?);
        let init = init.with(plan.ranges, plan.replicas).comparing(plan.policy.clone(), plan.winners.clone());
        if !self.has_log() {
            return Ok(init);
        }
        let log_max_bytes = plan.log_max_bytes.unwrap_or(log_servers::STREAM_BYTES);
        Ok(init.with_log(self.log_urls(), self.log_monitors(), log_max_bytes))
    }

    /// Prepares what the nodes need while the log servers run. Creates the files and streams of a new
    /// cluster, and waits for those of an existing one.
    ///
    /// # Errors
    /// If they cannot be created, do not answer, or the cluster differs from the plan.
    pub(crate) fn prepare(&self, plan: &Plan) -> anyhow::Result<()> {
        let file = self.dir.join(FILE);
        if !file.exists() {
            return self.init(plan)?.create(log_servers::PATIENCE, &|_| {}).map(drop);
        }
        let file = ClusterFile::read(&file)?;
        let description = match &file.contents {
            ClusterFileContents::All(description) => description.clone(),
            ClusterFileContents::LogLocation(way) => self.wait_for_log(&file.id, &way.servers)?,
        };
        self.check_description(&description, plan)
    }
}
