//! Public HTTP interface of an engine in this process, on a port of its own, and queries to it.

use std::thread::{self, JoinHandle};

use anyhow::{Context, anyhow};
use doppel_contract::Status;
use doppel_coordinator::app::App;
use doppel_engine::ingest::Ingest;
use doppel_model::PageUrl;
use doppel_text::Extractor;
use reqwest::blocking::Client;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::papers::clustering::driver::Driver;

/// HTTP server that runs until it is dropped.
pub(super) struct PublicServer {
    address: String,
    close: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Fields of an answer about a page that the measurement checks.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct PageAnswer {
    pub(super) url: String,
    pub(super) status: Status,
    pub(super) winner: Option<String>,
    pub(super) duplicate_of: Option<String>,
    pub(super) similarity: Option<f64>,
}

#[derive(Serialize)]
struct StatusQuery<'a> {
    urls: &'a [PageUrl],
}

#[derive(Deserialize)]
struct StatusAnswer {
    pages: Vec<PageAnswer>,
}

impl PublicServer {
    /// Starts the server.
    ///
    /// # Errors
    /// If no port or thread is available.
    pub(super) fn open(driver: &Driver) -> anyhow::Result<Self> {
        let temp_dir = driver.scratch.path().join("tmp");
        std::fs::create_dir_all(&temp_dir).context("cannot create a temporary directory")?;
        let signer = driver.engine.signer.clone();
        let ingest = Ingest::with(1, move || Extractor::signing(signer.clone()));
        let ingest = ingest.context("cannot start an extractor thread")?;
        let app = App::new(driver.engine.services(ingest, driver.scratch.path(), temp_dir));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = runtime
            .block_on(TcpListener::bind("127.0.0.1:0"))
            .context("cannot listen on a port of 127.0.0.1")?;
        let address = format!("http://{}", listener.local_addr()?);
        let (close, closed) = oneshot::channel();
        let serve = move || {
            let shutdown = async { drop(closed.await) };
            if let Err(error) = runtime.block_on(doppel_coordinator::serve(listener, app, shutdown)) {
                // The next query fails because no server answers.
                tracing::error!(%error, "the HTTP server stopped; later queries fail");
            }
        };
        let thread = thread::Builder::new().name("door".to_owned()).spawn(serve)?;
        Ok(Self { address, close: Some(close), thread: Some(thread) })
    }

    /// Queries the status of pages.
    ///
    /// # Errors
    /// If the server does not answer for every page.
    pub(super) fn query(&self, http: &Client, urls: &[PageUrl]) -> anyhow::Result<Vec<PageAnswer>> {
        let request = http.post(format!("{}/v1/status", self.address)).json(&StatusQuery { urls });
        let StatusAnswer { pages } = request.send()?.error_for_status()?.json()?;
        if pages.len() == urls.len() {
            Ok(pages)
        } else {
            Err(anyhow!("the server sent {} answers to a query about {} pages", pages.len(), urls.len()))
        }
    }
}

impl Drop for PublicServer {
    fn drop(&mut self) {
        drop(self.close.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
