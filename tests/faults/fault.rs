//! Draws faults from a seed, and injects them into a cluster.
//!
//! Faults overlap: a fault may begin before the previous fault ends. Only the loss of a disk waits until all
//! other faults have ended and every replica has copied all entries.

use std::fmt;
use std::time::{Duration, Instant};

use super::clients::Clients;
use super::network::Way;
use super::processes::{Cluster, Role};
use crate::harness::pages::Random;

/// Time limit for the cluster to recover after the last fault.
const RECOVERY: Duration = Duration::from_secs(240);

/// Time after which the simulated operator does what the status of the cluster advises.
const PATIENCE: Duration = Duration::from_secs(60);

/// Time after the loss of a disk for which the status may still show old reports of the node.
const OLD_REPORTS_MAX: Duration = Duration::from_secs(5);

/// Pause between the restarts of two log servers, in which the restarted server rejoins.
const RESTART: Duration = Duration::from_secs(10);

const POLL: Duration = Duration::from_millis(100);

/// A fault to inject.
enum Fault {
    /// Kill a process as `kill -9` does, and start it after a while.
    Kill(usize),
    /// Send SIGSTOP to a process, and SIGCONT after a while.
    Stop(usize),
    /// Kill all servers of the log.
    KillLog,
    /// Delete the directory of a node.
    LoseDisk(usize),
    /// Change the connections between one process and some others, in both directions, for a while.
    Cut { at: usize, others: Vec<usize>, there: Way, back: Way },
}

/// The action that ends a fault.
#[derive(Clone)]
enum End {
    Start(usize),
    Continue(usize),
    Join(usize, Vec<usize>),
}

/// Injects the faults of a run.
pub(crate) struct Faults<'a> {
    cluster: &'a mut Cluster,
    clients: &'a Clients,
    seed: u64,
    random: Random,
    /// Longest time that a process stops, in seconds.
    stop_max: u64,
    began: Instant,
    ends: Vec<(Instant, End)>,
    lost_disk: Option<Instant>,
}

impl<'a> Faults<'a> {
    pub(crate) fn new(cluster: &'a mut Cluster, clients: &'a Clients, seed: u64, stop_max: u64) -> Self {
        Self {
            cluster,
            clients,
            seed,
            random: Random::new(seed),
            stop_max,
            began: Instant::now(),
            ends: Vec::new(),
            lost_disk: None,
        }
    }

    /// Injects `count` faults. Returns once the cluster has recovered, or after a violation.
    pub(crate) fn run(&mut self, count: usize) {
        for n in 1..=count {
            // Each fault has a random sequence of its own, because the number of draws depends on timing and
            // must not affect the next fault.
            self.random = Random::of(self.seed, [n as u64, 0, 0]);
            let fault = self.draw();
            let (lasts, pause) = (self.lasts(&fault), Duration::from_millis(500 + self.random.below(6_000)));
            if let Fault::LoseDisk(_) = fault {
                self.recover();
            }
            if self.is_wrong() {
                return;
            }
            self.say(&format!("{n}: {}", FaultDescription(&fault, lasts, self.cluster)));
            self.begin(fault, Instant::now() + lasts);
            self.wait(Instant::now() + pause);
        }
        self.recover();
    }

    fn say(&self, what: &str) {
        println!("{:7.2} s  {what}", self.began.elapsed().as_secs_f64());
    }

    fn is_wrong(&mut self) -> bool {
        self.cluster.broken().into_iter().for_each(|what| self.clients.violation(what));
        !self.clients.violations().is_empty()
    }

    /// Whether a process is dead or stopped at present.
    fn is_away(&self, at: usize) -> bool {
        self.ends.iter().any(|(_, end)| match end {
            End::Start(away) | End::Continue(away) => *away == at,
            End::Join(..) => false,
        })
    }

    /// A random process of these roles, or `None` if the drawn process is away. The draw does not depend on
    /// which processes run.
    fn one_of(&mut self, roles: &[Role]) -> Option<usize> {
        let all: Vec<usize> = roles.iter().flat_map(|role| self.cluster.of(*role)).collect();
        let begin = self.random.index(all.len());
        (0..all.len()).map(|n| all[(begin + n) % all.len()]).find(|at| !self.is_away(*at))
    }

    fn draw(&mut self) -> Fault {
        const NODES: [Role; 2] = [Role::Tier1, Role::Tier2];
        const SERVERS: [Role; 3] = [Role::Log, Role::Tier1, Role::Tier2];
        const ALL: [Role; 4] = [Role::Log, Role::Tier1, Role::Tier2, Role::Coordinator];
        loop {
            let drawn = match self.random.index(17) {
                0..=2 => self.one_of(&ALL).map(Fault::Kill),
                3 => self.one_of(&[Role::Tier1]).map(Fault::Kill),
                4 | 5 => self.one_of(&ALL).map(Fault::Stop),
                6 => self.one_of(&[Role::Tier1]).map(Fault::Stop),
                7 | 8 => {
                    let range = self.random.index(6);
                    self.cluster.leader(range).filter(|at| !self.is_away(*at)).map(Fault::Kill)
                }
                9 => Some(Fault::KillLog),
                10 | 11 => {
                    let role = NODES[self.random.index(2)];
                    self.one_of(&[role]).map(Fault::LoseDisk)
                }
                12 | 13 => {
                    // Cut off one process from all others, or a server of the log from the other servers
                    // alone.
                    let at = self.one_of(&SERVERS);
                    let is_log = at.is_some_and(|at| self.cluster.processes[at].role == Role::Log);
                    let role =
                        if is_log && self.random.index(2) == 0 { vec![Role::Log] } else { ALL.to_vec() };
                    at.map(|at| {
                        let others = role.iter().flat_map(|role| self.cluster.of(*role));
                        let others = others.filter(|other| *other != at).collect();
                        Fault::Cut { at, others, there: Way::Held, back: Way::Held }
                    })
                }
                _ => {
                    let (at, other) = (self.one_of(&ALL), self.one_of(&SERVERS));
                    let [there, back] = match self.random.index(4) {
                        0 => [Way::Held, Way::Held],
                        1 => [Way::Held, Way::Free],
                        2 => [Way::Slow, Way::Slow],
                        _ => [Way::Broken, Way::Broken],
                    };
                    at.zip(other).filter(|(at, other)| at != other).map(|(at, other)| Fault::Cut {
                        at,
                        others: vec![other],
                        there,
                        back,
                    })
                }
            };
            match drawn {
                // All servers of the log must run before all of them are killed.
                Some(Fault::KillLog) if self.cluster.of(Role::Log).any(|at| self.is_away(at)) => {}
                Some(fault) => return fault,
                None => {}
            }
            self.wait(Instant::now() + POLL);
        }
    }

    /// Duration of a fault.
    fn lasts(&mut self, fault: &Fault) -> Duration {
        Duration::from_millis(match fault {
            Fault::Stop(_) | Fault::Cut { .. } => 3_000 + self.random.below((self.stop_max - 3) * 1_000 + 1),
            Fault::Kill(_) | Fault::KillLog => self.random.below(4_000),
            Fault::LoseDisk(_) => 0,
        })
    }

    fn begin(&mut self, fault: Fault, until: Instant) {
        let mut ends = Vec::new();
        match fault {
            Fault::Kill(at) => {
                self.cluster.kill(at);
                ends.push(End::Start(at));
            }
            Fault::Stop(at) => {
                self.cluster.signal(at, "STOP");
                ends.push(End::Continue(at));
            }
            Fault::KillLog => {
                for at in self.cluster.of(Role::Log) {
                    self.cluster.kill(at);
                    ends.push(End::Start(at));
                }
            }
            Fault::LoseDisk(at) => {
                self.cluster.kill(at);
                self.cluster.lose_disk(at);
                self.lost_disk = Some(Instant::now());
                self.cluster.begin(at);
            }
            Fault::Cut { at, others, there, back } => {
                for other in &others {
                    self.cluster.network.set(at, *other, there);
                    self.cluster.network.set(*other, at, back);
                }
                ends.push(End::Join(at, others));
            }
        }
        self.ends.extend(ends.into_iter().map(|end| (until, end)));
    }

    /// Waits until a moment, and ends the faults that are due by then.
    fn wait(&mut self, until: Instant) {
        while Instant::now() < until && !self.is_wrong() {
            let now = Instant::now();
            let due: Vec<End> = self.ends.extract_if(.., |(at, _)| *at <= now).map(|(_, end)| end).collect();
            for end in due {
                match &end {
                    End::Start(at) => self.cluster.begin(*at),
                    End::Continue(at) => self.cluster.signal(*at, "CONT"),
                    End::Join(at, others) => {
                        for other in others {
                            self.cluster.network.set(*at, *other, Way::Free);
                            self.cluster.network.set(*other, *at, Way::Free);
                        }
                    }
                }
                let name = |at: &usize| &self.cluster.processes[*at].name;
                self.say(&match &end {
                    End::Start(at) => format!("   {} is started", name(at)),
                    End::Continue(at) => format!("   {} goes on", name(at)),
                    End::Join(at, others) if others.len() > 1 => format!("   {} is joined again", name(at)),
                    End::Join(at, others) => {
                        format!("   {} and {} are joined again", name(at), name(&others[0]))
                    }
                });
            }
            std::thread::sleep(POLL.min(until.saturating_duration_since(Instant::now())));
        }
    }

    /// Restarts log servers, as an operator does if they report a stream as missing although no stream was
    /// deleted.
    fn restart_log(&mut self) {
        for at in self.cluster.of(Role::Log) {
            self.say(&format!(
                "   a stream is reported as missing, so {} is restarted",
                self.cluster.processes[at].name
            ));
            self.cluster.kill(at);
            self.cluster.begin(at);
            self.wait(Instant::now() + RESTART);
        }
    }

    /// Ends all faults, and waits until the cluster has recovered.
    fn recover(&mut self) {
        while !self.ends.is_empty() && !self.is_wrong() {
            self.wait(Instant::now() + POLL);
        }
        let began = Instant::now();
        let mut is_restarted = false;
        while !self.is_wrong() {
            let is_told_anew = self.lost_disk.is_none_or(|lost| lost.elapsed() > OLD_REPORTS_MAX);
            if is_told_anew && self.cluster.is_well() {
                return self.say(&format!("   all is well after {:.1} s", began.elapsed().as_secs_f64()));
            }
            if began.elapsed() > PATIENCE && !is_restarted && self.cluster.has_lost_sight_of_a_stream() {
                is_restarted = true;
                self.restart_log();
            }
            if began.elapsed() > RECOVERY {
                let status = self.cluster.status();
                return self.clients.violation(format!("all is not well after {RECOVERY:?}: {status:#?}"));
            }
            std::thread::sleep(POLL);
        }
    }
}

/// Prints a fault, its duration and its processes.
struct FaultDescription<'a>(&'a Fault, Duration, &'a Cluster);

impl fmt::Display for FaultDescription<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(fault, lasts, cluster) = self;
        let name = |at: &usize| &cluster.processes[*at].name;
        match fault {
            Fault::Kill(at) => write!(f, "{} is killed", name(at))?,
            Fault::Stop(at) => write!(f, "{} is stopped", name(at))?,
            Fault::KillLog => f.write_str("all servers of the log are killed")?,
            Fault::LoseDisk(at) => return write!(f, "{} loses its disk", name(at)),
            Fault::Cut { at, others, .. } if others.len() > 1 => {
                let is_log = others.iter().all(|other| cluster.processes[*other].role == Role::Log);
                let all = if is_log { "the other servers of the log" } else { "all" };
                write!(f, "{} is cut off from {all}", name(at))?;
            }
            Fault::Cut { at, others, there, back } => {
                write!(f, "{} to {}: {there:?}, back: {back:?}", name(at), name(&others[0]))?;
            }
        }
        write!(f, ", for {:.1} s", lasts.as_secs_f64())
    }
}
