//! `doppel token`: makes and lists the tokens by which clients may use a server.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use clap::{Args, Subcommand};
use doppel_coordinator::access::{Role, Token as Known, TokenHash, TokenName, new_token};
use doppel_model::Timestamp;
use doppel_node::front_door::token_file;
use doppel_snapshot::sync_directory;
use doppel_terminal::destination::directory_of;
use doppel_terminal::output::{Output, say, table};
use doppel_terminal::span::Span;
use serde_json::json;

/// Make tokens for a server that is started with --tokens, and list them.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Token {
    /// What to do.
    #[command(subcommand)]
    command: TokenCommand,
}

/// How long a token is valid if `--expires` is not given.
const LASTING: Span = Span(Duration::from_secs(90 * 24 * 60 * 60));

#[derive(Debug, Subcommand)]
enum TokenCommand {
    New(New),
    List(List),
}

/// Make a token, print it once or write it to a file, and add its hash to the file of tokens.
///
/// The file of tokens stores only hashes, so a lost token cannot be recovered: make another one, and remove
/// the old entry. A running server reads the file again when it receives SIGHUP.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel token new crawler-1 --role write --tokens /etc/doppel/tokens
  doppel token new ann --role operate --expires 7d --tokens /etc/doppel/tokens --out ann.token
  DOPPEL_TOKEN=$(cat ann.token) doppel status --server https://doppel.example.org http://example.org/")]
struct New {
    /// Name of the owner: letters, digits, hyphens, underscores and dots. The log and the audit trail of
    /// repairs show it.
    #[arg(value_name = "NAME")]
    name: TokenName,
    /// What the token allows: read (ask), write (also submit pages), or operate (also purge, repair,
    /// rebalance, back up).
    #[arg(long, value_name = "ROLE")]
    role: Role,
    /// How long the token is valid, such as 365d; after that the server refuses it [default: 90d].
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = lasting)]
    expires: Option<Span>,
    /// File of tokens to which the new one is added. A missing file is created.
    #[arg(long, value_name = "FILE", env = "DOPPEL_TOKENS")]
    tokens: PathBuf,
    /// Write the token to this new file, which only its owner may read, instead of printing it.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// List the tokens of a file: names, roles, and when they expire.
#[derive(Debug, Args)]
struct List {
    /// File of tokens.
    #[arg(long, value_name = "FILE", env = "DOPPEL_TOKENS")]
    tokens: PathBuf,
    /// Print JSON, one token per line.
    #[arg(long)]
    json: bool,
}

impl Token {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.command {
            TokenCommand::New(new) => new.run(),
            TokenCommand::List(list) => list.run(),
        }
    }
}

impl New {
    fn run(self) -> anyhow::Result<()> {
        let Self { name, role, expires: chosen, tokens, out } = self;
        let Span(time) = chosen.unwrap_or(LASTING);
        let token = new_token().context("the system gives no random bits")?;
        let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        // `expires` is rounded as in the file, because later commands read it from there.
        let expires = Timestamp::now().plus_millis(millis);
        // The file for the token is created first, so that no token becomes valid that cannot be stored.
        let mut secret = out.as_deref().map(create_secret).transpose()?;
        token_file::add(&tokens, &Known { name: name.clone(), role, expires, hash: TokenHash::of(&token) })?;
        match (&mut secret, &out) {
            (Some(file), Some(path)) => {
                let synced =
                    |file: &mut File| file.sync_all().and_then(|()| sync_directory(directory_of(path)));
                let written = writeln!(file, "{token}").and_then(|()| synced(file));
                written.with_context(|| format!("cannot write the token to {}", path.display()))?;
            }
            _ => {
                let mut out = io::stdout().lock();
                writeln!(out, "{token}")?;
                out.flush()?;
            }
        }
        let why = if chosen.is_none() {
            format!(" ({LASTING}, since --expires was not given)")
        } else {
            String::new()
        };
        say!(
            "doppel: the token of {name} allows {role} until {expires}{why}, and is refused from then on. It is not shown again. \
             A running server accepts it after SIGHUP."
        );
        Ok(())
    }
}

/// Parses how long a token is valid. Zero is refused, because nobody could use such a token.
fn lasting(text: &str) -> Result<Span, String> {
    match text.parse::<Span>() {
        Ok(Span(time)) if time.is_zero() => Err("a token must be valid for longer than 0 s".to_owned()),
        parsed => parsed.map_err(|error| error.to_string()),
    }
}

fn create_secret(path: &Path) -> anyhow::Result<File> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    file.with_context(|| format!("cannot create {} for the token", path.display()))
}

impl List {
    fn run(self) -> anyhow::Result<()> {
        let now = Timestamp::now();
        let tokens = token_file::read(&self.tokens)?;
        if self.json {
            let mut out = io::stdout().lock();
            for Known { name, role, expires, .. } in tokens {
                let line = json!({
                    "name": name.to_string(), "role": role.name(), "expires": expires.to_string(), "expired": expires <= now
                });
                writeln!(out, "{line}")?;
            }
            return Ok(());
        }
        let mut rows = vec![["name", "role", "expires"].map(str::to_owned).to_vec()];
        rows.extend(tokens.iter().map(|Known { name, role, expires, .. }| {
            let until = if *expires <= now { format!("{expires} (expired)") } else { expires.to_string() };
            vec![name.to_string(), role.to_string(), until]
        }));
        Output { json: false }.print(&(), |out| table(out, &rows))?;
        Ok(())
    }
}
