//! Compares the product with the reference on real pages: the first rounds of two crawls.

use std::path::PathBuf;
use std::sync::OnceLock;

use crate::compare::{ALL, compare, statistics};
use crate::page::{Page, read};
use crate::terms::TermStatistics;

/// Crawl files of the test, in the folder of the crawls.
const FILES: [&str; 2] = ["quick/round-00.warc.gz", "trace/round-00.warc.gz"];

/// Returns the folder of the crawls: `DOPPEL_DATA`, or `../shared/data` beside the repository.
fn data() -> PathBuf {
    let above = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(|at| at.join("shared/data"));
    let beside = || above.into_iter().find(|folder| folder.is_dir()).unwrap_or("../shared/data".into());
    std::env::var_os("DOPPEL_DATA").map_or_else(beside, PathBuf::from)
}

/// Returns the pages with their term statistics. Without crawls, prints a line and returns `None`, except in
/// CI, where it panics.
pub(crate) fn pages() -> Option<&'static (Vec<Page>, TermStatistics)> {
    static PAGES: OnceLock<Option<(Vec<Page>, TermStatistics)>> = OnceLock::new();
    let read_all = || {
        let files = FILES.map(|file| data().join(file));
        if files.iter().all(|file| file.is_file()) {
            let pages = read(&files);
            let statistics = statistics(&pages);
            return Some((pages, statistics));
        }
        let folder = data();
        let folder = folder.display();
        assert!(std::env::var("CI").as_deref() != Ok("true"), "no crawls in {folder}; set DOPPEL_DATA");
        println!("skipped: no crawls in {folder}; set DOPPEL_DATA to run this test");
        None
    };
    PAGES.get_or_init(read_all).as_ref()
}

/// Compares all variants of the policy `name` on the real pages.
fn compare_on_real_pages(name: &str) {
    let Some((pages, statistics)) = pages() else { return };
    for (text, rule) in ALL.iter().filter(|(text, _)| text.split(':').next() == Some(name)) {
        let figures = compare(text, *rule, pages, statistics);
        println!("{text}: {figures:?}");
        assert!(figures.comparable > 500 && figures.near > 10, "{text}: {figures:?}");
        // A pair at the threshold shares no band with a probability of 1 in 2,000.
        assert!(figures.missed <= 1 + figures.near / 1_000, "{text}: {figures:?}");
    }
}

macro_rules! policies {
    ($($test:ident $name:literal)*) => {
        $(
            #[test]
            fn $test() {
                compare_on_real_pages($name);
            }
        )*

        #[test]
        fn every_policy_has_a_test() {
            let names: Vec<&str> = doppel_model::pairwise::Policy::all().map(|policy| policy.name()).collect();
            assert!(names.iter().all(|name| [$($name),*].contains(name)), "{names:?}");
            let defaults = doppel_model::pairwise::Policy::all().map(|policy| policy.to_string());
            let here = ALL[..names.len()].iter().map(|(text, _)| text.parse::<doppel_model::pairwise::Policy>());
            assert!(defaults.eq(here.map(|policy| policy.unwrap().to_string())));
        }
    };
}

policies! {
    jaccard "jaccard"
    supershingle "supershingle"
    projection "projection"
    combined "combined"
    by_site "by-site"
    simhash "simhash"
    imatch "imatch"
    multi_simhash "multi-simhash"
    content "content"
    copies "copies"
    overlap "overlap"
}
