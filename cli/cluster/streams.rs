//! The streams of a new cluster are made at the servers of its log, and those of an old one are waited for.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use doppel_shared_log::{Engine, EngineError, LogError};
use tokio::runtime::{Builder, Runtime};

use super::LogSettings;

/// As which the servers show this connection.
const CLIENT: &str = "doppel init";

const PAUSE: Duration = Duration::from_millis(200);

/// Makes the streams, each of which must not have been before. Servers that have just been started have no leader yet, and
/// are asked again for as long as `patience`; `tell` is told why, once for each server.
///
/// # Errors
/// When a server cannot be reached or is too old, or a stream is there already or cannot be made. The message says which were
/// made.
pub(crate) fn make(
    log: &LogSettings,
    names: &[String],
    patience: Duration,
    tell: &dyn Fn(&EngineError),
) -> anyhow::Result<()> {
    let until = Instant::now() + patience;
    let runtime = runtime()?;
    // Each by itself: a server that is away would be missed only later.
    for server in &log.servers {
        connect(&runtime, std::slice::from_ref(server), until, tell)?;
    }
    let engine = connect(&runtime, &log.servers, until, &|_| {})?;
    for (made, name) in names.iter().enumerate() {
        make_one(&engine, log, name, until).map_err(|error| {
            let room = match &error {
                EngineError::NotMade { .. } => format!(
                    "; each log server has to be able to set {} bytes aside for each of {} streams: `max_file_store` in its \
                     configuration, --log-max-bytes here",
                    log.max_bytes,
                    names.len()
                ),
                _ => String::new(),
            };
            anyhow!("{error}{room}").context(match &names[..made] {
                [] => "no stream was made".to_owned(),
                made => format!(
                    "streams were made that no cluster will use, and that can be deleted: {}",
                    made.join(", ")
                ),
            })
        })?;
    }
    Ok(())
}

fn make_one(engine: &Engine, log: &LogSettings, name: &str, until: Instant) -> Result<(), EngineError> {
    let mut is_unsure = false;
    again(until, || match engine.create(name, log.stream_settings()) {
        // The answer to an earlier attempt was lost.
        Err(EngineError::Exists(_)) if is_unsure => engine.open(name, usize::from(log.replicas)).map(drop),
        made => {
            is_unsure |= made.as_ref().is_err_and(passes);
            made.map(drop)
        }
    })
}

/// Waits until the streams answer.
///
/// # Errors
/// When one does not within `patience`, or is not as it was made.
pub(crate) fn wait(log: &LogSettings, names: &[String], patience: Duration) -> anyhow::Result<()> {
    let until = Instant::now() + patience;
    let runtime = runtime()?;
    let engine = connect(&runtime, &log.servers, until, &|_| {})?;
    for name in names {
        again(until, || engine.open(name, usize::from(log.replicas)).map(drop))?;
    }
    Ok(())
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
) -> Result<Engine, EngineError> {
    let mut is_told = false;
    again(until, || {
        let connected = Engine::connect(runtime.handle().clone(), servers, CLIENT);
        if let Err(error) = &connected
            && passes(error)
            && !std::mem::replace(&mut is_told, true)
        {
            tell(error);
        }
        connected
    })
}

/// Asks until it succeeds, fails for good, or it is too late.
fn again<T>(until: Instant, mut ask: impl FnMut() -> Result<T, EngineError>) -> Result<T, EngineError> {
    loop {
        match ask() {
            Err(error) if passes(&error) && Instant::now() < until => sleep(PAUSE),
            answer => return answer,
        }
    }
}

/// Whether it may succeed later: servers that elect a leader, or do not know each other yet, say all of these.
fn passes(error: &EngineError) -> bool {
    match error {
        EngineError::Unreachable { .. } | EngineError::NotMade { .. } => true,
        EngineError::Log(error) => matches!(error, LogError::Unavailable { .. } | LogError::Missing { .. }),
        _ => false,
    }
}
