//! `doppel ready`: says whether a server accepts work, for supervisors and scripts.

use std::time::Duration;

use clap::{Args, ValueEnum};
use doppel_contract::client::Method;
use doppel_terminal::output::Output;

use crate::args::ServerArgs;
use crate::client::connect;

/// Time limit of the request. A coordinator may take three seconds to ask the nodes about the ranges of a
/// cluster.
const LIMIT: Duration = Duration::from_secs(10);

/// Say whether a server takes work.
///
/// Prints the server's answer. Ends with code 0 if the server is ready, with 4 if it is not, and with 3 if
/// nothing answers. Useful as the health check of a container, and in scripts that wait for a server.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel ready
  until doppel ready; do sleep 1; done
  doppel ready --ranges all --server http://127.0.0.1:7700")]
pub(crate) struct Ready {
    /// Which parts of a cluster must work for it to be ready.
    #[arg(long, value_enum, value_name = "WHAT", default_value = "any")]
    ranges: Ranges,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Ranges {
    /// At least one node of tier 1 answers.
    Any,
    /// Each range has an owner that accepts writes.
    Served,
    /// All replicas of all ranges work.
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
        let answer = client.send(request)?.text()?;
        Output { json: false }.print(&(), |out| out.write_all(answer.as_bytes()))?;
        Ok(())
    }
}
