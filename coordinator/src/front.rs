//! The front of the routes: who asks under a name that is not this server's is refused, and the common question about a page is
//! answered here, on the thread that took it.
//!
//! Such an answer neither waits nor fails, so it needs no permit, no span for the log and no route, which cost more than the
//! answer itself. It has an id and is counted as any other.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};
use std::time::Instant;

use axum::Router;
use axum::http::{HeaderName, HeaderValue, Request};
use axum::response::{IntoResponse, Response};
use futures_util::future::Either;
use tower::Service;

use crate::access::{Gate, Role};
use crate::app::App;
use crate::middleware;
use crate::problem::Problem;
use crate::request_id::REQUEST_ID;
use crate::status;

/// The header of answers that names the collection's policy, with its parameters: what `similarity` measures in them.
pub(crate) const POLICY: HeaderName = HeaderName::from_static("doppel-policy");

/// The whole front door as one service.
#[derive(Debug, Clone)]
pub(crate) struct Front {
    app: App,
    gate: Gate,
    policy: HeaderValue,
    routes: Router,
}

impl Front {
    pub(crate) fn new(app: App, (gate, policy): (Gate, HeaderValue), routes: Router) -> Self {
        Self { app, gate, policy, routes }
    }

    fn answer_at_once<B>(&self, request: &Request<B>) -> Option<Response> {
        let begin = Instant::now();
        if let Some(host) = self.gate.hosts().refused(request) {
            return Some(self.refuse(&host, request, begin));
        }
        // Whoever may not ask goes on to the routes, as everything does that is not answered here.
        if !status::is_asked(request.method(), request.uri())
            || self.gate.admit(request.headers(), Some(Role::Read), self.app.arrivals().now()).is_err()
        {
            return None;
        }
        let mut response = status::without_rows(&self.app, request.uri())?;
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

    /// Whatever is asked, and however that would be answered.
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

impl<B> Service<Request<B>> for Front
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
        match self.answer_at_once(&request) {
            Some(response) => Either::Left(ready(Ok(response))),
            None => Either::Right(self.routes.call(request)),
        }
    }
}
