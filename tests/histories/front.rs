//! The processes that a history runs in: one server, or a cluster whose ranges are replicated.

use std::path::PathBuf;

use doppel_model::Random;

use crate::harness::Server;
use crate::harness::trial::Trial;

/// Who answers, and what is killed.
pub(crate) trait Front {
    fn server(&self) -> &Server;

    /// Kills a process after a wait, and goes on.
    fn kill(&mut self, wait: &mut dyn FnMut());

    /// Starts what was killed and is not running.
    fn complete(&mut self);

    fn is_cluster(&self) -> bool;
}

/// One process on a directory.
pub(crate) struct OneProcess {
    server: Option<Server>,
    data: PathBuf,
    options: Vec<String>,
}

impl OneProcess {
    pub(crate) fn start(data: PathBuf, options: Vec<String>) -> Self {
        let mut this = Self { server: None, data, options };
        this.complete();
        this
    }

    /// Ends the process in order. Returns whether it exited with 0.
    pub(crate) fn terminate(mut self) -> bool {
        self.server.take().unwrap().terminate()
    }
}

impl Front for OneProcess {
    fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }

    fn kill(&mut self, wait: &mut dyn FnMut()) {
        wait();
        self.server.take().unwrap().kill();
        self.complete();
    }

    fn complete(&mut self) {
        if self.server.is_none() {
            let options: Vec<&str> = self.options.iter().map(String::as_str).collect();
            self.server = Some(Server::start(&self.data, &options));
        }
    }

    fn is_cluster(&self) -> bool {
        false
    }
}

/// A cluster. One process at a time is away.
pub(crate) struct InCluster {
    trial: Trial,
    front: Server,
    random: Random,
    away: Option<String>,
    /// How many processes were killed.
    pub(crate) kills: usize,
}

impl InCluster {
    /// None where the log has no program.
    pub(crate) fn start(seed: u64, options: &[String]) -> Option<Self> {
        let counts = ["--tier1", "3", "--tier2", "2", "--coordinators", "1"].into_iter();
        let options: Vec<&str> = counts.chain(options.iter().map(String::as_str)).collect();
        let trial = Trial::replicated(&options)?;
        let front = trial.coordinators().remove(0);
        Some(Self { trial, front, random: Random::of(seed, [3, 0, 0]), away: None, kills: 0 })
    }
}

impl Front for InCluster {
    fn server(&self) -> &Server {
        &self.front
    }

    /// Mostly a node of tier 1 goes, so that others take its ranges over; now and then one of the index or of the log.
    fn kill(&mut self, wait: &mut dyn FnMut()) {
        self.complete();
        wait();
        let role = ["tier1", "tier1", "tier1", "tier2", "engine"][self.random.index(5)];
        let names = self.trial.names(role);
        let name = names[self.random.index(names.len())].clone();
        self.trial.kill(&name);
        self.kills += 1;
        self.away = Some(name);
    }

    fn complete(&mut self) {
        if let Some(name) = self.away.take() {
            self.trial.start(&name);
        }
    }

    fn is_cluster(&self) -> bool {
        true
    }
}
