//! Creates clients of the server that the command line names.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use doppel_contract::client::{Client, ClientError, Credentials, Notice};
use doppel_terminal::exit::Failure;
use doppel_terminal::output::say;

use crate::args::{CredentialArgs, DEFAULT_SERVER, ServerArgs};

/// How long a command retries if the server has answered an earlier request and now does not.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Environment variable with a token. There is no option for the token, because other users can see the
/// arguments of a process.
const TOKEN: &str = "DOPPEL_TOKEN";

/// Creates a client of the server in `args`. The client says on standard error when it waits for the server.
pub(crate) fn connect(args: &ServerArgs) -> anyhow::Result<Client> {
    connect_to(&args.server, &args.credentials)
}

/// Like [`connect`], but for a server that another option names.
pub(crate) fn connect_to(server: &str, credentials: &CredentialArgs) -> anyhow::Result<Client> {
    // An empty variable counts as missing.
    let named = if server.is_empty() { DEFAULT_SERVER } else { server };
    let client = Client::with(named, &read(credentials)?).map_err(|error| match error {
        ClientError::Base(_) => Failure::Usage(format!("--server {error}")).into(),
        other => anyhow::Error::new(other),
    });
    Ok(client?.with_notices(tell))
}

fn read(CredentialArgs { token_file, ca, client_cert }: &CredentialArgs) -> anyhow::Result<Credentials> {
    let token = match named(token_file.as_deref()) {
        Some(path) => Some(
            fs::read_to_string(path)
                .with_context(|| format!("cannot read the token in {}", path.display()))?,
        ),
        None => std::env::var(TOKEN).ok(),
    };
    let token = token.map(|token| token.trim().to_owned()).filter(|token| !token.is_empty());
    let pem = |path: Option<&Path>, what: &str| {
        let bytes = named(path).map(|path| {
            fs::read(path).with_context(|| format!("cannot read the {what} in {}", path.display()))
        });
        bytes.transpose()
    };
    let ca = pem(ca.as_deref(), "certificates")?;
    let identity = pem(client_cert.as_deref(), "certificate and key")?;
    Ok(Credentials { token, ca, identity })
}

/// Returns the path, or `None` if it is empty: an empty variable counts as missing.
fn named(path: Option<&Path>) -> Option<&Path> {
    path.filter(|path| !path.as_os_str().is_empty())
}

fn tell(notice: &Notice<'_>) {
    match notice {
        Notice::Away { url, reason, patience } => {
            let seconds = patience.as_secs();
            say!("doppel: no server answers at {url} ({reason}); trying for {seconds} s");
        }
        Notice::Busy { said, patience } => {
            say!("doppel: {said}; trying for {} s", patience.as_secs());
        }
        Notice::Back => say!("doppel: the server answers"),
    }
}
