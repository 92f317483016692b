//! The server that the command line names.

use std::time::Duration;

use doppel_protocol::client::{Client, ClientError, Notice};

use crate::args::{DEFAULT_SERVER, ServerArgs};
use crate::exit::Failure;
use crate::output::say;

/// How long a command that the server has answered waits for further answers.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A client of the server that the command line names. It tells on standard error when it waits for the server.
pub(crate) fn connect(args: &ServerArgs) -> anyhow::Result<Client> {
    // An empty variable counts as none.
    let named = if args.server.is_empty() { DEFAULT_SERVER } else { &args.server };
    let client = Client::new(named).map_err(|error| match error {
        ClientError::Base(_) => Failure::Usage(format!("--server {error}")).into(),
        other => anyhow::Error::new(other),
    });
    Ok(client?.with_notices(tell))
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
