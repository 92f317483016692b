//! Collects the contents for which a plan is made.

use std::collections::{BTreeMap, HashMap};
use std::io::BufReader;
use std::sync::Arc;

use anyhow::{Context, ensure};
use doppel_contract::client::Method;
use doppel_control::layout;
use doppel_coordinator::limits::SAMPLE_CONTENTS;
use doppel_dataset::extracted;
use doppel_inputs::arguments::InputArgs;
use doppel_inputs::tally::Tally;
use doppel_model::pairwise::{Policy, Signer};
use doppel_model::signature::Signature;
use doppel_model::{ContentHash, PageUrl, Timestamp};
use doppel_protocol::{Body, VersionPlace};
use doppel_terminal::progress;

use crate::args::CredentialArgs;
use crate::client::connect_to;

/// A distinct content.
pub(super) struct Content {
    /// Smallest of its URLs; `None` if a server sent the content.
    pub(super) url: Option<PageUrl>,
    pub(super) signature: Arc<Signature>,
}

/// Distinct contents by their hashes.
pub(super) type Contents = BTreeMap<ContentHash, Content>;

/// Reads each distinct content that is live after the last input. Returns at least one.
///
/// # Errors
/// If an input does not exist, or there is no content.
pub(super) fn read(inputs: &InputArgs) -> anyhow::Result<(Contents, Tally)> {
    let mut last: HashMap<PageUrl, (Timestamp, Body)> = HashMap::new();
    let tally = extracted::pages(inputs, (Signer::new(Policy::default()), false), |pages| {
        for page in pages.into_iter().map(|page| page.submission) {
            let known = last.get(&page.url).map(|(date, body)| VersionPlace::new(*date, body));
            if known.is_none_or(|known| known < page.place()) {
                last.insert(page.url, (page.fetched_at, page.body));
            }
        }
        Ok(())
    })?;
    let mut contents = Contents::new();
    let live = last.into_iter().filter_map(|(url, (_, body))| match body {
        Body::Content(signature) => Some((url, signature)),
        Body::Redirect(_) | Body::Dead => None,
    });
    for (url, signature) in live.filter(|(_, signature)| signature.tokens() > 0) {
        contents
            .entry(signature.content())
            .and_modify(|known| {
                if known.url.as_ref() > Some(&url) {
                    known.url = Some(url.clone());
                }
            })
            .or_insert_with(|| Content { url: Some(url), signature });
    }
    if contents.is_empty() {
        tally.verdict(inputs.strict, 0)?;
        return Err(layout::no_content("the input").into());
    }
    Ok((contents, tally))
}

/// Reads a sample of the contents of a server. Returns at least one.
///
/// # Errors
/// If the server sends no complete sample, compares no shingles, or has no content.
pub(super) fn sample(server: &str, credentials: &CredentialArgs) -> anyhow::Result<Contents> {
    let bar = progress::waiting("reading a sample");
    let client = connect_to(server, credentials)?;
    let mut answer = BufReader::new(client.send(client.request(Method::GET, &["v1", "sample"]))?);
    let mut contents = Contents::new();
    while let Some(signature) = Signature::read(&mut answer).context("the sample ended early; try again")? {
        ensure!(
            contents.len() < SAMPLE_CONTENTS,
            "the server sends more than a sample; is it the same version?"
        );
        ensure!(
            Policy::default().accepts(&signature),
            "the server's policy does not compare shingles, and a plan needs shingles: only a server \
             with the policy jaccard has a plan"
        );
        contents.insert(signature.content(), Content { url: None, signature: Arc::new(signature) });
    }
    bar.finish_and_clear();
    if contents.is_empty() {
        return Err(layout::no_content("the server").into());
    }
    Ok(contents)
}

/// Iterates over the signatures in the order of their hashes.
pub(super) fn signatures(contents: &Contents) -> impl Iterator<Item = &Signature> {
    contents.values().map(|content| &*content.signature)
}
