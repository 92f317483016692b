//! The options and listeners of a server for clients: host names, tokens, TLS, a listener for operators, and
//! limits for each client.
//!
//! Invariant: without tokens, a server never listens on an address that other machines reach, unless the
//! operator passes `--no-tokens-on-any-address`.

pub mod token_file;

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use doppel_coordinator::ServerListeners;
use doppel_coordinator::access::{Access, ClientTokens, HostName};
use doppel_coordinator::limits::{CLIENT, ClientLimits, LINE_ANSWER_BYTES, LONG_POLLS, Limits, REQUESTS};
use doppel_http::{ServerListener, Tls, TlsFiles};
use doppel_terminal::exit::Failure;
use doppel_terminal::size::ByteSize;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::process::notify;
use crate::process::{self, LISTEN, listen};
use token_file::Census;

/// Smallest memory for bodies, in bytes: enough for four clients with [`CLIENT_MEMORY_MIN`] each.
const BODY_MEMORY_MIN: u64 = 16 << 20;

/// Smallest memory for the bodies of one client, in bytes.
const CLIENT_MEMORY_MIN: usize = 4 << 20;

/// Options of a server that answers clients.
#[derive(Debug, Args)]
pub struct FrontDoorArgs {
    /// Address and port to listen on. Port 0 takes any free port. An address that other machines reach needs
    /// --tokens.
    #[arg(long, value_name = "IP:PORT", env = "DOPPEL_LISTEN", default_value = "127.0.0.1:7700", value_parser = process::address)]
    listen: SocketAddr,
    /// Host name that clients may use, in addition to localhost and IP addresses, such as doppel.example.org.
    /// Needed if clients use the name of a machine, a service or a proxy. May be repeated, or be a list with
    /// commas. The server refuses other names, so that no page in a browser can read or change data by
    /// pointing its own name here.
    #[arg(long = "allow-host", value_name = "NAME", env = "DOPPEL_ALLOW_HOST", value_delimiter = ',')]
    names: Vec<HostName>,
    /// File of tokens, to which `doppel token new` adds. The server reads it again on SIGHUP. With this file,
    /// every request needs a token whose role allows it, except for health, the contract and the files of the
    /// dashboard.
    #[arg(long, value_name = "FILE", env = "DOPPEL_TOKENS")]
    tokens: Option<PathBuf>,
    /// Listen without tokens on an address that other machines reach. Everyone who reaches it may read and
    /// change everything.
    #[arg(long, conflicts_with = "tokens")]
    no_tokens_on_any_address: bool,
    /// A second address and port. If given, the server answers purges, repairs, rebalancing, backups and
    /// take-overs only there.
    #[arg(long, value_name = "IP:PORT", env = "DOPPEL_OPERATE_LISTEN", value_parser = process::address)]
    operate_listen: Option<SocketAddr>,
    /// Certificate of the server, followed by its chain of authorities, in PEM. Clients then use https. The
    /// server reads the file again on SIGHUP.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Private key of the certificate, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Certificates of authorities, in PEM. Every client must then show a certificate that one of them has
    /// signed.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_client_ca: Option<PathBuf>,
    /// Memory for all requests together, at least 16MiB: for their bodies, compressed and decompressed, and
    /// the answers to their lines.
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    body_memory: ByteSize,
    /// Number of requests that one client may have in work at once. A client is a token, or an address if
    /// the request has no token. A client on this machine that needs no token has no limits.
    #[arg(long, value_name = "N", default_value_t = LIMITS.requests, value_parser = up_to::<REQUESTS>)]
    client_requests: usize,
    /// Number of long polls of the change feed that one client may have at once.
    #[arg(long, value_name = "N", default_value_t = LIMITS.long_polls, value_parser = up_to::<LONG_POLLS>)]
    client_long_polls: usize,
    /// Part of --body-memory that one client may use at once, at least 4MiB. A body may take up to half of
    /// it, compressed or decompressed [default: half of --body-memory].
    #[arg(long, value_name = "SIZE")]
    client_body_memory: Option<ByteSize>,
}

const LIMITS: ClientLimits = CLIENT;

/// Name of the option with the address for operators.
const OPERATE_LISTEN: &str = "--operate-listen";

/// Reads a number from 1 to `ALL`, the limit of all clients together.
fn up_to<const ALL: usize>(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|n| (1..=ALL).contains(n));
    number.ok_or_else(|| format!("a number of at least 1 and at most {ALL} is expected"))
}

/// Bound listeners of a server, its limits, and the files that it reads again on SIGHUP.
pub struct FrontDoor {
    /// Listeners, and the rules of who may ask.
    pub listeners: ServerListeners,
    /// Limits of requests and bodies.
    pub limits: Limits,
    files: Files,
}

/// The token file has no valid token, so the server would refuse every request.
#[derive(Debug, thiserror::Error)]
#[error(
    "{path} has no token that is taken{}: `doppel token new NAME --role ROLE --tokens {path}` adds one",
    if *expired > 0 { format!(" ({} expired)", have(*expired)) } else { String::new() },
    path = path.display()
)]
struct NoToken {
    path: PathBuf,
    expired: usize,
}

fn have(expired: usize) -> String {
    if expired == 1 { "1 has".to_owned() } else { format!("{expired} have") }
}

/// Files that the server reads again on SIGHUP, with the objects that they fill.
#[derive(Clone)]
struct Files {
    tokens: Option<(PathBuf, ClientTokens)>,
    tls: Option<(TlsFiles, Tls)>,
}

impl FrontDoorArgs {
    /// Reads the files and binds the addresses.
    ///
    /// # Errors
    /// If options contradict each other, a file cannot be used, or an address cannot be bound.
    pub async fn open(self) -> anyhow::Result<FrontDoor> {
        let limits = self.limits()?;
        for (address, option) in [(Some(self.listen), LISTEN), (self.operate_listen, OPERATE_LISTEN)] {
            let Some(address) = address.filter(|address| !address.ip().to_canonical().is_loopback()) else {
                continue;
            };
            if self.tokens.is_none() && !self.no_tokens_on_any_address {
                return Err(Failure::Usage(format!(
                    "{option} {address} is reached by other machines, and without tokens everyone who reaches it may \
                     change everything: make a token with `doppel token new NAME --role operate --tokens FILE` and \
                     give --tokens FILE, or give --no-tokens-on-any-address"
                ))
                .into());
            }
        }
        if self.tokens.is_none() && !self.names.is_empty() {
            tracing::warn!(
                "--allow-host is given and --tokens is not: everyone who reaches a proxy in front of this server may read and change everything"
            );
        }
        let tokens = match self.tokens {
            None => None,
            Some(path) => {
                let read = token_file::read(&path)?;
                let census = Census::of(&read);
                if census.valid() == 0 {
                    return Err(NoToken { path, expired: census.expired }.into());
                }
                census.log("tokens are taken");
                Some((path, ClientTokens::from(read)))
            }
        };
        let tls = match self.tls_cert.zip(self.tls_key) {
            None => None,
            Some((certificate, key)) => {
                let files = TlsFiles { certificate, key, client_ca: self.tls_client_ca };
                let tls = Tls::read(&files)?;
                Some((files, tls))
            }
        };
        let of_tls = || tls.as_ref().map(|(_, tls)| tls.clone());
        let clients = ServerListener { listener: listen::bind(self.listen, LISTEN).await?, tls: of_tls() };
        let operators = match self.operate_listen {
            None => None,
            Some(address) => {
                Some(ServerListener { listener: listen::bind(address, OPERATE_LISTEN).await?, tls: of_tls() })
            }
        };
        let access =
            Access { hosts: self.names.into(), tokens: tokens.as_ref().map(|(_, tokens)| tokens.clone()) };
        Ok(FrontDoor {
            listeners: ServerListeners { clients, operators, access },
            limits,
            files: Files { tokens, tls },
        })
    }

    fn limits(&self) -> anyhow::Result<Limits> {
        let bytes = |size: ByteSize| usize::try_from(size.0).unwrap_or(usize::MAX);
        if self.body_memory.0 < BODY_MEMORY_MIN {
            return Err(Failure::Usage("--body-memory is at least 16MiB".to_owned()).into());
        }
        let all = bytes(self.body_memory);
        let of_client = self.client_body_memory.map_or(all / 2, bytes).min(all);
        if of_client < CLIENT_MEMORY_MIN {
            return Err(Failure::Usage("--client-body-memory is at least 4MiB".to_owned()).into());
        }
        let default = Limits::default();
        // A single request within the limits always fits into the memory of its client: its body compressed
        // and decompressed, or decompressed with the answers to its lines.
        let body_bytes = default.body_bytes.min(of_client / 2);
        Ok(Limits {
            body_memory_bytes: all,
            body_bytes,
            wire_bytes: default.wire_bytes.min(body_bytes),
            lines: default.lines.min(of_client / 4 / LINE_ANSWER_BYTES),
            client: ClientLimits {
                requests: self.client_requests,
                long_polls: self.client_long_polls,
                exports: LIMITS.exports,
                flushes: LIMITS.flushes,
                scrapes: LIMITS.scrapes,
                body_bytes: of_client,
                unpacking: default.client.unpacking,
            },
            ..default
        })
    }
}

impl FrontDoor {
    /// URL of the listener for clients.
    ///
    /// # Errors
    /// If the system does not report the bound address.
    pub fn url(&self) -> io::Result<String> {
        url(&self.listeners.clients)
    }

    /// Announces on standard output, and to the service manager if there is one, that the server answers
    /// requests.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub fn announce(&self, who: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        writeln!(out, "{who} is listening on {}", self.url()?)?;
        if let Some(operators) = &self.listeners.operators {
            writeln!(out, "{who} is listening for operators on {}", url(operators)?)?;
        }
        out.flush()?;
        notify::ready();
        Ok(())
    }

    /// Reads tokens and certificates again at every SIGHUP. A file that cannot be used changes nothing.
    ///
    /// # Errors
    /// If the system refuses to handle the signal.
    pub fn reread_on_hangup(&self) -> anyhow::Result<()> {
        // Without files, SIGHUP keeps its default action: it ends the process, as when its terminal is
        // closed.
        if self.files.tokens.is_none() && self.files.tls.is_none() {
            return Ok(());
        }
        let mut hangup = signal(SignalKind::hangup()).context("cannot wait for SIGHUP")?;
        let files = self.files.clone();
        tokio::spawn(async move {
            while hangup.recv().await.is_some() {
                let files = files.clone();
                // Reading a file blocks.
                if tokio::task::spawn_blocking(move || files.reread()).await.is_err() {
                    tracing::error!("reading tokens and certificates again panicked");
                }
            }
        });
        Ok(())
    }
}

impl Files {
    fn reread(&self) {
        if let Some((path, tokens)) = &self.tokens {
            match token_file::read(path) {
                Ok(read) => {
                    let census = Census::of(&read);
                    tokens.replace(read);
                    census.log("the tokens were read anew");
                    if census.valid() == 0 {
                        tracing::warn!(
                            "no token is taken any more: every request is refused until the file has a valid token"
                        );
                    }
                }
                Err(error) => tracing::error!(
                    error = &error as &(dyn std::error::Error + 'static),
                    "the tokens stay as they were"
                ),
            }
        }
        if let Some((files, tls)) = &self.tls {
            match tls.reread(files) {
                Ok(()) => tracing::info!("certificate and key were read anew"),
                Err(error) => tracing::error!(
                    error = &error as &(dyn std::error::Error + 'static),
                    "certificate and key stay as they were"
                ),
            }
        }
    }
}

fn url(listening: &ServerListener<TcpListener>) -> io::Result<String> {
    let scheme = if listening.tls.is_some() { "https" } else { "http" };
    Ok(format!("{scheme}://{}", listening.listener.local_addr()?))
}
