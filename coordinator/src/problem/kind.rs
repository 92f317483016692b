//! The kinds of problems: the stable type names of error answers, with their statuses and meanings.
//!
//! Invariants: a published name keeps its status and meaning for the lifetime of `/v1` (docs/reference/http-conventions.md). The
//! OpenAPI document and docs/reference/http-conventions.md list all kinds.

use axum::http::StatusCode;

/// Kind of problem that an error answer reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ProblemKind {
    /// The request as a whole, or one parameter or field, is invalid.
    BadRequest,
    /// The request has no valid token.
    Unauthorized,
    /// This token, or this listener, does not allow the operation.
    Forbidden,
    /// A browser sent the request for a page of another site.
    CrossSite,
    /// The named resource does not exist.
    NotFound,
    /// The path does not support the method.
    MethodNotAllowed,
    /// The body arrived too slowly.
    SlowBody,
    /// The partition map is already being changed.
    Rebalancing,
    /// No change of the partition map is in progress.
    NothingToCancel,
    /// The feed cannot continue at this cursor.
    CursorGone,
    /// The body is too large.
    TooLarge,
    /// The content type or encoding is not supported.
    MediaType,
    /// The request names a host that is not this server.
    Misdirected,
    /// The collection's policy does not support the operation.
    NotByThisPolicy,
    /// Too many pages are pending.
    BacklogFull,
    /// The client holds as much of a resource as one client may hold.
    ClientLimit,
    /// An internal error occurred.
    Internal,
    /// A record is damaged.
    Damaged,
    /// A request to change the partition map could not be stored.
    Storage,
    /// Too many requests of this kind are in progress.
    Busy,
    /// Less of the service is available than the request needs.
    NotReady,
    /// A call took too long.
    Timeout,
    /// The store accepts no writes.
    ReadOnly,
    /// A range of tier 1 does not answer.
    RangeUnavailable,
    /// Tier 2 does not answer.
    IndexUnavailable,
    /// The service is shutting down.
    Stopping,
    /// The disk is full.
    DiskFull,
}

impl ProblemKind {
    /// All kinds, in order of their statuses.
    pub(crate) const ALL: [Self; 27] = [
        Self::BadRequest,
        Self::Unauthorized,
        Self::Forbidden,
        Self::CrossSite,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::SlowBody,
        Self::Rebalancing,
        Self::NothingToCancel,
        Self::CursorGone,
        Self::TooLarge,
        Self::MediaType,
        Self::Misdirected,
        Self::NotByThisPolicy,
        Self::BacklogFull,
        Self::ClientLimit,
        Self::Internal,
        Self::Damaged,
        Self::Storage,
        Self::Busy,
        Self::NotReady,
        Self::Timeout,
        Self::ReadOnly,
        Self::RangeUnavailable,
        Self::IndexUnavailable,
        Self::Stopping,
        Self::DiskFull,
    ];

    /// Returns the name, the status, whether a retry after some seconds may succeed, and the meaning.
    const fn facts(self) -> (&'static str, StatusCode, bool, &'static str) {
        const UNAVAILABLE: StatusCode = StatusCode::SERVICE_UNAVAILABLE;
        const FAILED: StatusCode = StatusCode::INTERNAL_SERVER_ERROR;
        match self {
            Self::BadRequest => (
                "bad-request",
                StatusCode::BAD_REQUEST,
                false,
                "the request, or the parameter or field that `field` names, is invalid",
            ),
            Self::Unauthorized => (
                "unauthorized",
                StatusCode::UNAUTHORIZED,
                false,
                "the server requires a token (docs/reference/security.md), and the request has no known token that is still valid",
            ),
            Self::Forbidden => (
                "forbidden",
                StatusCode::FORBIDDEN,
                false,
                "the token lacks the required role, or the operation belongs to the listener for operators",
            ),
            Self::CrossSite => (
                "cross-site",
                StatusCode::FORBIDDEN,
                false,
                "a browser sent the request for a page of another site",
            ),
            Self::NotFound => {
                ("not-found", StatusCode::NOT_FOUND, false, "the named resource does not exist")
            }
            Self::MethodNotAllowed => (
                "method-not-allowed",
                StatusCode::METHOD_NOT_ALLOWED,
                false,
                "the path does not support this method; `Allow` lists the methods that it supports",
            ),
            Self::SlowBody => {
                ("slow-body", StatusCode::REQUEST_TIMEOUT, false, "the body arrived too slowly")
            }
            Self::Rebalancing => {
                ("rebalancing", StatusCode::CONFLICT, true, "a change of the partition map is in progress")
            }
            Self::NothingToCancel => (
                "nothing-to-cancel",
                StatusCode::CONFLICT,
                false,
                "no change of the partition map is in progress",
            ),
            Self::CursorGone => (
                "cursor-gone",
                StatusCode::GONE,
                false,
                "the feed cannot continue at this cursor: export the collection again, and continue with the cursor of the export",
            ),
            Self::TooLarge => (
                "too-large",
                StatusCode::PAYLOAD_TOO_LARGE,
                false,
                "the body exceeds a limit: send it in parts",
            ),
            Self::MediaType => (
                "media-type",
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                false,
                "the operation does not support this content type or encoding",
            ),
            Self::Misdirected => (
                "misdirected",
                StatusCode::MISDIRECTED_REQUEST,
                false,
                "`Host` is not a configured name of the server (docs/reference/security.md)",
            ),
            Self::NotByThisPolicy => (
                "not-by-this-policy",
                StatusCode::UNPROCESSABLE_ENTITY,
                false,
                "the policy of the collection does not support the operation",
            ),
            Self::BacklogFull => {
                ("backlog-full", StatusCode::TOO_MANY_REQUESTS, true, "too many pages are pending")
            }
            Self::ClientLimit => (
                "client-limit",
                StatusCode::TOO_MANY_REQUESTS,
                true,
                "the client uses as much of a resource as one client may use at once, or must pause after its turn",
            ),
            Self::Internal => (
                "internal",
                FAILED,
                false,
                "an error inside the service; the log of the service names the cause",
            ),
            Self::Damaged => (
                "damaged",
                FAILED,
                false,
                "a record that the answer needs is damaged; the log of the service names the record",
            ),
            Self::Storage => ("storage", FAILED, false, "the request could not be stored"),
            Self::Busy => ("busy", UNAVAILABLE, true, "too many requests of this kind are in progress"),
            Self::NotReady => (
                "not-ready",
                UNAVAILABLE,
                true,
                "less of the service is available than the operation needs, or than the request asked for",
            ),
            Self::Timeout => (
                "timeout",
                UNAVAILABLE,
                true,
                "the call took too long; its work may still be done, and it is safe to repeat the request",
            ),
            Self::ReadOnly => {
                ("read-only", UNAVAILABLE, true, "the store failed and takes no writes until a restart")
            }
            Self::RangeUnavailable => {
                ("range-unavailable", UNAVAILABLE, true, "a part of the system of record does not answer")
            }
            Self::IndexUnavailable => ("index-unavailable", UNAVAILABLE, true, "the index does not answer"),
            Self::Stopping => ("stopping", UNAVAILABLE, true, "the service is shutting down"),
            Self::DiskFull => ("disk-full", StatusCode::INSUFFICIENT_STORAGE, false, "the disk is full"),
        }
    }

    /// Returns the name, which is the last part of the type.
    pub(crate) const fn name(self) -> &'static str {
        self.facts().0
    }

    /// Returns the type as it appears in answers.
    pub(crate) fn urn(self) -> String {
        format!("urn:doppel:problem:{}", self.name())
    }

    /// Returns the kind that the type `urn` of an answer names. `None` if no kind has this type.
    pub(crate) fn of(urn: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.urn() == urn)
    }

    /// Returns the HTTP status of answers of this kind.
    pub(crate) const fn status(self) -> StatusCode {
        self.facts().1
    }

    /// Returns true if the same request may succeed some seconds later.
    pub(crate) const fn is_passing(self) -> bool {
        self.facts().2
    }

    /// Returns the meaning in a few words.
    pub(crate) const fn meaning(self) -> &'static str {
        self.facts().3
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn problem_kinds_have_distinct_types() {
        let types: BTreeSet<String> = ProblemKind::ALL.into_iter().map(ProblemKind::urn).collect();
        assert_eq!(types.len(), ProblemKind::ALL.len());
        for kind in ProblemKind::ALL {
            assert_eq!(ProblemKind::of(&kind.urn()), Some(kind));
            let waits =
                matches!(kind.status(), StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
            assert!(kind.is_passing() || !waits, "{kind:?} comes without Retry-After");
        }
        assert_eq!(ProblemKind::of("urn:doppel:problem:unheard-of"), None);
    }
}
