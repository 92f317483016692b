//! Options of the commands that send requests to a server.

use std::path::PathBuf;

use clap::Args;

/// URL at which `doppel serve` answers by default.
pub(crate) const DEFAULT_SERVER: &str = "http://127.0.0.1:7700";

/// Options that say how to reach a server.
#[derive(Debug, Args)]
pub(crate) struct ServerArgs {
    /// URL of the server, such as http://127.0.0.1:7700, or https://proxy.example.org/doppel if there is a
    /// proxy in front of it. If the server requires a token, put it into the environment variable
    /// DOPPEL_TOKEN or a --token-file.
    #[arg(long, value_name = "URL", env = "DOPPEL_SERVER", default_value = DEFAULT_SERVER)]
    pub(crate) server: String,
    #[command(flatten)]
    pub(crate) credentials: CredentialArgs,
}

/// Options that prove who the client is, and that let it recognise the server.
#[derive(Debug, Args)]
pub(crate) struct CredentialArgs {
    /// File with the token to send, as `doppel token new` has printed it. Takes precedence over DOPPEL_TOKEN.
    #[arg(long, value_name = "FILE", env = "DOPPEL_TOKEN_FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// File of certificates in PEM that identify an https server, instead of the certificates of the system.
    #[arg(long, value_name = "FILE", env = "DOPPEL_CA")]
    pub(crate) ca: Option<PathBuf>,
    /// File with certificate and private key in PEM, for a server that was started with --tls-client-ca.
    #[arg(long, value_name = "FILE", env = "DOPPEL_CLIENT_CERT")]
    pub(crate) client_cert: Option<PathBuf>,
}

/// Options that name a server and the form of the answer.
#[derive(Debug, Args)]
pub(crate) struct AskArgs {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// Print JSON, one value per line.
    #[arg(long)]
    pub(crate) json: bool,
}
