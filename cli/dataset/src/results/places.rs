//! The paths of results below the directory of a side: the paths of the inputs below their common root. The
//! code calls such a relative path a *place*.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use doppel_inputs::sources::{self, InputSource, SourceKind};
use doppel_terminal::exit::Failure;

/// The path of the results of each source, relative to the directory of a side.
///
/// # Errors
/// If an input has gone, is an object in a store, or has the same path as another one.
pub(super) fn places(sources: &[InputSource], inputs: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    if let Some(object) = sources.iter().find(|source| matches!(source.kind, SourceKind::Object(_))) {
        return Err(no_object(object.path()).into());
    }
    let mut root: Option<PathBuf> = None;
    for input in inputs.iter().filter(|input| has_place(input)) {
        let dir = root_of(input)?;
        root = Some(root.map_or_else(|| dir.clone(), |root| common(&root, &dir)));
    }
    let mut places = Vec::with_capacity(sources.len());
    for source in sources {
        let path = source.path();
        let name = path.file_name().unwrap_or(OsStr::new("input"));
        let place = match &source.kind {
            SourceKind::Standard | SourceKind::Object(_) => name.into(),
            SourceKind::File(path, _) if !path.is_file() => name.into(),
            SourceKind::File(path, _) => {
                let path = match inputs.get(source.input) {
                    Some(input) => as_named(path, input)?,
                    None => resolved(path)?,
                };
                below(root.as_deref(), &path).unwrap_or_else(|| name.into())
            }
            SourceKind::Pages(dir) => {
                below(root.as_deref(), &fs::canonicalize(dir)?).unwrap_or_else(|| name.into())
            }
        };
        places.push(as_written(place));
    }
    check_apart(sources, &places)?;
    Ok(places)
}

/// The path with the extension of the written format. The records of a WACZ file are written as one WARC
/// file, because the indexes in the WACZ file would not fit the written records.
fn as_written(place: PathBuf) -> PathBuf {
    if place.extension().is_none_or(|extension| !extension.eq_ignore_ascii_case("wacz")) {
        return place;
    }
    let mut place = place.into_os_string();
    place.push(".warc.gz");
    place.into()
}

/// The failure for an input that is an object in a store. Results are local files, and objects have no local
/// path.
pub(super) fn no_object(path: &Path) -> Failure {
    Failure::Usage(format!(
        "{}: the records of an object in a store cannot be written as results; download the object, and name the file",
        path.display()
    ))
}

/// Whether an input is a file or a directory, and not standard input or a pipe.
fn has_place(input: &Path) -> bool {
    !sources::is_standard(input)
        && fs::metadata(input).map_or(true, |there| there.is_file() || there.is_dir())
}

/// The directory below which an input names files.
fn root_of(input: &Path) -> io::Result<PathBuf> {
    match fs::metadata(input) {
        Ok(there) if there.is_dir() => fs::canonicalize(input),
        Ok(_) => Ok(resolved(input)?.parent().map(Path::to_owned).unwrap_or_default()),
        Err(_) => {
            let dir = sources::before_pattern(input);
            fs::canonicalize(if dir.as_os_str().is_empty() { Path::new(".") } else { &dir })
        }
    }
}

/// The canonical path of the input's directory, followed by the path of a file below it as the pattern
/// matches it. Links below the directory are not followed, because they may lead elsewhere.
fn as_named(path: &Path, input: &Path) -> io::Result<PathBuf> {
    if input.exists() {
        return resolved(path);
    }
    let is_plain = |below: &&Path| below.components().all(|part| matches!(part, Component::Normal(_)));
    match path.strip_prefix(sources::before_pattern(input)).ok().filter(is_plain) {
        Some(below) => Ok(root_of(input)?.join(below)),
        None => resolved(path),
    }
}

fn common(a: &Path, b: &Path) -> PathBuf {
    a.components().zip(b.components()).take_while(|(a, b)| a == b).map(|(a, _)| a).collect()
}

fn below(root: Option<&Path>, path: &Path) -> Option<PathBuf> {
    path.strip_prefix(root?).ok().map(Path::to_owned)
}

/// The canonical path of a file that need not exist. Links of directories on the way are followed, but not a
/// link with the last name.
pub(crate) fn resolved(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    let has_name = matches!(path.components().next_back(), Some(Component::Normal(_)));
    let mut dir = if has_name { path.parent() } else { Some(&*path) };
    while let Some(there) = dir {
        match fs::canonicalize(there) {
            Ok(mut found) => {
                for part in path.strip_prefix(there).unwrap_or(Path::new("")).components() {
                    match part {
                        Component::ParentDir => drop(found.pop()),
                        part => found.push(part),
                    }
                }
                return Ok(found);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => dir = there.parent(),
            Err(error) => return Err(error),
        }
    }
    Ok(path)
}

/// Refuses inputs whose results would have the same path, or of which one would be inside the other.
fn check_apart(sources: &[InputSource], places: &[PathBuf]) -> Result<(), Failure> {
    let mut sorted: Vec<(&PathBuf, &InputSource)> = places.iter().zip(sources).collect();
    sorted.sort_by_key(|(place, _)| *place);
    let refuse = |(place, first): (&PathBuf, &InputSource), second: &InputSource| {
        let (first, second) = (first.path().display(), second.path().display());
        let place = place.display();
        Err(Failure::Usage(format!(
            "{first} and {second} would both have their results at {place}: name each input once, and rename one of two inputs with the same name"
        )))
    };
    // In the order of paths, equal paths and paths inside follow directly.
    for (at, (place, first)) in sorted.iter().enumerate() {
        if let Some((inner, second)) = sorted.get(at + 1).filter(|(other, _)| other.starts_with(place)) {
            return refuse((inner, first), second);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(inputs: &[PathBuf]) -> anyhow::Result<Vec<String>> {
        let sources = sources::sources(inputs)?.all;
        let places = places(&sources, inputs)?;
        Ok(places.into_iter().map(|place| place.display().to_string()).collect())
    }

    #[test]
    fn files_keep_their_paths_below_the_common_root() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        for name in ["set/a/1.jsonl", "set/b/2.jsonl", "other/1.jsonl", "site/x.html"] {
            fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            fs::write(at(name), b"").unwrap();
        }
        assert_eq!(of(&[at("set/a/1.jsonl")]).unwrap(), ["1.jsonl"]);
        assert_eq!(of(&[at("set")]).unwrap(), ["a/1.jsonl", "b/2.jsonl"]);
        assert_eq!(of(&[at("set/**/*.jsonl")]).unwrap(), ["a/1.jsonl", "b/2.jsonl"]);
        assert_eq!(of(&[at("set/b"), at("other/1.jsonl")]).unwrap(), ["set/b/2.jsonl", "other/1.jsonl"]);
        for other in ["-".into(), at("site/x.html")] {
            let inside = of(&[at("site"), other.clone()]).unwrap_err();
            assert!(inside.to_string().contains("would both have their results at "), "{inside}");
            assert!(of(&[other, at("site")]).is_err());
        }
        std::os::unix::fs::symlink(at("other"), at("set/linked")).unwrap();
        fs::write(at("set/b/3.wacz"), b"").unwrap();
        assert_eq!(of(&[at("set/b")]).unwrap(), ["2.jsonl", "3.wacz.warc.gz"]);
        fs::remove_file(at("set/b/3.wacz")).unwrap();
        let linked = ["a/1.jsonl", "b/2.jsonl", "linked/1.jsonl"];
        assert_eq!(of(&[at("set/*/*.jsonl")]).unwrap(), linked);
        let twice = of(&[at("set/a/1.jsonl"), at("set/a/../a/1.jsonl")]).unwrap_err();
        assert!(twice.to_string().contains("would both have their results at 1.jsonl"), "{twice}");
    }

    #[test]
    fn a_path_that_does_not_exist_has_one_canonical_form() {
        let home = tempfile::tempdir().unwrap();
        let real = fs::canonicalize(home.path()).unwrap();
        fs::create_dir(real.join("dir")).unwrap();
        std::os::unix::fs::symlink(real.join("dir"), real.join("link")).unwrap();
        assert_eq!(resolved(&real.join("link/new/file")).unwrap(), real.join("dir/new/file"));
        assert_eq!(resolved(&real.join("link")).unwrap(), real.join("link"));
        assert_eq!(resolved(&real.join("link/../new")).unwrap(), real.join("new"));
        assert_eq!(resolved(&real.join("new/../other/file")).unwrap(), real.join("other/file"));
        assert_eq!(resolved(&real.join("new/..")).unwrap(), real);
    }
}
