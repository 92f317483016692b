//! Roles of clients, and the role that each operation requires.

use std::fmt;
use std::str::FromStr;

/// Role of a token. Each role includes the roles before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Reads statuses, groups, the feed, exports, reports, and metrics.
    Read,
    /// Submits and deletes pages, as a crawl pipeline does.
    Write,
    /// Operates the service: purges, repairs, rebalancing, backups, take-overs.
    Operate,
}

/// Error for a text that does not name a role.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a role; the roles are read, write and operate")]
pub struct RoleError(String);

impl Role {
    /// All roles, least privileged first.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Operate];

    /// Returns the name of the role.
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
    type Err = RoleError;

    fn from_str(text: &str) -> Result<Self, RoleError> {
        Self::ALL.into_iter().find(|role| role.name() == text).ok_or_else(|| RoleError(text.to_owned()))
    }
}

/// Returns the role that an operation requires, given its method and path pattern. `None` if the operation is
/// open to every client.
///
/// Invariant: an operation that this function does not name requires [`Role::Read`] if its method is `GET`,
/// and [`Role::Operate`] otherwise. A new operation is therefore never open by omission.
pub(crate) fn required(method: &str, path: &str) -> Option<Role> {
    match (method, path) {
        // Process managers check health without a token. The contract and the dashboard's files contain no
        // data of the collection.
        ("GET", "/healthz" | "/readyz" | "/openapi.json" | "/") => None,
        ("GET", path) if path.starts_with("/assets/") => None,
        // A backup contains the whole collection, and anybody can start a server from it.
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
    fn operations_without_a_rule_are_not_open() {
        assert_eq!(required("GET", "/v1/new"), Some(Role::Read));
        assert_eq!(required("POST", "/v1/new"), Some(Role::Operate));
        assert_eq!(required("PUT", "/v1/pages"), Some(Role::Operate));
        assert_eq!(required("POST", "/v1/purge"), Some(Role::Operate));
        assert_eq!(required("GET", "/v1/backup"), Some(Role::Operate));
        assert_eq!(required("GET", "/metrics"), Some(Role::Read));
        assert_eq!(required("GET", "/healthz"), None);
    }
}
