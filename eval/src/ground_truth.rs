//! Pairs of pages for which the right answer is known, and scores of policies on these pairs.
//!
//! The answer comes from people, from a language model with a written rule, from the construction of the
//! pages, or from exact Jaccard coefficients (`kind`). Figures of one kind of truth are never mixed with
//! figures of another.
//!
//! | module | responsibility |
//! |---|---|
//! | `kind` | the kinds of truth |
//! | `labelled` | labelled pairs from files, and the pages of the crawls that they name |
//! | `containers` | the element of a page that holds its main content, by host |
//! | `transplants` | pairs made by moving the main content of one page into another |
//! | `variants` | pairs made to differ for one known reason |
//! | `score` | precision, recall and F1 of weighted pairs |

pub(crate) mod containers;
pub(crate) mod kind;
pub(crate) mod labelled;
pub(crate) mod score;
pub(crate) mod transplants;
pub(crate) mod variants;
