//! Why two pages are, or are not, duplicates: the answer of `GET /v1/explain`.

use doppel_model::PartitionId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Advice;
use crate::winner_rule::WinnerRule;

/// Explains why two pages are, or are not, duplicates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Explanation {
    /// The first page of the comparison.
    pub a: ExplainedPage,
    /// The second page of the comparison.
    pub b: ExplainedPage,
    /// Policy of the collection with its parameters, such as `jaccard:tau=0.8`.
    pub policy: String,
    /// All measures of the comparison; null if a page has no content.
    pub measures: Option<ComparisonMeasures>,
    /// Whether the two contents are near-duplicates under the policy.
    pub duplicate: bool,
    /// The explanation in words.
    pub reason: String,
    /// Greatest possible age of the answer in milliseconds, at most 5,000. Present only if a replica answered
    /// in place of an owner that does not respond. Normally absent: owners answer with the current state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_ms: Option<u64>,
}

/// A page in the comparison of two pages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Side)]
pub struct ExplainedPage {
    /// Current advice about the page.
    pub advice: Advice,
    /// URL of the page whose content is compared: the page itself, or the page at the end of its redirects.
    pub compared_url: Option<String>,
    /// The content that is compared.
    pub content: Option<ContentDetails>,
    /// The first 20 kept pages of the group that precede this page in the winner order. This page is a
    /// duplicate of the first kept page that is its near-duplicate, and is kept if there is no such page. The
    /// list is empty for a winner, for a page in no group, and for a group in quarantine, which keeps all its
    /// pages.
    pub kept_before: Vec<PrecedingKeptPage>,
}

/// A kept page that precedes another page in the winner order of their group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = KeptBefore)]
pub struct PrecedingKeptPage {
    /// URL of the kept page.
    pub url: String,
    /// The rule that puts the kept page before the other page.
    pub rule: WinnerRule,
    /// Similarity of the two pages, by the measure of the policy.
    pub similarity: f64,
    /// Whether the two pages are near-duplicates under the policy.
    pub duplicate: bool,
}

/// The content of a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Content)]
pub struct ContentDetails {
    /// Hash of the token sequence.
    pub hash: String,
    /// Number of tokens that are compared. The policies `content` and `copies` compare only the main content,
    /// and the server does not store the rest of the page. `POST /v1/probe` and `doppel explain FILE FILE`
    /// count the tokens of the whole page.
    pub tokens: u32,
    /// Number of distinct shingles. Present for the policies that compare shingles (`jaccard`, `content`,
    /// `copies`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shingles: Option<u32>,
    /// Whether the content has at least 20 tokens. A shorter content can be an exact copy but not a
    /// near-duplicate.
    pub comparable: bool,
    /// Language of the page: submitted with the page, or detected by a server that was started with
    /// `--detect-language`.
    pub language: Option<String>,
    /// Number of distinct shingles, followed by the numbers of shingles whose first word is in each half of
    /// the dictionary. A policy without shingles counts tokens and assigns half of them to each half of the
    /// dictionary.
    pub lengths: Vec<u32>,
    /// The partition that stores the content.
    #[schema(value_type = u32)]
    pub home: PartitionId,
    /// The partitions in which the content is compared.
    #[schema(value_type = Vec<u32>)]
    pub probed_partitions: Vec<PartitionId>,
}

/// All measures of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Measures)]
pub struct ComparisonMeasures {
    /// Whether the token sequences are equal.
    pub same_content: bool,
    /// Similarity from 0 to 1, by the measure of the policy.
    pub similarity: f64,
    /// Criteria of the policy. Two different contents are near-duplicates if they meet all of them.
    pub criteria: Vec<CriterionResult>,
    /// Details from shingles and sketches. Present for the policies that compare shingles (`jaccard`,
    /// `content`, `copies`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shingles: Option<ShingleComparison>,
}

/// A criterion of the policy for near-duplicates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Criterion)]
pub struct CriterionResult {
    /// The unit that is counted, such as `shingles`.
    pub what: String,
    /// Number of units that the two contents share.
    pub shared: u32,
    /// Number of units in total, to which `shared` relates.
    pub of: u32,
    /// The value that the policy requires, such as `above 0.8`.
    pub needed: String,
    /// Whether the pair meets the criterion.
    pub met: bool,
}

/// Comparison of the shingle sets and the sketches of two contents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Shingles)]
pub struct ShingleComparison {
    /// Number of shingles that only `a` contains.
    pub only_a: u32,
    /// Number of shingles that only `b` contains.
    pub only_b: u32,
    /// Jaccard coefficient estimated from the sketches. The estimate does not influence the decision.
    pub sketch_estimate: f64,
    /// Number of equal bands in the two sketches. One equal band makes the pair a candidate.
    pub equal_bands: usize,
    /// Number of bands in a sketch.
    pub bands: usize,
    /// Examples of common and of distinct shingles.
    pub examples: ShingleExamples,
}

/// Examples of shingles as 40-bit hashes in hexadecimal. The server stores the hash of a shingle, not its
/// words.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[schema(as = Examples)]
pub struct ShingleExamples {
    /// Hashes of shingles that both contents contain.
    pub common: Vec<String>,
    /// Hashes of shingles that only `a` contains.
    pub only_a: Vec<String>,
    /// Hashes of shingles that only `b` contains.
    pub only_b: Vec<String>,
}
