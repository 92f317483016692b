//! The paths of the fields of a record or a schema, as many as there is room for. Names may be data, or long, and each path has those of all
//! objects around its field.

/// The longest path that is kept whole, in bytes.
const PATH_BYTES_MAX: usize = 1 << 10;
/// How many paths are kept ...
const PATHS_MAX: usize = 16 << 10;
/// ... and how many bytes of them.
const BYTES_MAX: usize = 1 << 20;

/// Paths in the order in which they were noted.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    paths: Vec<String>,
    bytes: usize,
}

impl Paths {
    /// Notes the path of the field `name` inside `before`, which has a dot at the end, or is empty. Of a long path the beginning is kept, and of those
    /// that begin with it nothing more.
    pub(crate) fn note(&mut self, before: &str, name: &str) {
        let is_full = self.paths.len() >= PATHS_MAX || self.bytes >= BYTES_MAX;
        if is_full || before.len() > PATH_BYTES_MAX {
            return;
        }
        let room = (PATH_BYTES_MAX - before.len()).min(name.len());
        let kept = (0..=room).rev().find(|at| name.is_char_boundary(*at)).unwrap_or_default();
        self.keep(format!("{before}{}", &name[..kept]));
    }

    /// Notes a path in any case, because it is looked for.
    pub(crate) fn keep(&mut self, path: String) {
        self.bytes += path.len();
        self.paths.push(path);
    }

    /// All of them.
    pub(crate) fn into_vec(self) -> Vec<String> {
        self.paths
    }

    /// Shows all of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_few_and_short() {
        let mut paths = Paths::default();
        let long = "é".repeat(1_000);
        paths.note("a.", &long);
        paths.note(&format!("a.{long}."), "b");
        paths.note("", "c");
        let cut = format!("a.{}", &long[..PATH_BYTES_MAX - 2]);
        assert_eq!(paths.iter().collect::<Vec<_>>(), [&*cut, "c"]);
        (0..20_000).for_each(|n| paths.note("d.", &n.to_string()));
        assert_eq!(paths.iter().count(), PATHS_MAX);
        paths.keep("wanted".to_owned());
        assert_eq!(paths.into_vec().last().unwrap(), "wanted");
        let mut paths = Paths::default();
        (0..10_000).for_each(|_| paths.note("a.", &long));
        assert!(paths.iter().map(str::len).sum::<usize>() < BYTES_MAX + PATH_BYTES_MAX);
    }
}
