//! How a server listens to clients: names, tokens, TLS, a listener for operators, and how much one client may take.
//!
//! Invariant: without tokens nobody is answered at an address that other machines reach, unless the operator has said so in so many words.

pub mod token_file;

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use doppel_coordinator::ServerListeners;
use doppel_coordinator::access::{Access, HostName, Tokens};
use doppel_coordinator::limits::{CLIENT, ClientLimits, LINE_ANSWER_BYTES, LONG_POLLS, Limits, REQUESTS};
use doppel_http::{ServerListener, Tls, TlsFiles};
use doppel_terminal::exit::Failure;
use doppel_terminal::size::ByteSize;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::process::notify;
use crate::process::{self, LISTEN};
use token_file::Census;

/// The least memory for bodies: four requests of the least that `--body-memory` leaves for one.
const BODY_MEMORY_MIN: u64 = 16 << 20;

/// The least of it for one client.
const CLIENT_MEMORY_MIN: usize = 4 << 20;

/// How a server listens to clients.
#[derive(Debug, Args)]
pub struct FrontDoorArgs {
    /// Address and port to listen on; port 0 is any free one. One that other machines reach needs --tokens.
    #[arg(long, value_name = "IP:PORT", env = "DOPPEL_LISTEN", default_value = "127.0.0.1:7700", value_parser = process::address)]
    listen: SocketAddr,
    /// A name under which clients may ask, beside localhost and addresses, such as doppel.example.org; give it where the name
    /// of a machine, a service or a proxy is asked. May be given several times, or as a list with commas. Others are refused, so that
    /// no page in a browser can read or change anything by leading its own name here.
    #[arg(long = "allow-host", value_name = "NAME", env = "DOPPEL_ALLOW_HOST", value_delimiter = ',')]
    names: Vec<HostName>,
    /// A file of tokens, to which `doppel token new` adds; read anew on SIGHUP. With it every request needs a token whose role allows
    /// it, but for health, the contract and the files of the dashboard.
    #[arg(long, value_name = "FILE", env = "DOPPEL_TOKENS")]
    tokens: Option<PathBuf>,
    /// Listen without tokens on an address that other machines reach: whoever reaches it may read and change everything.
    #[arg(long, conflicts_with = "tokens")]
    no_tokens_on_any_address: bool,
    /// A second address and port, at which alone purges, repairs, rebalancing, backups and take-overs are answered.
    #[arg(long, value_name = "IP:PORT", env = "DOPPEL_OPERATE_LISTEN", value_parser = process::address)]
    operate_listen: Option<SocketAddr>,
    /// The server's certificate and those that lead to its authority, in PEM: clients ask with https then. Read anew on SIGHUP.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The private key of the certificate, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Certificates in PEM: a client has to show one that is signed by one of these.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_client_ca: Option<PathBuf>,
    /// Memory for request bodies, packed and unpacked, and the answers to their lines, of all requests together; at least 16MiB.
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    body_memory: ByteSize,
    /// Requests that one client may have in work at once. A client is a token, or else an address; one on this machine that needs no
    /// token has no limits.
    #[arg(long, value_name = "N", default_value_t = LIMITS.requests, value_parser = up_to::<REQUESTS>)]
    client_requests: usize,
    /// Long polls of the change feed that one client may have at once.
    #[arg(long, value_name = "N", default_value_t = LIMITS.long_polls, value_parser = up_to::<LONG_POLLS>)]
    client_long_polls: usize,
    /// The part of --body-memory that one client may have at once, at least 4MiB; half of it is for a body as it came, or for what it
    /// unpacks to [default: half of --body-memory].
    #[arg(long, value_name = "SIZE")]
    client_body_memory: Option<ByteSize>,
}

const LIMITS: ClientLimits = CLIENT;

/// The option of the address for operators.
const OPERATE_LISTEN: &str = "--operate-listen";

/// A number from 1 to what all clients may have.
fn up_to<const ALL: usize>(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|n| (1..=ALL).contains(n));
    number.ok_or_else(|| format!("a number of at least 1 and at most {ALL} is expected"))
}

/// Listeners that are taken, and what is read anew.
pub struct FrontDoor {
    /// Where it listens, and whom it answers.
    pub listeners: ServerListeners,
    /// How much it takes.
    pub limits: Limits,
    files: Files,
}

/// All who ask would be refused.
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

/// The files that are read anew on SIGHUP.
#[derive(Clone)]
struct Files {
    tokens: Option<(PathBuf, Tokens)>,
    tls: Option<(TlsFiles, Tls)>,
}

impl FrontDoorArgs {
    /// Reads the files, and takes the addresses.
    ///
    /// # Errors
    /// When the options do not go together, a file cannot be used or an address cannot be had.
    pub async fn open(self) -> anyhow::Result<FrontDoor> {
        let limits = self.limits()?;
        for (address, option) in [(Some(self.listen), LISTEN), (self.operate_listen, OPERATE_LISTEN)] {
            let Some(address) = address.filter(|address| !address.ip().to_canonical().is_loopback()) else {
                continue;
            };
            if self.tokens.is_none() && !self.no_tokens_on_any_address {
                return Err(Failure::Usage(format!(
                    "{option} {address} is reached by other machines, and without tokens whoever reaches it may change everything: \
                     make one with `doppel token new NAME --role operate --tokens FILE` and give --tokens FILE, or say \
                     --no-tokens-on-any-address"
                ))
                .into());
            }
        }
        if self.tokens.is_none() && !self.names.is_empty() {
            tracing::warn!(
                "names are allowed and there are no tokens: whoever reaches a proxy in front of this server may read and change everything"
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
                Some((path, Tokens::from(read)))
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
        let clients = ServerListener { listener: process::listen(self.listen, LISTEN).await?, tls: of_tls() };
        let operators = match self.operate_listen {
            None => None,
            Some(address) => Some(ServerListener {
                listener: process::listen(address, OPERATE_LISTEN).await?,
                tls: of_tls(),
            }),
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
        // A request that is within the limits has room while nothing else of the client is in work: its body as it came and as it
        // is unpacked, or that and the answers to its lines.
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
    /// The URL of the listener for clients.
    ///
    /// # Errors
    /// When the system does not say its address.
    pub fn url(&self) -> io::Result<String> {
        url(&self.listeners.clients)
    }

    /// Says where it listens, once requests are answered, also to the service manager that may have started the process.
    ///
    /// # Errors
    /// When standard output cannot be written.
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

    /// Reads tokens and certificates anew whenever the process gets SIGHUP. Those that cannot be used change nothing.
    ///
    /// # Errors
    /// When the system refuses the signal.
    pub fn reread_on_hangup(&self) -> anyhow::Result<()> {
        // Otherwise the signal ends the process, as when its terminal is closed.
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
                    tracing::error!("reading tokens and certificates anew panicked");
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
                            "no token is taken any more: whoever asks is refused until the file has one"
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
