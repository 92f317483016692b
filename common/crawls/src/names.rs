//! What the name of a file says about its format.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// How the names of compressed files end.
const PACKED: [&str; 4] = ["gz", "zst", "bz2", "xz"];

/// The extension of a file name, in lower case.
pub(super) fn extension(name: &Path) -> String {
    name.extension().and_then(OsStr::to_str).unwrap_or_default().to_ascii_lowercase()
}

/// A file name without the ending that says how the file is compressed.
pub(super) fn unpacked(name: &Path) -> PathBuf {
    if PACKED.contains(&extension(name).as_str()) { name.with_extension("") } else { name.to_owned() }
}

/// How the name of a file ends that is by it one of many pages, such as `.warc.gz`: WARC, JSON lines, a table or columns, in any
/// compression. `.json` is such an ending only where it is compressed, as large collections are: other files of that name
/// say something about the others.
#[must_use]
pub fn crawl_ending(file: &Path) -> Option<&str> {
    let name = file.file_name()?.to_str()?;
    let inner = unpacked(Path::new(name)).to_str()?.len();
    let is_packed = inner < name.len();
    let is_crawl = match extension(Path::new(&name[..inner])).as_str() {
        "warc" | "wet" | "arc" | "jsonl" | "ndjson" | "csv" | "tsv" => true,
        "json" => is_packed,
        "parquet" | "arrow" | "arrows" | "feather" | "wacz" => !is_packed,
        _ => false,
    };
    if is_crawl { name.get(name[..inner].rfind('.')?..) } else { None }
}

/// Whether a file is by its name an HTML or XHTML page.
#[must_use]
pub fn is_html(name: &Path) -> bool {
    matches!(extension(name).as_str(), "html" | "htm" | "xhtml" | "xht")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crawl_files_are_told_by_their_names() {
        for (name, ending) in [
            ("a.warc", ".warc"),
            ("x/a.WARC.gz", ".WARC.gz"),
            ("a.warc.wet.gz", ".wet.gz"),
            ("a.warc.zst", ".warc.zst"),
            ("a.jsonl.xz", ".jsonl.xz"),
            ("c4-train.00000-of-01024.json.gz", ".json.gz"),
            ("a.csv", ".csv"),
            ("data-00000-of-00001.arrow", ".arrow"),
        ] {
            assert_eq!(crawl_ending(Path::new(name)), Some(ending), "{name}");
        }
        for name in [
            "a.json",
            "a.txt",
            "a.txt.gz",
            "a.gz",
            "warc",
            "README",
            "a.parquet.gz",
            "a.html",
            "a.tar.gz",
            "",
        ] {
            assert_eq!(crawl_ending(Path::new(name)), None, "{name}");
        }
    }
}
