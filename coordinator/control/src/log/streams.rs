//! Creates the streams of a new cluster at the servers of its log, and waits for the streams of an existing
//! cluster.

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

/// Shortest time limit of an attempt to connect.
const LEAST: Duration = Duration::from_millis(500);

/// A command's connection to the log.
pub struct Connection {
    /// The client of the log.
    pub engine: LogEngine,
    until: Instant,
    // The connection runs in tasks of this runtime, so the runtime must live as long.
    runtime: Runtime,
}

/// Checks that each server of a log answers.
///
/// A server may just have been started, so it is asked again for as long as `patience`. `tell` is called with
/// the error of the first failed attempt, once for each server.
///
/// # Errors
/// If a server cannot be reached or is too old.
pub fn servers(servers: &[String], patience: Duration, tell: &dyn Fn(&EngineError)) -> anyhow::Result<()> {
    let (until, runtime) = (Instant::now() + patience, runtime()?);
    servers.iter().try_for_each(|server| {
        connect(&runtime, std::slice::from_ref(server), until, tell)?.server()?;
        Ok(())
    })
}

impl Connection {
    /// Connects to a log. If the servers have no leader yet or do not answer, tries again for as long as
    /// `patience`.
    ///
    /// # Errors
    /// [`EngineError`] if no server answers. Another error if the system cannot start threads.
    pub fn new(servers: &[String], patience: Duration) -> anyhow::Result<Self> {
        let (until, runtime) = (Instant::now() + patience, runtime()?);
        let engine = connect(&runtime, servers, until, &|_| {})?;
        Ok(Self { engine, until, runtime })
    }

    /// Handle of the runtime in which the tasks of the connection run.
    pub fn handle(&self) -> Handle {
        self.runtime.handle().clone()
    }

    /// Creates the streams of a new cluster, META last, and writes the first description to META.
    ///
    /// # Errors
    /// If a stream exists already or cannot be created. The message names the streams that were created.
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
                        "; each log server must be able to set {} bytes aside for each of {} streams: raise \
                         `max_file_store` in its configuration, or lower --log-max-bytes here",
                        log.max_bytes,
                        ranges.len()
                    ),
                    EngineError::Log(LogError::Unavailable { .. }) => {
                        "; check that more than half of the log servers run, and that they reach each other by their \
                         `routes`; a single log server has no `cluster` block in its configuration"
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
            // An earlier attempt has created the stream, and its answer was lost.
            Err(EngineError::Exists(_)) if is_unsure => self.engine.open(name, settings.replicas).map(drop),
            made => {
                is_unsure |= made.as_ref().is_err_and(passes);
                made.map(drop)
            }
        })
    }

    /// Opens the META stream of a cluster.
    ///
    /// # Errors
    /// If the stream does not exist or does not answer in time.
    pub fn meta(&self, cluster: &Arc<str>) -> Result<Meta, EngineError> {
        again(self.until, passes, || Meta::open(&self.engine, Arc::clone(cluster)))
    }

    /// Waits until all streams of a cluster answer, and returns its description.
    ///
    /// # Errors
    /// If a stream does not answer in time, or has other settings than it was created with.
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

/// Says what to do with streams that were created before a failure.
pub fn left(made: &[String]) -> String {
    match made {
        [] => "no stream was made".to_owned(),
        made => format!(
            "streams were made that no cluster will use; delete them with `nats stream rm`: {}",
            made.join(", ")
        ),
    }
}

/// Starts a runtime with a thread of its own, so that the tasks of a connection go on while the calling
/// thread waits.
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

/// Repeats an operation until it succeeds, fails for good, or `until` is reached.
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

/// Whether the operation may succeed later. Servers give these errors while they elect a leader or do not
/// know each other yet.
pub fn passes(error: &EngineError) -> bool {
    match error {
        EngineError::Unreachable { .. } | EngineError::NotMade { .. } => true,
        EngineError::Log(error) => matches!(error, LogError::Unavailable { .. } | LogError::Missing { .. }),
        _ => false,
    }
}
