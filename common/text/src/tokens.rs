//! Cuts texts into tokens and hashes them.
//!
//! `tokeniser` cuts words, the tokens that most policies compare. `term` reduces words to their stems, `code`
//! keeps every visible character, and `source` adds URLs and images. All of them share one spelling of equal
//! texts (`form`) and one classification of characters (`letter`, `script`). The modules never see markup.

pub(crate) mod code;
pub(crate) mod form;
pub(crate) mod letter;
pub(crate) mod script;
pub(crate) mod source;
pub(crate) mod term;
pub(crate) mod tokeniser;
