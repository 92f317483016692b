//! Watches META in a process of a replicated cluster, and publishes which description the process runs with.
//!
//! A process keeps the description that it was started with. When META has a new one, the process logs that
//! once. The coordinators report which processes must be restarted.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{io, thread};

use bytes::Bytes;
use doppel_model::random_number;
use doppel_shared_log::{NewsChannel, NewsSubscription};
use doppel_wire::NodeName;

use crate::connection::ClusterConnection;
use crate::description::Description;
use crate::description::steps::{ProcessRole, part};
use crate::log;
use crate::meta::{Described, Meta};
use crate::status::processes::{Presence, Processes};

/// Pause between two reads of META.
const PAUSE: Duration = Duration::from_secs(3);

/// A thread that watches META until this is dropped.
pub struct Watch {
    processes: Arc<Processes>,
    stopping: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
    _listening: NewsSubscription,
}

struct Watching {
    meta: Meta,
    channel: NewsChannel,
    processes: Arc<Processes>,
    /// The description that this process runs with.
    own: Description,
    /// The last description that was read from META.
    last_read: Described,
    presence: Presence,
    changed: Box<dyn Fn(&Description) + Send>,
}

impl Watch {
    /// Begins to watch META. `changed` is called with every new description.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub fn start(
        connection: &ClusterConnection,
        (role, name): (ProcessRole, &NodeName),
        changed: impl Fn(&Description) + Send + 'static,
    ) -> io::Result<Self> {
        let Described { version, description, .. } = connection.described.clone();
        let processes = Arc::new(Processes::new(version, description.clone()));
        let channel = connection.engine.news_channel(&log::processes(&description.cluster));
        let listening = {
            let processes = Arc::clone(&processes);
            channel.listen(move |news| match serde_json::from_slice::<Presence>(news) {
                Ok(presence) => processes.take(presence, Instant::now()),
                Err(error) => tracing::debug!(%error, "cannot decode the presence of another process"),
            })
        };
        let mut watching = Watching {
            meta: connection.meta.clone(),
            channel,
            processes: Arc::clone(&processes),
            own: description,
            last_read: connection.described.clone(),
            presence: Presence {
                role,
                name: name.to_string(),
                incarnation: random_number(),
                version,
                restart: false,
            },
            changed: Box::new(changed),
        };
        let stopping = Arc::new((Mutex::new(false), Condvar::new()));
        let thread = {
            let stopping = Arc::clone(&stopping);
            let run = move || {
                loop {
                    watching.turn();
                    let (stop, woken) = &*stopping;
                    let stop = stop.lock().unwrap_or_else(PoisonError::into_inner);
                    let waited = woken.wait_timeout_while(stop, PAUSE, |stop| !*stop);
                    if *waited.unwrap_or_else(PoisonError::into_inner).0 {
                        return;
                    }
                }
            };
            thread::Builder::new().name("watch-meta".to_owned()).spawn(run)?
        };
        Ok(Self { processes, stopping, thread: Some(thread), _listening: listening })
    }

    /// The presences of all processes of the cluster.
    pub fn processes(&self) -> Arc<Processes> {
        Arc::clone(&self.processes)
    }
}

impl Watching {
    fn turn(&mut self) {
        match self.meta.read_if_newer(&self.last_read) {
            Ok(Some(described)) => self.accept(described),
            Ok(None) => {}
            Err(error) => tracing::debug!(%error, "cannot read the description of the cluster from META"),
        }
        // A process does not receive its own presence from the news channel.
        self.processes.take(self.presence.clone(), Instant::now());
        match serde_json::to_vec(&self.presence) {
            Ok(news) => self.channel.tell(Bytes::from(news)),
            Err(error) => tracing::error!(%error, "cannot encode the presence of this process"),
        }
    }

    fn accept(&mut self, described: Described) {
        let is_other = described.version != self.last_read.version;
        self.last_read = described;
        if !is_other {
            return;
        }
        let Described { version, description, .. } = &self.last_read;
        let Presence { role, name, version: own, .. } = &self.presence;
        let of = |description| part(description, *role, name);
        let restart = of(&self.own) != of(description);
        if version < own {
            tracing::error!(
                version,
                own,
                "META has lost its last entries: this process runs with a newer description of the cluster; repeat the lost change"
            );
        } else if !role.is_in(description, name) {
            tracing::warn!(version, "this node is not in the cluster any more: stop it");
        } else if restart {
            tracing::warn!(version, own, "the description of the cluster has changed: restart this process");
        } else {
            tracing::info!(
                version,
                "the description of the cluster has changed, but not the part that concerns this process"
            );
        }
        self.presence.restart = restart;
        self.processes.described(*version, description);
        (self.changed)(description);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let (stop, woken) = &*self.stopping;
        *stop.lock().unwrap_or_else(PoisonError::into_inner) = true;
        woken.notify_all();
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that watches META panicked");
        }
    }
}
