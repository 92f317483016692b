//! tier1
