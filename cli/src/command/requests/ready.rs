//! `doppel ready`: whether a server takes work, for supervisors and scripts.

use std::time::Duration;

use clap::{Args, ValueEnum};
use doppel_contract::client::Method;
use doppel_terminal::output::Output;

use crate::args::ServerArgs;
use crate::client::connect;

/// How long an answer may take. That about the ranges of a cluster may take three seconds by itself.
const LIMIT: Duration = Duration::from_secs(10);

/// Say whether a server takes work.
///
/// Prints what the server says. Ends with 0 when it is ready, with 4 when it is not, and with 3 when nothing answers: for the health check
/// of a container, and for scripts that wait.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel ready
  until doppel ready; do sleep 1; done
  doppel ready --ranges all --server http://127.0.0.1:7700")]
pub(crate) struct Ready {
    /// What has to be there of a cluster: any node of tier 1, an owner that takes writes for each range, or all replicas.
    #[arg(long, value_enum, value_name = "WHAT", default_value = "any")]
    ranges: Ranges,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Ranges {
    Any,
    Served,
    All,
}

impl Ready {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let client = connect(&self.server)?;
        let ranges = match self.ranges {
            Ranges::Any => "any",
            Ranges::Served => "served",
            Ranges::All => "all",
        };
        let request = client.request(Method::GET, &["readyz"]).query(&[("ranges", ranges)]).timeout(LIMIT);
        let said = client.send(request)?.text()?;
        Output { json: false }.print(&(), |out| out.write_all(said.as_bytes()))?;
        Ok(())
    }
}
