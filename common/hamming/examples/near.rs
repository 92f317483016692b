//! Finds near-duplicates with an index that changes, and with a batch of queries against stored fingerprints.
//!
//! Run with `cargo run -p doppel-hamming --example near`.

use doppel_hamming::{
    CompressedFingerprints, Design, FingerprintIndex, HammingError, IndexOptions, QueryBatch,
};

fn main() -> Result<(), HammingError> {
    // Simhashes of three pages. The second differs from the first in two bits.
    let pages = [(0x3f2a_9c41_07d5_e6b8, 1), (0x3f2a_9c41_0795_e6b9, 2), (0x8c11_0b7e_52aa_94f3, 3)];

    // Search for each page before inserting it.
    let mut index = FingerprintIndex::new(Design::fitting(64, 3, 10_000_000)?, IndexOptions::default())?;
    for (fingerprint, page) in pages {
        match index.within(fingerprint, 3, 1)?.first() {
            Some(near) => println!("page {page} differs from page {} in {} bits", near.id, near.distance),
            None => println!("page {page} is new"),
        }
        index.insert(fingerprint, page)?;
    }
    index.remove(pages[0].0, pages[0].1);
    println!("without page 1, {} are near page 2", index.within(pages[1].0, 3, 10)?.len() - 1);

    // Compare a batch of today's pages with all pages of yesterday.
    let mut stored = pages.map(|(fingerprint, _)| fingerprint);
    stored.sort_unstable();
    let stored = CompressedFingerprints::new(64, &stored)?;
    let batch = QueryBatch::new(64, 3, &[0x8c11_0b7e_52aa_94f0, 0x0000_0000_ffff_ffff])?;
    for pair in batch.scan_compressed(&stored, 1_000)? {
        println!("query {} is near the stored fingerprint {}", pair.query, pair.stored);
    }
    Ok(())
}
