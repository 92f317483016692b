//! Fast path in front of the router. It refuses requests for a host name that is not this server's, and
//! answers the common status request for one page on the thread that received it.
//!
//! Such an answer comes from memory: it neither waits nor fails. It therefore needs no permit, no log span
//! and no route, which would cost more than the answer itself. Like any other answer, it has a request id and
//! counts in the metrics.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};
use std::time::Instant;

use axum::Router;
use axum::http::{HeaderName, HeaderValue, Request};
use axum::response::{IntoResponse, Response};
use futures_util::future::Either;
use tower::Service;

use crate::access::{AdmissionCheck, Role};
use crate::app::App;
use crate::problem::Problem;
use crate::request::id::REQUEST_ID;
use crate::routes::advice::status;
use crate::server::middleware;

/// Header that names the policy of the collection with its parameters. The policy defines what `similarity`
/// measures.
pub(crate) const POLICY: HeaderName = HeaderName::from_static("doppel-policy");

/// The coordinator's HTTP interface as one service: the fast path, then the routes.
#[derive(Debug, Clone)]
pub(crate) struct HttpService {
    app: App,
    admission: AdmissionCheck,
    policy: HeaderValue,
    routes: Router,
}

impl HttpService {
    pub(crate) fn new(app: App, (admission, policy): (AdmissionCheck, HeaderValue), routes: Router) -> Self {
        Self { app, admission, policy, routes }
    }

    fn fast_answer<B>(&self, request: &Request<B>) -> Option<Response> {
        let begin = Instant::now();
        if let Some(host) = self.admission.hosts().refused_host(request) {
            return Some(self.refuse(&host, request, begin));
        }
        // Unauthorised requests, and requests that this fast path cannot answer, fall through to the router.
        if !status::is_status_request(request.method(), request.uri())
            || self
                .admission
                .admit(request.headers(), Some(Role::Read), self.app.arrival_clock().now())
                .is_err()
        {
            return None;
        }
        let mut response = status::answer_from_memory(&self.app, request.uri())?;
        let id = self.app.request_ids().id_of(request.headers());
        let (method, status) = (request.method().as_str(), response.status().as_u16());
        let taken = begin.elapsed();
        self.app.metrics().answered(method, status::PATH, status, taken);
        let seconds = taken.as_secs_f64();
        tracing::debug!(id = id.as_str(), method, route = status::PATH, status, seconds, "answered");
        response.headers_mut().insert(REQUEST_ID, id.into_header());
        response.headers_mut().insert(POLICY, self.policy.clone());
        Some(response)
    }

    /// Builds the refusal of a request that names the wrong host. The refusal does not depend on the
    /// operation.
    fn refuse<B>(&self, host: &str, request: &Request<B>, begin: Instant) -> Response {
        let id = self.app.request_ids().id_of(request.headers());
        let mut response = Problem::of_request(Problem::misdirected(host).into_response(), &id);
        let method = middleware::method_name(request.method());
        let status = response.status().as_u16();
        self.app.metrics().answered(method, middleware::UNMATCHED, status, begin.elapsed());
        response.headers_mut().insert(REQUEST_ID, id.into_header());
        response.headers_mut().insert(POLICY, self.policy.clone());
        response
    }
}

impl<B> Service<Request<B>> for HttpService
where
    Router: Service<Request<B>, Response = Response, Error = Infallible>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Either<Ready<Result<Response, Infallible>>, <Router as Service<Request<B>>>::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.routes.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        match self.fast_answer(&request) {
            Some(response) => Either::Left(ready(Ok(response))),
            None => Either::Right(self.routes.call(request)),
        }
    }
}
