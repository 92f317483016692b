//! How the main content of a page was found. This is part of the answer of `POST /v1/probe`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The part of a page that is compared as its main content, and the parts that are left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = MainContent)]
pub struct MainContentAnswer {
    /// The part that is compared. `main`: the main element. `page`: the text that the rules leave of the
    /// page, without its title. `page-and-title`: the same text with the title. `whole`: the whole page,
    /// because each of the other parts has too few tokens.
    pub part: String,
    /// Number of tokens in the whole page.
    pub page_tokens: u64,
    /// Number of tokens that are compared.
    pub taken_tokens: u64,
    /// Number of tokens that are left out.
    pub left_out_tokens: u64,
    /// The text that is left out, by rule.
    pub left_out: Vec<OmittedPart>,
}

/// The text that one rule leaves out of the main content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = LeftOut)]
pub struct OmittedPart {
    /// Name of the rule: `navigation`, `header`, `footer`, `side-bar`, `search`, `dialog`, `control`,
    /// `promotion`, `hidden`, `title`, or `outside-main`.
    pub rule: String,
    /// Number of tokens that the rule leaves out.
    pub tokens: u64,
    /// Beginning of the text that the rule leaves out. A final `…` means that the text continues.
    pub text: String,
}
