//! Tests of the whole public contract, against a fake of both tiers in memory.

mod ages;
mod assets;
mod backup;
mod cluster;
mod contract;
mod errors;
mod explain;
mod fake;
mod feed;
mod gate;
mod gone;
mod groups;
mod limits;
mod load_history;
mod mapping;
mod operations;
mod pages;
mod raw_page;
mod reference;
mod repairs;
mod request_id;
mod routes;
mod shares;
mod status;
mod winners;

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use doppel_contract::Markets;
use doppel_model::pairwise::Policy;
use doppel_protocol::{ClusterApi, MappingApi, Tier1Api, Tier2Api, WinnerOrder};
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::access::{Access, AdmissionCheck, Listener};
use crate::app::{App, MonitoredDirectory, Services};
use crate::limits::Limits;
use crate::routes::pages::NDJSON;
use crate::server::fast_path::HttpService;
use doppel_engine::ingest::Ingest;
use doppel_engine::shard_owners::ShardOwners;
use fake::{Fake, NOW};

const JSON: &str = "application/json";

/// A coordinator over the fake tiers.
struct TestService {
    router: HttpService,
    app: App,
    tiers: Arc<Fake>,
    _temp: tempfile::TempDir,
}

/// An HTTP answer, with its whole body.
#[derive(Debug)]
struct Reply {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl TestService {
    fn new() -> Self {
        Self::with(Limits::default())
    }

    fn with(limits: Limits) -> Self {
        Self::under(limits, WinnerOrder::DEFAULT, Markets::default(), false)
    }

    /// Creates a coordinator with these winner rules and named markets.
    fn electing(winners: WinnerOrder, markets: Markets) -> Self {
        Self::under(Limits::default(), winners, markets, false)
    }

    /// Creates a coordinator over an index with a partition map that has no plan yet.
    fn with_mapping() -> Self {
        Self::under(Limits::default(), WinnerOrder::DEFAULT, Markets::default(), true)
    }

    fn under(limits: Limits, winners: WinnerOrder, markets: Markets, has_mapping: bool) -> Self {
        Self::of(limits, (winners, markets), has_mapping, None, Policy::default())
    }

    /// Creates a coordinator that compares pages by this policy.
    fn comparing(policy: Policy) -> Self {
        Self::of(Limits::default(), (WinnerOrder::DEFAULT, Markets::default()), false, None, policy)
    }

    /// Creates a coordinator of a cluster.
    fn in_cluster(cluster: Arc<dyn ClusterApi>) -> Self {
        let elected = (WinnerOrder::DEFAULT, Markets::default());
        Self::of(Limits::default(), elected, false, Some(cluster), Policy::default())
    }

    fn of(
        limits: Limits,
        (winners, markets): (WinnerOrder, Markets),
        has_mapping: bool,
        cluster: Option<Arc<dyn ClusterApi>>,
        policy: Policy,
    ) -> Self {
        let temp = tempfile::tempdir().unwrap();
        let tiers = Arc::new(Fake::default());
        tiers.state().winners = winners;
        let app = App::new(Services {
            tier1: Arc::clone(&tiers) as Arc<dyn Tier1Api>,
            tier2: Arc::clone(&tiers) as Arc<dyn Tier2Api>,
            mapping: has_mapping.then(|| Arc::clone(&tiers) as Arc<dyn MappingApi>),
            cluster,
            policy,
            winners,
            markets,
            shard_owners: ShardOwners::fixed(vec!["local".to_owned(); 2]),
            ingest: Arc::new(Ingest::new(2, policy).unwrap()),
            registry: Registry::default(),
            tokens: None,
            clock: Arc::new(|| NOW),
            temp_dir: temp.path().to_owned(),
            directories: vec![MonitoredDirectory {
                name: "temp",
                path: temp.path().to_owned(),
                is_own: false,
            }],
            limits,
        });
        Self {
            router: crate::routes::http_service(
                app.clone(),
                AdmissionCheck::new(Access::default(), Listener::Only, app.clients()),
            ),
            app,
            tiers,
            _temp: temp,
        }
    }

    async fn send(&self, request: Request<Body>) -> Reply {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = axum::body::to_bytes(body, 64 << 20).await.unwrap();
        let reply = Reply { status: parts.status, headers: parts.headers, body };
        contract::check(&method, &path, &reply);
        reply
    }

    async fn get(&self, path: &str) -> Reply {
        self.send(Request::get(path).body(Body::empty()).unwrap()).await
    }

    async fn delete(&self, path: &str) -> Reply {
        self.send(Request::delete(path).body(Body::empty()).unwrap()).await
    }

    async fn post(&self, path: &str, kind: &str, body: impl Into<Body>) -> Reply {
        self.send(Request::post(path).header("content-type", kind).body(body.into()).unwrap()).await
    }

    async fn post_json(&self, path: &str, body: &Value) -> Reply {
        self.post(path, JSON, body.to_string()).await
    }

    /// Records pages and decides them.
    async fn store(&self, pages: &[Value]) {
        let lines: String = pages.iter().map(|page| format!("{page}\n")).collect();
        let reply = self.post("/v1/pages", NDJSON, lines).await;
        assert!(reply.lines().iter().all(|line| line["outcome"].is_string()), "{reply:?}");
        assert_eq!(self.post_json("/v1/flush?wait=true", &json!({})).await.json()["done"], true);
    }

    /// Sends a request and disconnects before the answer, but after the tiers' call of this name has begun.
    async fn ask_and_go(self: &Arc<Self>, method: &str, path: &str, call: &'static str) {
        let before = self.tiers.gate.count(call);
        let asking = tokio::spawn({
            let service = Arc::clone(self);
            let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
            async move { service.send(request).await.status }
        });
        self.tiers.gate.begun(call, before + 1).await;
        asking.abort();
        assert!(asking.await.unwrap_err().is_cancelled(), "{path} was answered");
    }

    async fn status(&self, url: &str) -> Value {
        let reply = self.get(&format!("/v1/status?url={url}")).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.json()
    }
}

impl Reply {
    #[track_caller]
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    #[track_caller]
    fn lines(&self) -> Vec<Value> {
        assert_eq!(self.status, 200, "{self:?}");
        assert_eq!(self.headers["content-type"], NDJSON);
        self.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// Checks that the answer is a problem document with this status, and returns the document.
    #[track_caller]
    fn problem(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.headers["content-type"], "application/problem+json", "{self:?}");
        let problem = self.json();
        assert_eq!(problem["status"], status);
        assert!(problem["type"].as_str().unwrap().starts_with("urn:doppel:problem:"), "{problem}");
        assert!(
            !problem["detail"].as_str().unwrap().is_empty() && !problem["title"].as_str().unwrap().is_empty()
        );
        let id = self.headers["x-request-id"].to_str().unwrap();
        assert!(!id.is_empty() && problem["request_id"] == id, "{self:?}");
        match self.headers.get("retry-after") {
            Some(seconds) => assert_eq!(problem["retry_after"].to_string(), seconds.to_str().unwrap()),
            None => assert!(![429, 503].contains(&status), "{self:?}"),
        }
        problem
    }
}

/// Returns `count` different words of a topic, starting with word `from`.
fn words(topic: &str, from: usize, count: usize) -> String {
    (from..from + count).map(|n| format!("{topic}{n} ")).collect()
}

/// Creates a page of 100 words of a topic. The last `other` words are unique to the page. The page shares
/// `96 - other` shingles with the page for which `other` is 0. J is 94 / 106 for 2 and 92 / 108 for 4.
fn page(url: &str, topic: &str, other: usize) -> Value {
    let own: String = url.chars().filter(char::is_ascii_alphanumeric).collect();
    json!({"url": url, "text": words(topic, 0, 100 - other) + &words(&own, 0, other)})
}
