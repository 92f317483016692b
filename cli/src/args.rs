//! Options of every command that asks a server.

use std::path::PathBuf;

use clap::Args;

/// Where `doppel serve` listens unless told otherwise.
pub(crate) const DEFAULT_SERVER: &str = "http://127.0.0.1:7700";

/// How to reach a server.
#[derive(Debug, Args)]
pub(crate) struct ServerArgs {
    /// The server to ask, such as http://127.0.0.1:7700, or https://proxy.example.org/doppel where a proxy is in front of it. The
    /// variable DOPPEL_TOKEN is the token for one that asks for it.
    #[arg(long, value_name = "URL", env = "DOPPEL_SERVER", default_value = DEFAULT_SERVER)]
    pub(crate) server: String,
    #[command(flatten)]
    pub(crate) credentials: CredentialArgs,
}

/// Credentials that a command shows to a server, and the certificates by which it trusts the server.
#[derive(Debug, Args)]
pub(crate) struct CredentialArgs {
    /// A file with the token to show, which `doppel token new` has printed; before DOPPEL_TOKEN.
    #[arg(long, value_name = "FILE", env = "DOPPEL_TOKEN_FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// A file of certificates in PEM by which an https server is known, in place of those of the system.
    #[arg(long, value_name = "FILE", env = "DOPPEL_CA")]
    pub(crate) ca: Option<PathBuf>,
    /// A file with certificate and private key in PEM, for a server that was started with --tls-client-ca.
    #[arg(long, value_name = "FILE", env = "DOPPEL_CLIENT_CERT")]
    pub(crate) client_cert: Option<PathBuf>,
}

/// A server and the form of the answer.
#[derive(Debug, Args)]
pub(crate) struct AskArgs {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// Print JSON, one value a line.
    #[arg(long)]
    pub(crate) json: bool,
}
