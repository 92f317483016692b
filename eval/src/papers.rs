//! Reproductions of the papers behind the policies and the index: one module per paper, each with the paper's
//! tables and figures.
//!
//! A module prints its figures beside the figures that the paper states. Numbers of a paper are constants of
//! the module, and no measurement depends on them. Printed tables call the paper "the source".
//!
//! | module | paper |
//! |---|---|
//! | `clustering` | *Clustering and Load Balancing Optimization for Redundant Content Removal*, WWW 2012 |
//! | `henzinger` | M. Henzinger, *Finding Near-Duplicate Web Pages*, SIGIR 2006 |
//! | `manku` | G. S. Manku, A. Jain, A. Das Sarma, *Detecting Near-Duplicates for Web Crawling*, WWW 2007 |
//! | `multi_simhash` | *Shingling based multi fingerprints simhash* |
//! | `overlap` | N. Shivakumar, H. Garcia-Molina, *Finding near-replicas of documents on the Web*, WebDB 1998 |

pub(crate) mod clustering;
pub(crate) mod henzinger;
pub(crate) mod manku;
pub(crate) mod multi_simhash;
pub(crate) mod overlap;
