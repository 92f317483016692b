//! A bounded list of the paths of the fields of a record or a schema.
//!
//! The list must be bounded because some writers use data as field names, so that a record can have any
//! number of them. Names can also be long, and each path repeats the names of all objects that contain its
//! field.

/// The longest path that is stored whole, in bytes. Longer paths are cut.
const PATH_BYTES_MAX: usize = 1 << 10;
/// The maximum number of paths in the list.
const PATHS_MAX: usize = 16 << 10;
/// The maximum total length of the paths, in bytes. The last path may exceed it.
const BYTES_MAX: usize = 1 << 20;

/// Paths in the order in which they were added.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    paths: Vec<String>,
    bytes: usize,
}

impl Paths {
    /// Adds the path of the field `name`, unless the list is full. `prefix` is the path of the object that
    /// contains the field, with a dot at the end, or empty. A path that is too long is cut. Fields inside an
    /// object whose path is too long are left out.
    pub(crate) fn note(&mut self, prefix: &str, name: &str) {
        let is_full = self.paths.len() >= PATHS_MAX || self.bytes >= BYTES_MAX;
        if is_full || prefix.len() > PATH_BYTES_MAX {
            return;
        }
        let room = (PATH_BYTES_MAX - prefix.len()).min(name.len());
        let length = (0..=room).rev().find(|at| name.is_char_boundary(*at)).unwrap_or_default();
        self.push(format!("{prefix}{}", &name[..length]));
    }

    /// Adds a path even if the list is full, because the caller looks for this path.
    pub(crate) fn push(&mut self, path: String) {
        self.bytes += path.len();
        self.paths.push(path);
    }

    /// The paths as a vector.
    #[cfg(feature = "columns")]
    pub(crate) fn into_vec(self) -> Vec<String> {
        self.paths
    }

    /// Iterates over the paths.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_and_the_length_of_the_paths_are_bounded() {
        let mut paths = Paths::default();
        let long = "é".repeat(1_000);
        paths.note("a.", &long);
        paths.note(&format!("a.{long}."), "b");
        paths.note("", "c");
        let cut = format!("a.{}", &long[..PATH_BYTES_MAX - 2]);
        assert_eq!(paths.iter().collect::<Vec<_>>(), [&*cut, "c"]);
        (0..20_000).for_each(|n| paths.note("d.", &n.to_string()));
        assert_eq!(paths.iter().count(), PATHS_MAX);
        paths.push("wanted".to_owned());
        assert_eq!(paths.into_vec().last().unwrap(), "wanted");
        let mut paths = Paths::default();
        (0..10_000).for_each(|_| paths.note("a.", &long));
        assert!(paths.iter().map(str::len).sum::<usize>() < BYTES_MAX + PATH_BYTES_MAX);
    }
}
