//! The file of `--tokens`, which lists the clients of a server and their roles.
//!
//! The file is TOML of at most [`BYTES_MAX`] bytes, with one `[[token]]` for each token. It contains hashes
//! and no tokens, so reading the file gives no access. Writing it gives full access. Errors name the line of
//! an unknown, repeated or malformed field. No token is read from a file with an error: a server with such a
//! file does not start, and a running server keeps the tokens that it has read before.

use std::collections::HashSet;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use doppel_coordinator::access::{Role, Token, TokenName};
use doppel_model::Timestamp;
use doppel_snapshot::sync_directory;
use doppel_terminal::destination::directory_of;
use doppel_terminal::toml_file::{self, TomlFault, TomlFileError, value};
use serde::Deserialize;
use toml::Spanned;

/// Largest accepted file, in bytes: enough for some 2,000 tokens.
const BYTES_MAX: u64 = 512 << 10;

/// Permissions of a new file, before the umask. A service with its own user has to read the file, and hashes
/// are no secret.
const PERMISSIONS: u32 = 0o644;

/// Comment at the beginning of a new file.
const HEADER: &str = "# Tokens of a Doppel server, by their hashes; `doppel token new` adds one. Remove an entry to take a token back, \
                      then send the server SIGHUP.\n";

/// Why a token file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenFileError {
    /// The file cannot be read or is invalid.
    #[error(transparent)]
    File(#[from] TomlFileError),
    /// The file cannot be opened for writing, locked or written.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// The action that failed.
        doing: &'static str,
        /// Path of the token file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The file has a token of this name already.
    #[error("{} has a token of the name {name}; take another name, or remove its entry first", path.display())]
    Taken {
        /// Path of the token file.
        path: PathBuf,
        /// Name that the new token and a token of the file share.
        name: TokenName,
    },
}

/// Contents of the file, as TOML.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TokensToml {
    #[serde(default)]
    token: Vec<TokenToml>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenToml {
    name: Spanned<String>,
    role: Spanned<String>,
    expires: Spanned<String>,
    sha256: Spanned<String>,
}

/// Numbers of valid tokens by role, and of expired tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Census {
    read: usize,
    write: usize,
    operate: usize,
    /// Number of expired tokens.
    pub(crate) expired: usize,
}

impl Census {
    /// Counts the tokens at the present time.
    pub fn of(tokens: &[Token]) -> Self {
        Self::at(tokens, Timestamp::now())
    }

    fn at(tokens: &[Token], now: Timestamp) -> Self {
        let mut census = Self::default();
        for token in tokens {
            let of = match token.role {
                _ if token.expires <= now => &mut census.expired,
                Role::Read => &mut census.read,
                Role::Write => &mut census.write,
                Role::Operate => &mut census.operate,
            };
            *of += 1;
        }
        census
    }

    /// Number of valid tokens of all roles.
    pub(crate) fn valid(self) -> usize {
        self.read + self.write + self.operate
    }

    /// Logs the numbers with the message `what`.
    pub fn log(self, what: &str) {
        let Self { read, write, operate, expired } = self;
        tracing::info!(tokens = self.valid(), read, write, operate, expired, "{what}");
    }
}

/// Reads the tokens of a file.
///
/// # Errors
/// If the file cannot be read or is invalid. The message names the file, the line and the reason.
pub fn read(path: &Path) -> Result<Vec<Token>, TomlFileError> {
    toml_file::read(path, BYTES_MAX, parse)
}

/// Appends a token to a file, and creates the file if it does not exist. The present text stays unchanged.
///
/// # Errors
/// If the file cannot be read or written, is invalid, would become too large, or has a token of this name.
pub fn add(path: &Path, token: &Token) -> Result<(), TokenFileError> {
    let mut open = OpenOptions::new();
    let file = open.read(true).append(true).create(true).mode(PERMISSIONS).open(path);
    let mut file = file.map_err(|source| failed("write", path, source))?;
    // The lock makes concurrent additions wait for each other.
    file.lock().map_err(|source| failed("lock", path, source))?;
    let present = toml_file::bytes(path, BYTES_MAX, &file)?;
    let known = toml_file::of_bytes(path, &present, parse)?;
    if known.iter().any(|known| known.name == token.name) {
        return Err(TokenFileError::Taken { path: path.to_owned(), name: token.name.clone() });
    }
    let length = present.len() as u64;
    let header = if present.is_empty() { HEADER } else { "" };
    let Token { name, role, expires, hash } = token;
    let entry = format!(
        "{header}\n[[token]]\nname = \"{name}\"\nrole = \"{role}\"\nexpires = \"{expires}\"\nsha256 = \"{hash}\"\n"
    );
    // Check that the file with the new entry can be read before writing it.
    let whole = [present.as_slice(), entry.as_bytes()].concat();
    if whole.len() as u64 > BYTES_MAX {
        return Err(TomlFileError::TooLarge { path: path.to_owned(), max: BYTES_MAX }.into());
    }
    toml_file::of_bytes(path, &whole, parse)?;
    let written = file.write_all(entry.as_bytes()).and_then(|()| file.sync_all());
    // A token counts as added only after the name of a new file is on disk.
    let written =
        written.and_then(|()| if present.is_empty() { sync_directory(directory_of(path)) } else { Ok(()) });
    written.map_err(|source| {
        // An incomplete entry would make the whole file invalid.
        let _ = file.set_len(length);
        failed("write", path, source)
    })
}

fn failed(doing: &'static str, path: &Path, source: io::Error) -> TokenFileError {
    TokenFileError::Io { doing, path: path.to_owned(), source }
}

fn parse(text: &str) -> Result<Vec<Token>, TomlFault> {
    let TokensToml { token: written } = toml_file::parse(text)?;
    let (mut names, mut hashes) = (HashSet::new(), HashSet::new());
    let token = |TokenToml { name, role, expires, sha256 }: &TokenToml| {
        let token =
            Token { name: value(name)?, role: value(role)?, expires: value(expires)?, hash: value(sha256)? };
        if !names.insert(token.name.to_string()) {
            return Err((name.span(), format!("{} is the name of a token above", token.name)));
        }
        // With two entries for one token, removing one entry would not revoke the token.
        if !hashes.insert(token.hash.to_string()) {
            return Err((sha256.span(), "a token above has the same hash".to_owned()));
        }
        Ok(token)
    };
    written.iter().map(token).collect()
}

#[cfg(test)]
mod tests {
    use doppel_coordinator::access::TokenHash;

    use super::*;

    fn token(name: &str, role: Role) -> Token {
        let expires = "2027-02-01T00:00:00Z".parse::<Timestamp>().unwrap();
        Token { name: name.parse().unwrap(), role, expires, hash: TokenHash::of(name) }
    }

    #[test]
    fn added_tokens_are_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens");
        let tokens = [token("ann", Role::Operate), token("crawler-1", Role::Write)];
        for one in &tokens {
            add(&path, one).unwrap();
        }
        assert_eq!(read(&path).unwrap(), tokens);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("# ") && !text.contains("ann\"\nsha256 = \"ann"));
        let again = add(&path, &token("ann", Role::Read)).unwrap_err();
        assert!(matches!(&again, TokenFileError::Taken { .. }), "{again}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "a refused token is not written");
    }

    #[test]
    fn expired_tokens_are_counted_apart() {
        let tokens = [("a", Role::Read), ("b", Role::Write), ("c", Role::Write), ("d", Role::Operate)];
        let tokens = tokens.map(|(name, role)| token(name, role));
        let last = tokens[0].expires.plus_millis(-1);
        let all = Census::at(&tokens, last);
        assert_eq!((all, all.valid()), (Census { read: 1, write: 2, operate: 1, expired: 0 }, 4));
        let none = Census::at(&tokens, tokens[0].expires);
        assert_eq!((none, none.valid()), (Census { expired: 4, ..Census::default() }, 0));
    }

    #[test]
    fn tokens_can_be_added_concurrently() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens");
        std::thread::scope(|scope| {
            for n in 0..8 {
                let path = &path;
                scope.spawn(move || add(path, &token(&format!("t{n}"), Role::Read)).unwrap());
            }
        });
        assert_eq!(read(&path).unwrap().len(), 8);
    }

    #[test]
    fn errors_name_their_line() {
        let entry = |name: &str, role: &str, expires: &str, hash: &str| {
            format!("[[token]]\nname = {name:?}\nrole = {role:?}\nexpires = {expires:?}\nsha256 = {hash:?}\n")
        };
        let hash = TokenHash::of("x").to_string();
        let at = "2027-02-01T00:00:00Z";
        let good = entry("a", "read", at, &hash);
        assert_eq!(parse(&good).unwrap().len(), 1);
        assert_eq!(parse("").unwrap(), []);
        let dir = tempfile::tempdir().unwrap();
        for (text, line, says) in [
            (entry("a b", "read", at, &hash), 2, "is not a token name"),
            (entry("a", "root", at, &hash), 3, "the roles are read, write and operate"),
            (entry("a", "read", "never", &hash), 4, "RFC 3339"),
            (entry("a", "read", at, "abc"), 5, "64 hexadecimal digits"),
            (format!("{good}{good}"), 7, "is the name of a token above"),
            (format!("{good}{}", entry("b", "read", at, &hash)), 10, "has the same hash"),
            ("token = []\n[[token]]\n".to_owned(), 2, "duplicate key"),
            (format!("{good}token = \"doppel_x\"\n"), 6, "unknown field"),
            ("[[tokens]]\n".to_owned(), 1, "unknown field"),
            ("[[token]]\nname = \"a\"\n".to_owned(), 1, "missing field"),
        ] {
            let path = dir.path().join("tokens");
            std::fs::write(&path, &text).unwrap();
            let error = read(&path).unwrap_err();
            assert!(
                matches!(&error, TomlFileError::Line { line: at, reason, .. } if *at == line && reason.contains(says)),
                "{text}: {error}"
            );
        }
        let error = read(&dir.path().join("none")).unwrap_err();
        assert!(error.to_string().starts_with("cannot read"), "{error}");
    }
}
