//! Why two pages are, or are not, duplicates: the answer of `GET /v1/explain`.

use doppel_model::PartitionId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Advice;
use crate::Rule;

/// Why two pages are, or are not, duplicates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Explanation {
    /// One page.
    pub a: Side,
    /// The other.
    pub b: Side,
    /// The policy with its parameters, such as `jaccard:tau=0.8`.
    pub policy: String,
    /// Every measure of F; none where a page has no content.
    pub measures: Option<Measures>,
    /// Whether the two contents are near-duplicates, F.
    pub duplicate: bool,
    /// Why, in words.
    pub reason: String,
    /// Where a range has no owner that answers, a replica does: what is told here is true of a moment no longer ago than so many
    /// milliseconds, at most 5,000. Absent as a rule: then it is of the owners.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_ms: Option<u64>,
}

/// What is known of one page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Side {
    /// Advice about it at this moment.
    pub advice: Advice,
    /// The page whose content is compared: the page itself, or the one at the end of its redirects.
    pub compared_url: Option<String>,
    /// The content that is compared.
    pub content: Option<Content>,
    /// The kept pages of its group that precede it in the winner order, the first 20 of them: a page is a duplicate of the
    /// first that it is near, and kept if it is near none. Empty for a winner, for a page in no group, and
    /// in a group in quarantine, where all are kept.
    pub kept_before: Vec<KeptBefore>,
}

/// A kept page that precedes another in the winner order of their group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct KeptBefore {
    /// The kept page.
    pub url: String,
    /// The rule by which it precedes the page.
    pub rule: Rule,
    /// How similar the two are, by the policy's own measure.
    pub similarity: f64,
    /// Whether they are near-duplicates, F.
    pub duplicate: bool,
}

/// A content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Content {
    /// Hash of the token sequence.
    pub hash: String,
    /// Tokens that are compared: under the policies `content` and `copies` those of the main content. What is left out is not stored;
    /// `POST /v1/probe` and `doppel explain FILE FILE` read it in the page.
    pub tokens: u32,
    /// Where signatures are of shingles (`jaccard`, `content`, `copies`): distinct shingles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shingles: Option<u32>,
    /// Whether it has the 20 tokens that a duplicate by similarity needs.
    pub comparable: bool,
    /// Language of the page: given with it, or detected by a server that was started with `--detect-language`.
    pub language: Option<String>,
    /// Distinct shingles, and those whose first word is in each half of the dictionary; under a policy without shingles its
    /// tokens, of which half are taken to be in each.
    pub lengths: Vec<u32>,
    /// The partition that stores it.
    #[schema(value_type = u32)]
    pub home: PartitionId,
    /// The partitions it is compared in.
    #[schema(value_type = Vec<u32>)]
    pub probed_partitions: Vec<PartitionId>,
}

/// Every measure of F.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Measures {
    /// Whether the token sequences are the same.
    pub same_content: bool,
    /// The policy's own measure, from 0 to 1.
    pub similarity: f64,
    /// What F asks for, all of which a pair of different contents has to have.
    pub criteria: Vec<Criterion>,
    /// Where signatures are of shingles (`jaccard`, `content`, `copies`): what shingles and sketches say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shingles: Option<Shingles>,
}

/// One thing that F asks of a pair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Criterion {
    /// What is counted, such as `shingles`.
    pub what: String,
    /// What the two have in common.
    pub shared: u32,
    /// Of so much.
    pub of: u32,
    /// What F asks for, such as `above 0.8`.
    pub needed: String,
    /// Whether the pair has it.
    pub met: bool,
}

/// What the sets of shingles of two contents say, and their sketches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Shingles {
    /// Shingles that only `a` has.
    pub only_a: u32,
    /// Shingles that only `b` has.
    pub only_b: u32,
    /// The Jaccard coefficient as estimated by the sketches. It decides nothing.
    pub sketch_estimate: f64,
    /// Bands of the sketch that are equal: at least one makes the pair a candidate.
    pub equal_bands: usize,
    /// Bands of the sketch.
    pub bands: usize,
    /// Examples of shingles.
    pub examples: Examples,
}

/// Some shingles. Only their 40-bit hashes are kept, not their words: here in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct Examples {
    /// Hashes of shingles that both have.
    pub common: Vec<String>,
    /// Hashes of shingles that only `a` has.
    pub only_a: Vec<String>,
    /// Hashes of shingles that only `b` has.
    pub only_b: Vec<String>,
}
