//! Waiting for a server: until it has time for a request, and until it has carried it out.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Context;
use doppel_contract::answer::{LoadBalance, PresentMapping};
use doppel_contract::client::{Client, ClientError, Method, ParsedAnswer, StatusCode};
use doppel_contract::{RebalanceOutcome, RebalancePlan, RebalanceRequest};
use doppel_terminal::interrupt;
use doppel_terminal::output::say;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Rebalance, Request};
use crate::command::requests::report::describe_progress;

/// Pause between two questions about the progress, at most.
const ASK: Duration = Duration::from_millis(500);
/// The first pause. Each is a quarter longer than the one before, so that a short change is seen, too.
const ASK_FIRST: Duration = Duration::from_millis(2);
/// How often the progress is printed.
const SAY: Duration = Duration::from_secs(2);

const INTERRUPTED: &str = "interrupted; the server goes on with what it has accepted, and `doppel report load-balance` says how far it is";
const INTERRUPTED_BEFORE: &str =
    "interrupted before its turn: the server goes on with the other change, and was not asked for this one";

/// How a change ended.
#[derive(Debug, Serialize)]
pub(super) struct CompletedChange {
    /// Number of the plan that is served now.
    pub(super) plan_version: u64,
    /// Since the server accepted it.
    pub(super) seconds: f64,
    /// Contents copied; null where the server was started anew after it.
    pub(super) copied: Option<u64>,
    /// Most over mean of contents per serving node, now.
    pub(super) imbalance: f64,
}

impl Rebalance {
    fn patience(&self) -> Duration {
        Duration::from_secs(self.patience)
    }

    /// The server's answer to the request; with `--wait` as soon as it has time for it.
    pub(super) fn accepted(
        &self,
        client: &Client,
        request: RebalanceRequest,
    ) -> anyhow::Result<ParsedAnswer<RebalancePlan>> {
        let body = Request { request, dry_run: self.dry_run };
        let mut said = false;
        let mut busy_since = Instant::now();
        loop {
            if self.wait {
                interrupt::set_message(INTERRUPTED)?;
            }
            let mut request = client.request(Method::POST, &["v1", "rebalance"]).json(&body);
            if self.wait {
                request = request.timeout(self.patience());
            }
            let error = match client.ask(request) {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let Some((what, status, text)) = busy(&error) else { return Err(error.into()) };
            if !self.wait {
                let text = format!("{text}; with --wait this command waits for its turn");
                return Err(ClientError::Refused { status, text }.into());
            }
            if busy_since.elapsed() > self.patience() {
                return Err(anyhow::Error::new(error).context(format!("no turn within {} s", self.patience)));
            }
            interrupt::set_message(INTERRUPTED_BEFORE)?;
            if !said {
                say!("doppel: {what}; waiting for its end");
                said = true;
            }
            sleep(ASK);
            while self.present(client)?.progress.is_some() {
                busy_since = Instant::now();
                sleep(ASK);
            }
        }
    }

    /// The present mapping, once the server answers.
    fn present(&self, client: &Client) -> anyhow::Result<PresentMapping> {
        self.get(client, &["v1", "rebalance"])
    }

    fn get<T: DeserializeOwned>(&self, client: &Client, path: &[&str]) -> anyhow::Result<T> {
        Ok(client.ask_patiently(&client.request(Method::GET, path), self.patience())?.value)
    }

    /// Asks until the change is done, and prints the progress to stderr.
    pub(super) fn until_done(
        &self,
        client: &Client,
        change: &RebalancePlan,
    ) -> anyhow::Result<CompletedChange> {
        let asked = || {
            self.present(client).context("gave up waiting; the server carries it out when it goes on again")
        };
        let begin = Instant::now();
        let (mut pause, mut due) = (ASK_FIRST, begin);
        let (plan_version, outcome) = loop {
            let PresentMapping { plan_version, progress, outcome, .. } = asked()?;
            let Some(progress) = progress else { break (plan_version, outcome) };
            if due <= Instant::now() {
                say!("doppel: {}", describe_progress(&progress));
                due = Instant::now() + SAY;
            }
            sleep(pause);
            pause = ASK.min(pause * 5 / 4);
        };
        match &outcome {
            Some(RebalanceOutcome { failed: Some(why), .. }) => {
                anyhow::bail!("it was not carried out: {why}")
            }
            None if plan_version == change.plan_version => {
                anyhow::bail!(
                    "plan {plan_version} is still served: it was not carried out, and the server's log says why"
                )
            }
            _ => {}
        }
        let LoadBalance { load, .. } = self.get(client, &["v1", "reports", "load-balance"])?;
        Ok(CompletedChange {
            plan_version,
            seconds: begin.elapsed().as_secs_f64(),
            copied: outcome.map(|outcome| outcome.copied),
            imbalance: load.node_imbalance,
        })
    }
}

/// What a server is busy with that refused a request, with its status and text; none when it refused for another reason.
fn busy(error: &ClientError) -> Option<(&'static str, StatusCode, &str)> {
    let ClientError::Refused { status, text } = error else { return None };
    let what = match *status {
        StatusCode::CONFLICT => "another change of the plan is under way",
        StatusCode::SERVICE_UNAVAILABLE => "the server is busy, mostly with another plan",
        _ => return None,
    };
    Some((what, *status, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_server_is_known() {
        let said = |status| ClientError::Refused { status, text: "node 503".to_owned() };
        assert!(busy(&said(StatusCode::CONFLICT)).unwrap().0.contains("another change"));
        assert!(busy(&said(StatusCode::SERVICE_UNAVAILABLE)).is_some());
        assert!(busy(&said(StatusCode::BAD_REQUEST)).is_none());
    }
}
