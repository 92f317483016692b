//! Finds circles among the modules of a crate: modules that name each other, directly or by way of others.
//!
//! A module names another if one of its paths leads there, in a `use` or elsewhere in its code. If the name is only
//! imported or re-exported there, the path goes on to the module that defines it, and names both. A module and its
//! parent may name each other.

use std::collections::{BTreeMap, BTreeSet};

use super::source::is_word;

/// The path of a module below the root of its crate: `["range", "outbox"]`.
type Module = Vec<String>;

/// A source file of the crate.
pub(crate) struct File {
    pub(crate) module: Module,
    /// Its name in reports.
    pub(crate) shown: String,
    /// Its code, see `source::product`.
    pub(crate) code: String,
}

/// A path in the code, as it is written.
struct Written {
    /// The innermost module around it, which may be an inline one.
    scope: Module,
    path: Vec<String>,
    line: usize,
}

/// A reference from one module to another.
struct Reference {
    to: Module,
    place: String,
}

/// Every reference of a module that is part of a circle, as `file:line: from -> to`: one list for each circle.
pub(crate) fn circles(files: &[File]) -> Vec<Vec<String>> {
    let mut names =
        Names { files: files.iter().map(|file| file.module.clone()).collect(), ..Names::default() };
    let written: Vec<(&File, Vec<Written>)> =
        files.iter().map(|file| (file, Scanner::new(file, &mut names).scan())).collect();
    let references: BTreeMap<&Module, Vec<Reference>> =
        written.iter().map(|(file, paths)| (&file.module, names.references(file, paths))).collect();
    let reached: BTreeMap<&Module, BTreeSet<&Module>> =
        references.keys().map(|from| (*from, reached_from(from, &references))).collect();
    let reaches = |from: &Module, to: &Module| reached.get(from).is_some_and(|found| found.contains(to));
    let mut circles: BTreeMap<&Module, Vec<String>> = BTreeMap::new();
    for (from, references) in &references {
        // Modules of one circle reach the same modules, so each of them finds the same first member.
        let Some(first) = reached[from].iter().find(|module| reaches(module, from)) else { continue };
        let inside = references.iter().filter(|reference| reaches(&reference.to, from));
        circles.entry(first).or_default().extend(inside.map(|reference| reference.place.clone()));
    }
    circles.into_values().collect()
}

/// The modules that can be reached from one over at least one reference.
fn reached_from<'a>(
    from: &Module,
    references: &'a BTreeMap<&Module, Vec<Reference>>,
) -> BTreeSet<&'a Module> {
    let mut found = BTreeSet::new();
    let mut open = vec![from];
    while let Some(module) = open.pop() {
        for reference in references.get(module).into_iter().flatten() {
            if found.insert(&reference.to) {
                open.push(&reference.to);
            }
        }
    }
    found
}

/// What the names in the modules of a crate stand for.
#[derive(Default)]
struct Names {
    files: BTreeSet<Module>,
    /// Modules inside a file.
    inline: BTreeSet<Module>,
    /// The path behind every name that a module imports.
    imports: BTreeMap<(Module, String), Vec<String>>,
}

impl Names {
    fn references(&self, file: &File, paths: &[Written]) -> Vec<Reference> {
        let mut found = Vec::new();
        for Written { scope, path, line } in paths {
            let mut named = Vec::new();
            self.follow(scope, path, &mut named);
            for mut to in named {
                // An inline module is part of its file.
                while !self.files.contains(&to) && to.pop().is_some() {}
                if to != file.module && !is_parent(&to, &file.module) && !is_parent(&file.module, &to) {
                    let place =
                        format!("{}:{line}: {} -> {}", file.shown, display(&file.module), display(&to));
                    found.push(Reference { to, place });
                }
            }
        }
        found.dedup_by(|a, b| a.place == b.place);
        found
    }

    /// Follows a path, and adds every module that it names or is led through by an import. Returns the module at its
    /// end, or none if the path ends with an item or outside of the crate.
    fn follow(&self, scope: &[String], path: &[String], named: &mut Vec<Module>) -> Option<Module> {
        let (first, rest) = path.split_first()?;
        let (mut module, rest) = match first.as_str() {
            "crate" => (Module::new(), rest),
            "self" => (scope.to_vec(), rest),
            "super" => {
                let supers = path.iter().take_while(|name| *name == "super").count();
                (scope[..scope.len().checked_sub(supers)?].to_vec(), &path[supers..])
            }
            _ => (scope.to_vec(), path),
        };
        for name in rest {
            let mut child = module.clone();
            child.push(name.clone());
            if self.files.contains(&child) || self.inline.contains(&child) {
                module = child;
                continue;
            }
            named.push(module.clone());
            let import = self.imports.get(&(module.clone(), name.clone()))?;
            // `use url::url` would lead to itself.
            let is_external = import.first() == Some(name);
            module = if is_external { None } else { self.follow(&module, import, named) }?;
        }
        named.push(module.clone());
        Some(module)
    }
}

fn is_parent(parent: &[String], child: &[String]) -> bool {
    child.split_last().is_some_and(|(_, rest)| rest == parent)
}

fn display(module: &[String]) -> String {
    if module.is_empty() { "crate".to_owned() } else { module.join("::") }
}

/// Reads the paths of a file in the order they are written.
struct Scanner<'a> {
    names: &'a mut Names,
    tokens: Vec<(&'a str, usize)>,
    at: usize,
    scope: Module,
    written: Vec<Written>,
}

impl<'a> Scanner<'a> {
    fn new(file: &'a File, names: &'a mut Names) -> Self {
        Self { names, tokens: tokens(&file.code), at: 0, scope: file.module.clone(), written: Vec::new() }
    }

    fn token(&self, ahead: usize) -> &'a str {
        self.tokens.get(self.at + ahead).map_or("", |(token, _)| token)
    }

    fn scan(mut self) -> Vec<Written> {
        let mut depth = 0;
        // The depths at which the inline modules around this place began.
        let mut inline = Vec::new();
        while self.at < self.tokens.len() {
            match self.token(0) {
                "use" if self.token(1) != "<" => {
                    self.at += 1;
                    self.import(&[]);
                    continue;
                }
                // `pub(in path)` names no more than where something is seen.
                "in" if self.at > 0 && self.tokens[self.at - 1].0 == "(" => {
                    self.at += 1;
                    self.path();
                    continue;
                }
                "mod" if self.token(2) == "{" => {
                    self.scope.push(self.token(1).to_owned());
                    self.names.inline.insert(self.scope.clone());
                    inline.push(depth);
                    self.at += 1;
                }
                "{" => depth += 1,
                "}" => {
                    depth -= 1;
                    if inline.pop_if(|began| *began == depth).is_some() {
                        self.scope.pop();
                    }
                }
                word if word.starts_with(is_word) && self.token(1) == "::" => {
                    let line = self.tokens[self.at].1;
                    let path = self.path();
                    self.written.push(Written { scope: self.scope.clone(), path, line });
                    continue;
                }
                // The rest of a path that begins outside of this crate or with a type.
                "::" => self.at += 1,
                _ => {}
            }
            self.at += 1;
        }
        self.written
    }

    /// Words joined by `::`, up to the first thing that is none.
    fn path(&mut self) -> Vec<String> {
        let mut path = vec![self.token(0).to_owned()];
        self.at += 1;
        while self.token(0) == "::" && self.token(1).starts_with(is_word) {
            path.push(self.token(1).to_owned());
            self.at += 2;
        }
        path
    }

    /// One tree of a `use`, below `prefix`.
    fn import(&mut self, prefix: &[String]) {
        let line = self.tokens.get(self.at).map_or(0, |(_, line)| *line);
        let mut path = prefix.to_vec();
        if self.token(0).starts_with(is_word) {
            path.append(&mut self.path());
        }
        if self.token(0) == "::" {
            self.at += 1;
        }
        match self.token(0) {
            "{" => {
                while !matches!(self.token(0), "}" | "") {
                    self.at += 1;
                    if self.token(0) != "}" {
                        self.import(&path);
                    }
                }
                self.at += 1;
                return;
            }
            "*" => self.at += 1,
            _ => {
                // `{self}` names what stands before it.
                path.pop_if(|last| last == "self" && !prefix.is_empty());
                let mut name = path.last().cloned().unwrap_or_default();
                if self.token(0) == "as" {
                    name = self.token(1).to_owned();
                    self.at += 2;
                }
                self.names.imports.insert((self.scope.clone(), name), path.clone());
            }
        }
        self.written.push(Written { scope: self.scope.clone(), path, line });
    }
}

/// Words, `::` and all other characters, with their lines.
fn tokens(code: &str) -> Vec<(&str, usize)> {
    let mut tokens = Vec::new();
    for (at, line) in code.lines().enumerate() {
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            let length = if is_word(first) {
                rest.find(|c| !is_word(c)).unwrap_or(rest.len())
            } else if rest.starts_with("::") {
                2
            } else {
                first.len_utf8()
            };
            tokens.push((&rest[..length], at + 1));
            rest = rest[length..].trim_start();
        }
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::super::source;
    use super::*;

    /// The circles among modules that are given with their sources.
    fn found(sources: &[(&str, &str)]) -> Vec<Vec<String>> {
        let file = |(module, text): &(&str, &str)| File {
            module: module.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect(),
            shown: (*module).to_owned(),
            code: source::product(text),
        };
        circles(&sources.iter().map(file).collect::<Vec<_>>())
    }

    #[test]
    fn a_circle_is_found_however_it_is_written() {
        let back = [
            "use crate::{c, a::Thing};",
            "use crate::{c::X, a::{self as other, Thing}};",
            "use crate::a::*;",
            "fn f() -> super::a::Thing { todo!() }",
            "use super::a;\nfn f() { a::thing() }",
            "mod inner { fn f() { super::super::a::thing() } }",
            "#[from(crate::a::Thing)] struct S;",
        ];
        for back in back {
            let circles =
                found(&[("a", "use crate::b::{Other, Third};"), ("b", back), ("c", "use crate::a::Thing;")]);
            assert_eq!(circles.len(), 1, "{back}");
            assert!(circles[0].iter().any(|place| place == "a:1: a -> b"), "{back}: {circles:?}");
        }
    }

    #[test]
    fn a_name_is_followed_to_the_module_that_defines_it() {
        let circles = found(&[
            ("", "pub use a::Thing;\npub use b::Other;"),
            ("a", "use super::Other;"),
            ("b", "struct Other(crate::Thing);"),
        ]);
        assert_eq!(circles, [["a:1: a -> b", "b:1: b -> a"]]);
        let longer = [("a", "use crate::b::X;"), ("b", "pub use c::X;"), ("b::c", "use crate::d::Y;")];
        assert_eq!(found(&longer), Vec::<Vec<String>>::new());
        assert_eq!(found(&[&longer[..], &[("d", "crate::a::z!();")]].concat()).len(), 1);
    }

    #[test]
    fn what_is_no_reference_of_the_product_does_not_count() {
        let quiet = [
            "// use crate::a::Thing;",
            "/* outer /* inner */ use crate::a::Thing; */",
            "const S: &str = \"crate::a::Thing \\\" crate::a::Thing\";",
            "const S: &str = r#\"\"crate::a::Thing\"#; const C: char = '\"'; const D: char = '\\'';",
            "#[cfg(test)]\nmod tests { use crate::a::Thing; mod more { use crate::a::Thing; } }",
            "#[cfg(test)]\nuse crate::a::Thing;\nstruct S;",
            "use url::a::Thing; use a as other;",
            "pub(in crate::a) struct S;",
            "impl<'a> S<'a> { fn f(&'a self) -> impl Iterator + use<'a> { Self::a() } }",
        ];
        for quiet in quiet {
            assert_eq!(
                found(&[("a", "use crate::b::S;"), ("b", quiet)]),
                Vec::<Vec<String>>::new(),
                "{quiet}"
            );
        }
        let family =
            [("a", "use self::b::S;"), ("a::b", "use super::T; use crate::a::c::U;"), ("a::c", "struct U;")];
        assert_eq!(found(&family), Vec::<Vec<String>>::new());
    }
}
