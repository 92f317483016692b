//! Answers requests before the coordinator has reached its cluster. The answers say that the process is
//! alive, and what it waits for.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use doppel_http::ServerListener;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::access::Hosts;
use crate::limits::WRITE_PAUSE;
use crate::problem::Problem;
use crate::request::id::{REQUEST_ID, RequestIds};
use crate::routes::operations;
use crate::server::{ServerListeners, connections, serve_both, until_set};

/// Maximum time for sending an answer once the cluster is reached. Making the answer takes no time.
const DRAIN: Duration = Duration::from_secs(1);

/// Serves connections at `listeners` until `reached` completes. `/healthz` answers as usual. All other paths,
/// including `/readyz`, answer 503 and say what is awaited. Later connections wait in the queues of the
/// listeners.
///
/// # Errors
/// If no connection could be accepted for a minute.
pub async fn serve_until_reached(
    listeners: &ServerListeners,
    awaited: impl Fn() -> String + Clone + Send + Sync + 'static,
    reached: impl Future<Output = ()>,
) -> io::Result<()> {
    let ServerListeners { clients, operators, access } = listeners;
    let routes = routes(awaited, access.hosts.clone());
    let ended = watch::Sender::new(false);
    let at = |listening| serve_listener(listening, routes.clone(), &ended);
    serve_both(at(lend(clients)), operators.as_ref().map(|door| at(lend(door))), reached, &ended).await
}

/// Serves one listener until `ended` becomes true. The future is boxed so that this crate contains the code
/// of a connection, and not each caller of [`serve_until_reached`].
fn serve_listener<'l>(
    listening: ServerListener<&'l TcpListener>,
    routes: Router,
    ended: &watch::Sender<bool>,
) -> Pin<Box<dyn Future<Output = io::Result<()>> + Send + 'l>> {
    let limits = connections(WRITE_PAUSE, DRAIN);
    Box::pin(doppel_http::serve(listening, routes, limits, until_set(ended), || ()))
}

/// Borrows the listener, because the service that follows uses it again.
fn lend(door: &ServerListener<TcpListener>) -> ServerListener<&TcpListener> {
    ServerListener { listener: &door.listener, tls: door.tls.clone() }
}

fn routes(awaited: impl Fn() -> String + Clone + Send + Sync + 'static, hosts: Hosts) -> Router {
    let ids = Arc::new(RequestIds::default());
    let identify = move |request: Request, next: Next| {
        let (id, refused_host) = (ids.id_of(request.headers()), hosts.refused_host(&request));
        async move {
            let response = match refused_host {
                Some(host) => Problem::misdirected(&host).into_response(),
                None => next.run(request).await,
            };
            let mut response: Response = Problem::of_request(response, &id);
            response.headers_mut().insert(REQUEST_ID, id.into_header());
            response
        }
    };
    Router::new()
        .route("/healthz", get(operations::healthz))
        .fallback(move || {
            let awaited = awaited();
            async move { Problem::not_ready(awaited) }
        })
        .layer(from_fn(identify))
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use axum::http::{StatusCode, header};
    use tower::ServiceExt;

    use super::*;

    async fn answer(method: &str, path: &str) -> (StatusCode, Option<String>, String) {
        let request = Request::builder().method(method).uri(path).header(REQUEST_ID, "mine");
        let request = request.body(Body::empty()).unwrap();
        let routes = routes(|| "waiting for a friend".to_owned(), Hosts::default());
        let response = routes.oneshot(request).await.unwrap();
        assert_eq!(response.headers()[REQUEST_ID], "mine");
        let again = response.headers().get(header::RETRY_AFTER);
        let again = again.map(|seconds| seconds.to_str().unwrap().to_owned());
        let status = response.status();
        let body = to_bytes(response.into_body(), 10_000).await.unwrap();
        (status, again, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn answers_name_what_is_awaited_and_health_checks_succeed() {
        assert_eq!(answer("GET", "/healthz").await, (StatusCode::OK, None, "ok\n".to_owned()));
        let misdirected = routes(|| "a name of a node".to_owned(), Hosts::default());
        let request = Request::get("/readyz").header("host", "evil.example").body(Body::empty()).unwrap();
        assert_eq!(misdirected.oneshot(request).await.unwrap().status(), StatusCode::MISDIRECTED_REQUEST);
        for (method, path) in
            [("GET", "/readyz"), ("POST", "/v1/pages"), ("GET", "/v1/status?url=http://a.example/")]
        {
            let (status, again, body) = answer(method, path).await;
            assert_eq!((status, again.as_deref()), (StatusCode::SERVICE_UNAVAILABLE, Some("2")), "{path}");
            let problem: serde_json::Value = serde_json::from_str(&body).unwrap();
            assert_eq!(problem["detail"], "waiting for a friend");
            assert_eq!(
                (&problem["type"], &problem["request_id"]),
                (&"urn:doppel:problem:not-ready".into(), &"mine".into())
            );
        }
    }
}
