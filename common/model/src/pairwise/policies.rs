//! The comparison functions of the policies, one module for each policy.
//!
//! A module makes the payload of the policy's signatures, compares two payloads, and names the keys that find
//! candidates. It knows neither [`Policy`](super::Policy) nor the other parameters of a collection:
//! `pairwise` passes the parameters in and decides which module compares. `combined` also reads the payloads
//! of `projection` and `supershingle`. `fingerprints` compares arrays of 64-bit fingerprints for `imatch` and
//! `supershingle`.

pub(super) mod combined;
pub(super) mod content;
pub(super) mod copies;
pub(super) mod fingerprints;
pub(super) mod imatch;
pub(super) mod jaccard;
pub(super) mod multi_simhash;
pub(super) mod overlap;
pub(super) mod projection;
pub(super) mod simhash;
pub(super) mod supershingle;
