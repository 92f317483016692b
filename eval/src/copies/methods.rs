//! Methods that are compared: policies, and the measure of `copies` over main contents that other extractors
//! find.
//!
//! The other extractors need the feature `extractors`.

use std::collections::HashMap;
use std::time::Instant;

use anyhow::Context;
use doppel_crawls::FetchedBody;
use doppel_model::pairwise::Policy;
use doppel_model::signature::Signature;
use doppel_model::{PageUrl, RawContent};
use doppel_text::{Extractor, PageText};

use super::pairs::{LabelledPairs, Pair};
use crate::ground_truth::kind::TruthKind;

/// The policy `copies` with its default threshold. `doppel-eval copies` also measures this policy,
/// [`JACCARD`] and [`CONTENT`] with other thresholds.
pub(super) const COPIES: &str = "copies";
pub(super) const JACCARD: &str = "jaccard:tau=0.8";
pub(super) const CONTENT: &str = "content:tau=0.8";

const POLICIES: [&str; 14] = [
    "jaccard:tau=0.6",
    "jaccard:tau=0.7",
    JACCARD,
    "jaccard:tau=0.9",
    "supershingle",
    "projection",
    "combined",
    "by-site:site=host",
    "simhash",
    "content:tau=0.6",
    "content:tau=0.7",
    CONTENT,
    "content:tau=0.9",
    COPIES,
];

/// Answers of a method for all pairs, in their order.
pub(super) struct Method {
    pub(super) name: String,
    /// Whether the method calls each pair near-duplicates.
    pub(super) accepted: Vec<bool>,
    /// Similarity of each pair; 0 if the two pages cannot be compared.
    pub(super) similarity: Vec<f64>,
    /// Seconds for all pages.
    pub(super) seconds: f64,
}

/// Function that finds the text of the main content in HTML.
type Extract = fn(&str) -> Option<String>;

/// Runs all methods on all pairs.
///
/// # Errors
/// If a page is a redirect.
pub(super) fn all(set: &LabelledPairs) -> anyhow::Result<Vec<Method>> {
    let mut methods = Vec::new();
    for name in POLICIES {
        let policy: Policy = name.parse()?;
        methods.push(method(name.to_owned(), policy, set, None)?);
    }
    for (name, extract) in OTHERS {
        methods.push(method(format!("copies, by {name}"), COPIES.parse()?, set, Some(extract))?);
    }
    Ok(methods)
}

fn method(
    name: String,
    policy: Policy,
    set: &LabelledPairs,
    extract: Option<Extract>,
) -> anyhow::Result<Method> {
    let begin = Instant::now();
    let mut extractor = Extractor::new(policy);
    let mut signatures: HashMap<&PageUrl, Signature> = HashMap::new();
    for (url, body) in &set.pages {
        signatures.insert(url, sign(&mut extractor, url, body, extract)?);
    }
    let seconds = begin.elapsed().as_secs_f64();
    let mut method = Method { name, accepted: Vec::new(), similarity: Vec::new(), seconds };
    for Pair { pair, kind, .. } in &set.pairs {
        let (Some(a), Some(b)) = (signatures.get(&pair.a), signatures.get(&pair.b)) else { continue };
        let comparison = policy.compare(a, b);
        let is_compared = comparison.same_content || policy.comparable(a) && policy.comparable(b);
        let similarity = if is_compared { comparison.similarity.as_f64() } else { 0.0 };
        // The signature of another extractor's text is one of plain text, whatever the page is. The
        // thresholds of the kind apply.
        let accepted = match (extract, policy) {
            (Some(_), Policy::Copies { text, within, across, .. }) => {
                let tau = match kind {
                    TruthKind::Graded => text,
                    TruthKind::JudgedOneHost | TruthKind::TransplantsOneHost => within,
                    TruthKind::JudgedTwoHosts | TruthKind::TransplantsTwoHosts | TruthKind::ExactJaccard => {
                        across
                    }
                };
                similarity > tau.as_f64()
            }
            _ => comparison.similar,
        };
        method.accepted.push(accepted);
        method.similarity.push(similarity);
    }
    Ok(method)
}

fn sign(
    extractor: &mut Extractor,
    url: &PageUrl,
    body: &FetchedBody,
    extract: Option<Extract>,
) -> anyhow::Result<Signature> {
    let raw = body.raw_content().with_context(|| format!("{url} has no content"))?;
    let redirects = || format!("{url} is a redirect");
    let (RawContent::Html { bytes, charset }, Some(extract)) = (raw, extract) else {
        return Ok(extractor.extract(url, raw).page().with_context(redirects)?.signature);
    };
    let mut decoded = String::new();
    if let Some(text) = extract(doppel_text::decode(bytes, charset, &mut decoded)) {
        let page = extractor.text_at(url, &text);
        if is_enough(&page.signature) {
            return Ok(page.signature);
        }
    }
    // As in the product, the whole page replaces a main content that is too short.
    match Extractor::default().page_text(url, raw) {
        PageText::Text(whole) => Ok(extractor.text_at(url, &whole).signature),
        PageText::Redirect(_) => Err(anyhow::Error::msg(redirects())),
    }
}

fn is_enough(signature: &Signature) -> bool {
    signature.tokens() >= doppel_model::pairwise::TOKENS_MIN
}

#[cfg(not(feature = "extractors"))]
const OTHERS: [(&str, Extract); 0] = [];

#[cfg(feature = "extractors")]
const OTHERS: [(&str, Extract); 2] =
    [("dom_smoothie", others::dom_smoothie), ("trafilatura", others::trafilatura)];

#[cfg(feature = "extractors")]
mod others {
    pub(super) fn dom_smoothie(html: &str) -> Option<String> {
        let mut readability = dom_smoothie::Readability::new(html, None, None).ok()?;
        readability.parse().ok().map(|article| article.text_content.to_string())
    }

    pub(super) fn trafilatura(html: &str) -> Option<String> {
        trafilatura::extract(html, &trafilatura::Options::default()).ok().map(|found| found.content_text)
    }
}
