//! What of a page is compared as its main content: in the answer of `POST /v1/probe`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What of a page is compared as its main content, and what is left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MainContent {
    /// Which part is taken: `main`, what stands in the main element; `page`, what the rules leave of the page without its title;
    /// `page-and-title`; or `whole`, the whole page, where each of these has too few tokens.
    pub part: String,
    /// Tokens of the whole page.
    pub page_tokens: u64,
    /// Those that are taken, which are compared.
    pub taken_tokens: u64,
    /// Those that are left out.
    pub left_out_tokens: u64,
    /// What is left out, by rule.
    pub left_out: Vec<LeftOut>,
}

/// What one rule leaves out of the main content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeftOut {
    /// The rule: `navigation`, `header`, `footer`, `side-bar`, `search`, `dialog`, `control`, `promotion`, `hidden`, `title`, or
    /// `outside-main`.
    pub rule: String,
    /// Tokens that it leaves out.
    pub tokens: u64,
    /// The beginning of their text; `…` at its end says that there is more.
    pub text: String,
}
