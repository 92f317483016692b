//! tier2
