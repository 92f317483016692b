//! The processes in which a history runs: one server, or a cluster with replicated ranges.

use std::path::PathBuf;

use doppel_model::Random;

use crate::harness::Server;
use crate::harness::trial::Trial;

/// The processes under test: a server that answers, and processes to kill.
pub(crate) trait Front {
    fn server(&self) -> &Server;

    /// Kills a process after `wait` returns, and restores service.
    fn kill(&mut self, wait: &mut dyn FnMut());

    /// Starts the killed processes that do not run yet.
    fn complete(&mut self);

    fn is_cluster(&self) -> bool;
}

/// A single process on a data directory.
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

    /// Ends the process with SIGTERM. Returns whether it exited with 0.
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

/// A cluster. At most one of its processes is dead at a time.
pub(crate) struct InCluster {
    trial: Trial,
    front: Server,
    random: Random,
    away: Option<String>,
    /// Number of killed processes.
    pub(crate) kills: usize,
}

impl InCluster {
    /// Starts a cluster. `None` if there is no `nats-server`.
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

    /// Kills mostly a node of tier 1, so that other nodes take over its ranges. Sometimes kills a node of the
    /// index or a server of the log.
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
