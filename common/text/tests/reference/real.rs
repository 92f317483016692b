//! Real pages: the first rounds of two crawls.

use std::path::PathBuf;
use std::sync::OnceLock;

use crate::compare::{ALL, compare, learnt};
use crate::page::{Page, read};
use crate::terms::Learnt;

/// The crawl files.
const FILES: [&str; 2] = ["quick/round-00.warc.gz", "trace/round-00.warc.gz"];

/// The folder of the crawls: `DOPPEL_DATA`, or `../shared/data` beside the repository.
fn data() -> PathBuf {
    let above = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(|at| at.join("shared/data"));
    let beside = || above.into_iter().find(|folder| folder.is_dir()).unwrap_or("../shared/data".into());
    std::env::var_os("DOPPEL_DATA").map_or_else(beside, PathBuf::from)
}

/// The pages, and what is learnt of them. Without crawls it prints a line and gives none; in CI that is an error.
pub(crate) fn pages() -> Option<&'static (Vec<Page>, Learnt)> {
    static PAGES: OnceLock<Option<(Vec<Page>, Learnt)>> = OnceLock::new();
    let read_all = || {
        let files = FILES.map(|file| data().join(file));
        if files.iter().all(|file| file.is_file()) {
            let pages = read(&files);
            let learnt = learnt(&pages);
            return Some((pages, learnt));
        }
        assert!(std::env::var("CI").as_deref() != Ok("true"), "no crawls in {}", data().display());
        println!("skipped: no crawls in {}", data().display());
        None
    };
    PAGES.get_or_init(read_all).as_ref()
}

fn real(name: &str) {
    let Some((pages, learnt)) = pages() else { return };
    for (text, rule) in ALL.iter().filter(|(text, _)| text.split(':').next() == Some(name)) {
        let figures = compare(text, *rule, pages, learnt);
        println!("{text}: {figures:?}");
        assert!(figures.comparable > 500 && figures.near > 10, "{text}: {figures:?}");
        // A pair at the threshold shares no band once in two thousand times.
        assert!(figures.missed <= 1 + figures.near / 1_000, "{text}: {figures:?}");
    }
}

macro_rules! policies {
    ($($test:ident $name:literal)*) => {
        $(
            #[test]
            fn $test() {
                real($name);
            }
        )*

        #[test]
        fn no_policy_is_left_out() {
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
