//! What a client may do, and what an operation asks of it.

use std::fmt;
use std::str::FromStr;

/// What a token allows. Each includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Ask: statuses, groups, the feed, exports, reports, metrics.
    Read,
    /// Tell of pages, as a pipeline does.
    Write,
    /// Change what is there: purges, repairs, rebalancing, backups, take-overs.
    Operate,
}

/// The text is no role.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no role; the roles are read, write and operate")]
pub struct NoRole(String);

impl Role {
    /// All roles, the least first.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Operate];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Operate => "operate",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Role {
    type Err = NoRole;

    fn from_str(text: &str) -> Result<Self, NoRole> {
        Self::ALL.into_iter().find(|role| role.name() == text).ok_or_else(|| NoRole(text.to_owned()))
    }
}

/// The role that an operation needs, by its method and the pattern of its path; none for what is open to everybody.
///
/// Invariant: an operation that this rule does not name needs [`Role::Operate`] where it may change something, and
/// [`Role::Read`] elsewhere, so a new one is never open by omission.
pub(crate) fn required(method: &str, path: &str) -> Option<Role> {
    match (method, path) {
        // Health is asked for by whoever starts processes; the contract and the files of the dashboard hold no data.
        ("GET", "/healthz" | "/readyz" | "/openapi.json" | "/") => None,
        ("GET", path) if path.starts_with("/assets/") => None,
        // It has everything, in the form that a server is made from.
        ("GET", "/v1/backup") => Some(Role::Operate),
        ("GET", _) | ("POST", "/v1/status" | "/v1/probe") => Some(Role::Read),
        ("POST" | "DELETE", "/v1/pages") | ("POST", "/v1/flush") => Some(Role::Write),
        _ => Some(Role::Operate),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_include_those_before_them() {
        assert!(Role::Operate > Role::Write && Role::Write > Role::Read);
        for role in Role::ALL {
            assert_eq!(role.to_string().parse(), Ok(role));
        }
        assert!("admin".parse::<Role>().unwrap_err().to_string().contains("read, write and operate"));
    }

    #[test]
    fn what_nobody_has_named_is_not_open() {
        assert_eq!(required("GET", "/v1/new"), Some(Role::Read));
        assert_eq!(required("POST", "/v1/new"), Some(Role::Operate));
        assert_eq!(required("PUT", "/v1/pages"), Some(Role::Operate));
        assert_eq!(required("POST", "/v1/purge"), Some(Role::Operate));
        assert_eq!(required("GET", "/v1/backup"), Some(Role::Operate));
        assert_eq!(required("GET", "/metrics"), Some(Role::Read));
        assert_eq!(required("GET", "/healthz"), None);
    }
}
