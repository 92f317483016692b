//! Interprets file names: compression, format, and whether a file belongs to a larger crawl.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Extensions of compressed files.
const COMPRESSION_EXTENSIONS: [&str; 4] = ["gz", "zst", "bz2", "xz"];

/// Extension of a file name in lower case.
pub(super) fn extension(name: &Path) -> String {
    name.extension().and_then(OsStr::to_str).unwrap_or_default().to_ascii_lowercase()
}

/// File name without the extension that states the compression, if it has one.
pub(super) fn without_compression_ending(name: &Path) -> PathBuf {
    if COMPRESSION_EXTENSIONS.contains(&extension(name).as_str()) {
        name.with_extension("")
    } else {
        name.to_owned()
    }
}

/// Returns the ending of a crawl file, such as `.warc.gz`, or `None` for any other name. Crawl files are
/// WARC, JSON lines, tables and column files, in any compression that the format allows.
///
/// A `.json` file counts only if it is compressed, as in large collections. Uncompressed `.json` files
/// usually describe other files.
#[must_use]
pub fn crawl_ending(file: &Path) -> Option<&str> {
    let name = file.file_name()?.to_str()?;
    let inner = without_compression_ending(Path::new(name)).to_str()?.len();
    let is_packed = inner < name.len();
    let is_crawl = match extension(Path::new(&name[..inner])).as_str() {
        "warc" | "wet" | "arc" | "jsonl" | "ndjson" | "csv" | "tsv" => true,
        "json" => is_packed,
        "parquet" | "arrow" | "arrows" | "feather" | "wacz" => !is_packed,
        _ => false,
    };
    if is_crawl { name.get(name[..inner].rfind('.')?..) } else { None }
}

/// Whether the file name has the extension of an HTML or XHTML page.
#[must_use]
pub fn is_html(name: &Path) -> bool {
    matches!(extension(name).as_str(), "html" | "htm" | "xhtml" | "xht")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crawl_files_are_recognised_by_their_names() {
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
