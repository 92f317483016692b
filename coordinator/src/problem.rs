//! Error answers as clients see them: `application/problem+json` (RFC 9457). This module is the only place
//! that builds them.

pub(crate) mod kind;

use std::borrow::Cow;
use std::io;
use std::time::Duration;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use doppel_contract::answer;
use doppel_engine::export::ExportError;
use doppel_engine::probe::ProbeError;
use doppel_model::pairwise::Policy;
use doppel_partitioning::MappingError;
use doppel_protocol::{IndexError, RebalanceError, Tier1Error};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::limits::RETRY_AFTER_S;
use crate::problem::kind::ProblemKind;
use crate::request::id::RequestId;

/// Maximum number of characters of a host name that an answer repeats.
const HOST_CHARS: usize = 253;

/// An answer that is an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem(Box<answer::ProblemDetails>);

// The OpenAPI document describes a `Problem` by the problem document inside.
impl PartialSchema for Problem {
    fn schema() -> RefOr<Schema> {
        answer::ProblemDetails::schema()
    }
}

impl ToSchema for Problem {
    fn name() -> Cow<'static, str> {
        answer::ProblemDetails::name()
    }
}

impl Problem {
    fn new(kind: ProblemKind, detail: impl Into<String>) -> Self {
        Self(Box::new(answer::ProblemDetails {
            kind: kind.urn(),
            title: kind.status().canonical_reason().unwrap_or("error").to_owned(),
            status: kind.status().as_u16(),
            detail: detail.into(),
            field: None,
            retry_after: kind.is_passing().then_some(RETRY_AFTER_S),
            request_id: None,
        }))
    }

    /// Names the parameter or field at fault.
    pub(crate) fn about(mut self, field: impl Into<String>) -> Self {
        self.0.field = Some(field.into());
        self
    }

    /// 400: the request as a whole cannot be understood.
    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(ProblemKind::BadRequest, detail)
    }

    /// 400: one parameter or field is invalid.
    pub(crate) fn field(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::bad_request(detail).about(field)
    }

    /// 401: the request has no valid token.
    pub(crate) fn unauthorized(detail: impl Into<String>) -> Self {
        Self::new(ProblemKind::Unauthorized, detail)
    }

    /// 403: this token, or this listener, does not allow the operation.
    pub(crate) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(ProblemKind::Forbidden, detail)
    }

    /// 429: the client holds as many of a resource as one client may hold.
    pub(crate) fn client_limit(what: &str) -> Self {
        let detail = format!("this client has reached its limit of {what}; try again later");
        Self::new(ProblemKind::ClientLimit, detail)
    }

    /// 429: the client has had its turn, and must leave the turn to others for the time `left`.
    pub(crate) fn client_pause(what: &str, left: Duration) -> Self {
        let seconds = u32::try_from(left.as_secs()).unwrap_or(u32::MAX).saturating_add(1);
        let detail = format!(
            "this client received a {what} a moment ago, and the service makes one at a time; ask again in {seconds} s"
        );
        let mut problem = Self::new(ProblemKind::ClientLimit, detail);
        problem.0.retry_after = Some(seconds);
        problem
    }

    /// 403: a page of another site sent the request.
    pub(crate) fn cross_site() -> Self {
        Self::new(ProblemKind::CrossSite, "a browser sent this request for a page of another site")
    }

    /// 421: the request names a host that is not this server.
    pub(crate) fn misdirected(host: &str) -> Self {
        // A host name in a request can be very long, and people read the answer.
        let host: String = host.chars().take(HOST_CHARS).collect();
        let detail = format!(
            "the server does not answer requests for the host name {host:?}; use an IP address, localhost, or a name given with --allow-host"
        );
        Self::new(ProblemKind::Misdirected, detail)
    }

    /// 404: the resource does not exist.
    pub(crate) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(ProblemKind::NotFound, detail)
    }

    /// 405: the path does not support the method.
    pub(crate) fn method_not_allowed(detail: impl Into<String>) -> Self {
        Self::new(ProblemKind::MethodNotAllowed, detail)
    }

    /// 408: the body arrived too slowly.
    pub(crate) fn slow_body(detail: impl Into<String>) -> Self {
        Self::new(ProblemKind::SlowBody, detail)
    }

    /// 413: the body is too large.
    pub(crate) fn too_large(detail: impl Into<String>) -> Self {
        Self::new(ProblemKind::TooLarge, detail)
    }

    /// 415: the content type or encoding is not supported.
    pub(crate) fn media_type(detail: impl Into<String>) -> Self {
        Self::new(ProblemKind::MediaType, detail)
    }

    /// 422: the collection's policy does not support the operation.
    pub(crate) fn not_by_policy(policy: Policy, reason: &str) -> Self {
        let detail = format!("the policy {policy} {reason}");
        Self::new(ProblemKind::NotByThisPolicy, detail)
    }

    /// 500: an internal error. The cause belongs in the log, not in the answer.
    pub(crate) fn internal() -> Self {
        Self::new(
            ProblemKind::Internal,
            "an error inside the service; the log of the service names the cause",
        )
    }

    /// 503: the service is busy at the moment.
    pub(crate) fn busy(detail: impl Into<String>) -> Self {
        Self::new(ProblemKind::Busy, detail)
    }

    /// 503: less of the cluster is available than the request needs.
    pub(crate) fn not_ready(detail: impl Into<String>) -> Self {
        Self::new(ProblemKind::NotReady, detail)
    }

    /// 503: a call did not end in time. The call continues, so its work may still be done.
    pub(crate) fn timed_out(time: Duration) -> Self {
        let detail = format!(
            "the call took longer than {} s; its work may still be done, and it is safe to repeat the request",
            time.as_secs_f32()
        );
        Self::new(ProblemKind::Timeout, detail)
    }

    /// 503: the memory budget for bodies is used up.
    pub(crate) fn memory_full() -> Self {
        Self::busy("the memory for request bodies is used up; try again later")
    }

    /// 507: the disk is full.
    pub(crate) fn disk_full(detail: impl Into<String>) -> Self {
        Self::new(ProblemKind::DiskFull, detail)
    }

    /// Returns the parameter or field at fault.
    #[cfg(test)]
    pub(crate) fn about_field(&self) -> Option<&str> {
        self.0.field.as_deref()
    }

    /// Returns the description of the error.
    pub(crate) fn detail(&self) -> &str {
        &self.0.detail
    }

    /// Returns the HTTP status of the problem.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

impl From<Tier1Error> for Problem {
    fn from(refused: Tier1Error) -> Self {
        let detail = refused.to_string();
        match refused {
            Tier1Error::Full { .. } => Self::new(ProblemKind::BacklogFull, detail),
            Tier1Error::ClientFull { .. } => Self::new(ProblemKind::ClientLimit, detail),
            // The error text of the storage engine names files of the server, so the answer does not repeat
            // it.
            Tier1Error::ReadOnly(_) => {
                let detail = "the store failed and takes no writes until a restart; the log of the server names the cause";
                Self::new(ProblemKind::ReadOnly, detail)
            }
            Tier1Error::Unavailable(_) => Self::new(ProblemKind::RangeUnavailable, detail),
            Tier1Error::Stopping => Self::new(ProblemKind::Stopping, detail),
            Tier1Error::DiskFull(_) => {
                Self::disk_full(format!("{detail}; free disk space, and the server resumes by itself"))
            }
            Tier1Error::CursorGone => Self::new(ProblemKind::CursorGone, detail).about("cursor"),
            Tier1Error::BatchTooLarge { .. } => {
                tracing::error!(%detail, "tier 1 refused a batch as too large; the request gets 500");
                Self::internal()
            }
            Tier1Error::Damaged(_) => {
                tracing::error!(%detail, "a record needed for a request is damaged; the request gets 500");
                let detail =
                    "a record that the answer needs is damaged; the log of the server names the record";
                Self::new(ProblemKind::Damaged, detail)
            }
        }
    }
}

impl From<IndexError> for Problem {
    fn from(error: IndexError) -> Self {
        let kind =
            if error == IndexError::Stopping { ProblemKind::Stopping } else { ProblemKind::IndexUnavailable };
        Self::new(kind, error.to_string())
    }
}

impl From<RebalanceError> for Problem {
    fn from(error: RebalanceError) -> Self {
        let detail = error.to_string();
        match error {
            RebalanceError::Busy(_) => Self::new(ProblemKind::Rebalancing, detail),
            RebalanceError::Mapping(MappingError::Partition(_)) => Self::field("partition", detail),
            RebalanceError::Mapping(_) => Self::field("node", detail),
            RebalanceError::NothingToCancel => Self::new(ProblemKind::NothingToCancel, detail),
            RebalanceError::Unavailable(error) => error.into(),
            RebalanceError::Store(_) => {
                tracing::error!(detail, "cannot store a request to change the partition map; it is refused");
                Self::new(ProblemKind::Storage, detail)
            }
        }
    }
}

impl From<ProbeError> for Problem {
    fn from(error: ProbeError) -> Self {
        match error {
            ProbeError::Tier1(error) => error.into(),
            ProbeError::Index(error) => error.into(),
        }
    }
}

impl From<ExportError> for Problem {
    fn from(error: ExportError) -> Self {
        match error {
            ExportError::Tier1Error(refused) => refused.into(),
            ExportError::Spill { ref source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                Self::disk_full(format!("the disk is full: {error}; free disk space"))
            }
            ExportError::Spill { .. } | ExportError::Write(_) => {
                tracing::error!(error = &error as &(dyn std::error::Error + 'static), "an export failed");
                Self::internal()
            }
        }
    }
}

impl IntoResponse for Problem {
    /// Also stores the problem in the response's extensions, so that [`Problem::of_request`] can complete it.
    fn into_response(self) -> Response {
        let retry_after = self.0.retry_after.map(HeaderValue::from);
        let mut response = (self.status(), Json(&self.0)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = retry_after {
            headers.insert(header::RETRY_AFTER, seconds);
        }
        if self.status() == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response.extensions_mut().insert(self);
        response
    }
}

impl Problem {
    /// Adds the request id to an answer that is a problem. Other answers are returned unchanged.
    pub(crate) fn of_request(mut response: Response, id: &RequestId) -> Response {
        let Some(Self(mut problem)) = response.extensions_mut().remove::<Self>() else { return response };
        problem.request_id = Some(id.as_str().to_owned());
        let (mut parts, _) = response.into_parts();
        parts.headers.remove(header::CONTENT_LENGTH);
        let body = Json(problem).into_response().into_body();
        Response::from_parts(parts, body)
    }
}
