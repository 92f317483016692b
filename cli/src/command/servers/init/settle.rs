//! Decides when writes of a new cluster are settled, from the options and from what the log servers confirm,
//! and explains what that means.

use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use doppel_control::log::LogSettings;
use doppel_control::log::monitored::{LogTarget, find_objections};
use doppel_control::log::monitors::{Objections, look_until, objections};
use doppel_control::log::streams::Connection;
use doppel_protocol::Settlement;
use doppel_terminal::exit::Failure;

use super::Init;

impl Init {
    /// Ensures that the options of the log do not contradict each other.
    pub(super) fn check_log(&self) -> Result<(), Failure> {
        let Self { log, log_monitor, .. } = self;
        let has_log_options = self.log_replicas.is_some()
            || self.log_max_bytes.is_some()
            || self.log_window.is_some()
            || self.settlement.is_some()
            || !log_monitor.is_empty();
        let usage = |reason: &str| Err(Failure::Usage(reason.to_owned()));
        if log.is_empty() && has_log_options {
            return usage(
                "--log-replicas, --log-max-bytes, --log-window, --log-monitor and --settlement say how a log is kept, and without \
                 --log there is none; name the servers with --log, or leave these options out",
            );
        }
        if !log_monitor.is_empty() && log_monitor.len() != log.len() {
            return Err(Failure::Usage(format!(
                "--log names {} log servers, and --log-monitor {} monitors; one for each is expected",
                log.len(),
                log_monitor.len()
            )));
        }
        if self.settlement == Some(Settlement::Log) && log_monitor.is_empty() {
            return usage(
                "--settlement log counts what log servers acknowledge, and is taken only where they say that they sync it first: \
                 give each a line `http: \"HOST:8222\"` in its configuration, and name these with --log-monitor",
            );
        }
        Ok(())
    }

    /// Returns when writes are settled, and the reason if the user did not choose it.
    pub(super) fn settle(&self, patience: Duration) -> anyhow::Result<(Settlement, Option<String>)> {
        self.check_log()?;
        if self.log.is_empty() {
            return Ok((Settlement::Log, None));
        }
        if self.settlement == Some(Settlement::Standby) {
            return Ok((Settlement::Standby, None));
        }
        if self.log_monitor.is_empty() {
            let why = "settlement is `standby`, for no --log-monitor says that the log servers sync what they acknowledge. Where \
                       they are 2.12 or newer with `sync_interval: always`, give each a line `http: \"HOST:8222\"` in its \
                       configuration and name these: settlement is `log` then, which needs no second node for a write";
            return Ok((Settlement::Standby, Some(why.to_owned())));
        }
        let found = look_until(&self.log_monitor, Instant::now() + patience);
        let Objections { wrong, silent } = objections(Settlement::Log, &found);
        if let Some(silent) = silent.first() {
            bail!("{silent}; all monitors of --log-monitor must answer");
        }
        if wrong.is_empty() {
            return Ok((Settlement::Log, None));
        }
        if self.settlement == Some(Settlement::Log) {
            bail!("settlement `log` is not possible: {}", wrong.join("; "));
        }
        let why = format!("settlement is `standby`, for `log` is not possible: {}", wrong.join("; "));
        Ok((Settlement::Standby, Some(why)))
    }

    /// Returns the number of nodes that have a replica of each range.
    pub(super) fn replicas(&self, settlement: Settlement) -> Result<u16, Failure> {
        let nodes = self.tier1.len();
        let is_standby = settlement == Settlement::Standby && !self.log.is_empty();
        match self.replicas {
            _ if is_standby && (nodes < 2 || self.replicas == Some(1)) => Err(Failure::Usage(
                "with settlement `standby` a write counts when a second node of tier 1 has it on its disk: --replicas 2 at least \
                 and two nodes are needed. Or have log servers of 2.12 or newer with `sync_interval: always`, and name their \
                 monitors with --log-monitor: settlement is `log` then"
                    .to_owned(),
            )),
            None if self.log.is_empty() || nodes < 2 => Ok(1),
            None if is_standby && nodes > 2 => Ok(3),
            None => Ok(2),
            Some(wanted) if wanted > 1 && self.log.is_empty() => Err(Failure::Usage(
                "without --log nothing is replicated, and --replicas is 1 at most; name log servers with --log"
                    .to_owned(),
            )),
            Some(wanted) if usize::from(wanted) > nodes => Err(Failure::Usage(format!(
                "--replicas is {wanted}, and there are only {nodes} nodes of tier 1 to have one each"
            ))),
            Some(wanted) => Ok(wanted),
        }
    }

    /// Ensures that the monitors belong to all servers that have copies of the streams.
    pub(super) fn ensure_monitored(
        &self,
        log: &LogSettings,
        connection: &Connection,
        streams: &[String],
        patience: Duration,
    ) -> anyhow::Result<()> {
        if log.settlement == Settlement::Standby {
            return Ok(());
        }
        let place = LogTarget { engine: &connection.engine, servers: &self.log, streams };
        let Objections { wrong, silent } = find_objections(log, &place, Instant::now() + patience);
        let all = [wrong, silent].concat();
        ensure!(all.is_empty(), "settlement `log` is not possible: {}", all.join("; "));
        Ok(())
    }
}

/// Describes when a write is settled.
pub(super) fn describe_settlement(settlement: Settlement) -> &'static str {
    match settlement {
        Settlement::Log => "settlement `log`: a write counts when the log servers have it on their disks",
        Settlement::Standby => {
            "settlement `standby`: a write counts when the log has it and two nodes of tier 1 have it on their disks"
        }
    }
}

/// Describes what the copies of the log protect against.
pub(super) fn describe_log_copies(replicas: u16) -> String {
    match replicas {
        1 => "the log is on one server only: while that is away nothing is taken, and when its disk is lost the cluster has to come \
              back from a backup"
            .to_owned(),
        _ => format!(
            "the log has {replicas} copies: it goes on and loses nothing while {} of their servers {} away",
            replicas / 2,
            if replicas / 2 == 1 { "is" } else { "are" }
        ),
    }
}

/// Describes what the replicas of a range protect against.
pub(super) fn describe_replicas(settlement: Settlement, replicas: usize) -> String {
    match replicas {
        2 if settlement == Settlement::Standby => "each range is on 2 nodes of tier 1: where one of them is lost, the other answers, \
            and writes of the range wait until it is back; with a third node, --replicas 3 lets them go on"
            .to_owned(),
        1 => "warning: each range is on one node of tier 1 only: while that is away nobody takes over, and its pages are \
              neither taken nor answered. Its streams are never trimmed, and what it has can be copied from them"
            .to_owned(),
        _ => format!("each range is on {replicas} nodes of tier 1: where its owner dies, another takes over"),
    }
}
