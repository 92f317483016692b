//! Objects in stores as inputs: `s3://`, `gs://`, `az://`, `https://` and `http://`. A program that was built
//! without the feature `object-store` refuses such inputs, and says how to build a program that reads them.

#[cfg(feature = "object-store")]
mod address;
#[cfg(feature = "object-store")]
mod download;
#[cfg(feature = "object-store")]
mod listing;
#[cfg(not(feature = "object-store"))]
mod without;

use std::path::Path;

#[cfg(feature = "object-store")]
pub use download::Object;
#[cfg(feature = "object-store")]
pub use listing::named_by;
#[cfg(not(feature = "object-store"))]
pub use without::{Object, named_by};

/// Prefixes by which the addresses of objects are recognised.
const SCHEMES: [&str; 5] = ["s3://", "gs://", "az://", "https://", "http://"];

/// Objects that an input in a store names.
pub struct Listing {
    /// Objects to read, in the order of their names.
    pub objects: Vec<Object>,
    /// Number of objects that are not read, because they are not crawl files.
    pub beside: u64,
}

/// Address of an input in a store. `None` if the input is a local path.
pub fn address(input: &Path) -> Option<&str> {
    input.to_str().filter(|input| SCHEMES.iter().any(|scheme| input.starts_with(scheme)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_with_a_scheme_is_in_a_store() {
        for input in ["s3://bucket/a.parquet", "gs://bucket", "az://container/a/", "https://a.example/a.csv"]
        {
            assert_eq!(address(Path::new(input)), Some(input));
        }
        for input in ["-", "a.parquet", "s3:/a", "/s3://a", "file:///a"] {
            assert_eq!(address(Path::new(input)), None);
        }
    }

    #[cfg(not(feature = "object-store"))]
    #[test]
    fn a_program_without_stores_says_how_it_is_built_with_them() {
        let error = named_by("s3://bucket/a.parquet").err().unwrap().to_string();
        assert!(
            error.contains("s3://bucket/a.parquet") && error.contains("--features object-store"),
            "{error}"
        );
    }
}
