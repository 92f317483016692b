//! The streams of a new cluster are made at the servers of its log, and those of an old one are waited for.

use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use doppel_shared_log::{EngineError, LogEngine, LogError, StreamSettings};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::description::Description;
use crate::log::{self, LogSettings};
use crate::meta::{Described, Meta, STREAM_BYTES};

const PAUSE: Duration = Duration::from_millis(200);

/// The least time that an attempt to connect has.
const LEAST: Duration = Duration::from_millis(500);

/// A connection to the log, for a command.
pub struct Connection {
    /// The client of the log.
    pub engine: LogEngine,
    until: Instant,
    // Connections live in its tasks.
    runtime: Runtime,
}

/// Whether each server of a log answers. Servers that have just been started are asked again for as
/// long as `patience`; `tell` is told why, once for each server.
///
/// # Errors
/// When a server cannot be reached or is too old.
pub fn servers(servers: &[String], patience: Duration, tell: &dyn Fn(&EngineError)) -> anyhow::Result<()> {
    let (until, runtime) = (Instant::now() + patience, runtime()?);
    servers.iter().try_for_each(|server| {
        connect(&runtime, std::slice::from_ref(server), until, tell)?.server()?;
        Ok(())
    })
}

impl Connection {
    /// Connects to a log. Servers that have no leader yet, or do not answer, are asked again for as long as `patience`.
    ///
    /// # Errors
    /// [`EngineError`] when none answers, and when the system gives no threads.
    pub fn new(servers: &[String], patience: Duration) -> anyhow::Result<Self> {
        let (until, runtime) = (Instant::now() + patience, runtime()?);
        let engine = connect(&runtime, servers, until, &|_| {})?;
        Ok(Self { engine, until, runtime })
    }

    /// Where its tasks run.
    pub fn handle(&self) -> Handle {
        self.runtime.handle().clone()
    }

    /// Makes the streams of a new cluster, each of which must not have been before, and then its META with this description.
    ///
    /// # Errors
    /// When a stream is there already or cannot be made. The message says which were made.
    pub fn make(&self, log: &LogSettings, description: &Description) -> anyhow::Result<()> {
        let ranges = log::streams(&description.cluster, description.ranges);
        let meta = log::meta(&description.cluster);
        let settings = StreamSettings { max_bytes: STREAM_BYTES, ..log.stream_settings() };
        let all = ranges.iter().map(|name| (name, log.stream_settings())).chain([(&meta, settings)]);
        let mut made: Vec<String> = Vec::new();
        for (name, settings) in all {
            self.make_one(name, settings).map_err(|error| {
                let room = match &error {
                    EngineError::NotMade { .. } => format!(
                        "; each log server has to be able to set {} bytes aside for each of {} streams: `max_file_store` in its \
                         configuration, --log-max-bytes here",
                        log.max_bytes,
                        ranges.len()
                    ),
                    EngineError::Log(LogError::Unavailable { .. }) => {
                        "; see that more than half of the log servers run, and reach each other by their `routes`; a single log server \
                         has no `cluster` block in its configuration"
                            .to_owned()
                    }
                    _ => String::new(),
                };
                anyhow!("{error}{room}").context(left(&made))
            })?;
            made.push(name.clone());
        }
        self.meta(&description.cluster.as_str().into())?.begin(description).with_context(|| left(&made))
    }

    fn make_one(&self, name: &str, settings: StreamSettings) -> Result<(), EngineError> {
        let mut is_unsure = false;
        again(self.until, passes, || match self.engine.create(name, settings) {
            // The answer to an earlier attempt was lost.
            Err(EngineError::Exists(_)) if is_unsure => self.engine.open(name, settings.replicas).map(drop),
            made => {
                is_unsure |= made.as_ref().is_err_and(passes);
                made.map(drop)
            }
        })
    }

    /// Opens the META of a cluster.
    ///
    /// # Errors
    /// When it is not there, or does not answer in time.
    pub fn meta(&self, cluster: &Arc<str>) -> Result<Meta, EngineError> {
        again(self.until, passes, || Meta::open(&self.engine, Arc::clone(cluster)))
    }

    /// Waits until all streams of a cluster answer; its description.
    ///
    /// # Errors
    /// When one does not in time, or is not as it was made.
    pub fn wait(&self, cluster: &Arc<str>) -> anyhow::Result<Described> {
        let meta = self.meta(cluster)?;
        let described = again(self.until, crate::meta::MetaError::passes, || meta.read())?;
        let copies = described.description.log.as_ref().map_or(1, |log| usize::from(log.replicas));
        for name in log::streams(cluster, described.description.ranges) {
            again(self.until, passes, || self.engine.open(&name, copies).map(drop))?;
        }
        Ok(described)
    }
}

/// What is to be done with streams that were made for nothing.
pub fn left(made: &[String]) -> String {
    match made {
        [] => "no stream was made".to_owned(),
        made => format!(
            "streams were made that no cluster will use; delete them with `nats stream rm`: {}",
            made.join(", ")
        ),
    }
}

/// Connections live in tasks, so they need a thread that goes on while this one waits.
fn runtime() -> anyhow::Result<Runtime> {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
    runtime.context("cannot start the runtime")
}

fn connect(
    runtime: &Runtime,
    servers: &[String],
    until: Instant,
    tell: &dyn Fn(&EngineError),
) -> Result<LogEngine, EngineError> {
    let mut is_told = false;
    again(until, passes, || {
        // As which the servers show this connection.
        let left = until.saturating_duration_since(Instant::now()).max(LEAST);
        let connected = LogEngine::connect_within(runtime.handle().clone(), servers, "doppel", left);
        if let Err(error) = &connected
            && passes(error)
            && !std::mem::replace(&mut is_told, true)
        {
            tell(error);
        }
        connected
    })
}

/// NeededReports until it succeeds, fails for good, or it is too late.
fn again<T, E>(
    until: Instant,
    passes: impl Fn(&E) -> bool,
    mut ask: impl FnMut() -> Result<T, E>,
) -> Result<T, E> {
    loop {
        match ask() {
            Err(error) if passes(&error) && Instant::now() < until => sleep(PAUSE),
            answer => return answer,
        }
    }
}

/// Whether it may succeed later: servers that elect a leader, or do not know each other yet, say all of these.
pub fn passes(error: &EngineError) -> bool {
    match error {
        EngineError::Unreachable { .. } | EngineError::NotMade { .. } => true,
        EngineError::Log(error) => matches!(error, LogError::Unavailable { .. } | LogError::Missing { .. }),
        _ => false,
    }
}
