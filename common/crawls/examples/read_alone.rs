//! Reads inputs and only counts their pages: `read_alone INPUT...`. Use it to measure how much of the time of
//! a run is spent on reading.

use std::error::Error;
use std::path::Path;

use doppel_crawls::{Item, Limits};
use doppel_model::Timestamp;

fn main() -> Result<(), Box<dyn Error>> {
    let (mut pages, mut bytes, mut others) = (0_u64, 0_u64, 0_u64);
    for input in std::env::args_os().skip(1) {
        for item in doppel_crawls::open(Path::new(&input), Limits::at(Timestamp::now()))? {
            match item {
                Item::Page(page) => {
                    pages += 1;
                    bytes += page.body.raw_content().map_or(0, |content| content.size() as u64);
                }
                _ => others += 1,
            }
        }
    }
    println!("{pages} pages of {bytes} bytes, {others} others");
    Ok(())
}
