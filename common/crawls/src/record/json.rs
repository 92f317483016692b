//! A JSON object as a row: one pass over its text, in which only the wanted values are kept.

use std::borrow::Cow;
use std::fmt;
use std::mem;

use serde::de::{self, DeserializeSeed, Deserializer as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

use doppel_protocol::page::{ItemError, ItemReason};

use super::paths::Paths;
use super::row::{self, A_LIST, AN_OBJECT, LIST, Row, Value};

/// The deepest object whose fields are named. What is deeper is passed over, however deep it is.
const NAMES_DEPTH: u32 = 32;
/// The elements of a list whose fields are named.
const NAMED_ELEMENTS: usize = 4;

/// The wanted values of one JSON object.
pub struct JsonRow<'w, 'l> {
    wanted: &'w [String],
    values: Vec<Option<Value<'l>>>,
    names: Names,
}

impl<'w, 'l> JsonRow<'w, 'l> {
    /// Reads the values at the paths `wanted` from a text that is one JSON object; a path that is wanted twice can be taken twice. The paths of its
    /// fields are kept `with_names`, as far as there is room.
    ///
    /// # Errors
    /// When it is no JSON object, or has a wanted field twice.
    pub fn parse(json: &'l [u8], wanted: &'w [String], with_names: bool) -> Result<Self, ItemError> {
        let mut row = Self { wanted, values: wanted.iter().map(|_| None).collect(), names: Names::default() };
        let paths: Vec<(usize, &str)> = wanted.iter().map(String::as_str).enumerate().collect();
        let object = Object {
            paths: &paths,
            values: &mut row.values,
            names: with_names.then_some(&mut row.names),
            is_element: false,
            depth: 0,
        };
        let mut json = serde_json::Deserializer::from_slice(json);
        match json.deserialize_map(object).and_then(|()| json.end()) {
            Ok(()) => Ok(row),
            Err(error) => Err(ItemError { field: None, reason: ItemReason::json(&error) }),
        }
    }

    /// Marks the texts that the same row has otherwise `without` its lone surrogates.
    pub(super) fn mark_broken(&mut self, without: &JsonRow<'_, '_>) {
        for (value, without) in self.values.iter_mut().zip(&without.values) {
            let Some(Value::Text(text)) = value else { continue };
            if !matches!(without, Some(Value::Text(without)) if without == text) {
                *value = Some(Value::Broken(mem::take(text).into_owned()));
            }
        }
    }
}

impl<'l> Row<'l> for JsonRow<'_, 'l> {
    fn take(&mut self, path: &str) -> Option<Value<'l>> {
        let wanted = self.wanted.iter().zip(&mut self.values).filter(|(wanted, _)| *wanted == path);
        wanted.map(|(_, value)| value).find_map(Option::take)
    }

    fn names(&self, each: &mut dyn FnMut(&str)) {
        self.names.paths.iter().for_each(each);
    }
}

/// The paths of fields, in one object after the other.
#[derive(Default)]
struct Names {
    paths: Paths,
    /// The path of the object that is read, with a dot at the end.
    before: String,
}

/// What is left of wanted paths, each with the place of its value.
type Rests<'p> = [(usize, &'p str)];

/// An object on the way to wanted values.
struct Object<'p, 'v, 'l> {
    paths: &'p Rests<'p>,
    values: &'v mut [Option<Value<'l>>],
    names: Option<&'v mut Names>,
    /// Whether it is in a list, so that its texts are added to those of the elements before.
    is_element: bool,
    depth: u32,
}

impl<'l> Visitor<'l> for Object<'_, '_, 'l> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'l>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(Name(name)) = map.next_key()? {
            let mut leaves = Vec::new();
            let (mut deeper, mut lists) = (Vec::new(), Vec::new());
            for (at, path) in self.paths {
                match path.strip_prefix(&*name) {
                    Some("") => leaves.push(*at),
                    Some(rest) => {
                        deeper.extend(rest.strip_prefix('.').map(|rest| (*at, rest)));
                        lists.extend(rest.strip_prefix(LIST).map(|rest| (*at, rest)));
                    }
                    None => {}
                }
            }
            let is_wanted = !leaves.is_empty() || !deeper.is_empty() || !lists.is_empty();
            if !is_wanted && (self.names.is_none() || self.depth >= NAMES_DEPTH) {
                if let Some(names) = self.names.as_deref_mut() {
                    names.paths.note(&names.before, &name);
                }
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let before = self.names.as_deref_mut().map(|names| names.enter(&name, !leaves.is_empty()));
            let value = map.next_value_seed(Wanted {
                paths: &deeper,
                lists: &lists,
                values: self.values,
                names: self.names.as_deref_mut(),
                is_element: self.is_element,
                depth: self.depth + 1,
            })?;
            if let (Some(names), Some(before)) = (&mut self.names, before) {
                names.before.truncate(before);
            }
            for (at, _) in &lists {
                row::append_in_place_of(&mut self.values[*at], value.as_ref(), A_LIST);
            }
            if self.is_element {
                leaves.iter().for_each(|at| row::append(&mut self.values[*at], value.clone()));
            } else if let [first, others @ ..] = &*leaves {
                if self.values[*first].is_some() {
                    return Err(de::Error::custom(format_args!("{name:?} is given twice")));
                }
                others.iter().for_each(|at| self.values[*at].clone_from(&value));
                self.values[*first] = value;
            }
        }
        Ok(())
    }
}

impl Names {
    /// Notes a field, in which others may be. Returns the length of the path before.
    fn enter(&mut self, name: &str, is_wanted: bool) -> usize {
        let before = self.before.len();
        if is_wanted {
            self.paths.keep(format!("{}{name}", self.before));
        } else {
            self.paths.note(&self.before, name);
        }
        self.before.push_str(name);
        self.before.push('.');
        before
    }

    /// Goes from a field that is a list to its elements.
    fn enter_list(&mut self) {
        self.before.pop();
        self.before.push_str(LIST);
        self.before.push('.');
    }

    /// Notes the elements of a list as texts.
    fn note_texts(&mut self) {
        self.paths.note("", self.before.trim_end_matches('.'));
    }
}

/// A value that is wanted, or has wanted values in it.
struct Wanted<'p, 'v, 'l> {
    paths: &'p Rests<'p>,
    /// What is left of the paths behind the brackets of a list.
    lists: &'p Rests<'p>,
    values: &'v mut [Option<Value<'l>>],
    names: Option<&'v mut Names>,
    is_element: bool,
    depth: u32,
}

impl<'l> DeserializeSeed<'l> for Wanted<'_, '_, 'l> {
    type Value = Option<Value<'l>>;

    fn deserialize<D: de::Deserializer<'l>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'l> Visitor<'l> for Wanted<'_, '_, 'l> {
    type Value = Option<Value<'l>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Some(Value::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Some(Value::Whole(value.into())))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Some(Value::Whole(value.into())))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Some(Value::Float(value)))
    }

    fn visit_borrowed_str<E>(self, text: &'l str) -> Result<Self::Value, E> {
        Ok(Some(Value::Text(Cow::Borrowed(text))))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(Value::Text(Cow::Owned(text.to_owned()))))
    }

    fn visit_seq<A: SeqAccess<'l>>(mut self, mut list: A) -> Result<Self::Value, A::Error> {
        let (mut paths, mut lists, mut texts) = (Vec::new(), Vec::new(), Vec::new());
        for (at, rest) in self.lists {
            if rest.is_empty() {
                texts.push(*at);
            } else if let Some(rest) = rest.strip_prefix(LIST) {
                lists.push((*at, rest));
            } else if let Some(rest) = rest.strip_prefix('.') {
                paths.push((*at, rest));
            }
        }
        if self.depth < NAMES_DEPTH
            && let Some(names) = self.names.as_deref_mut()
        {
            names.enter_list();
        } else {
            self.names = None;
        }
        let mut read = 0;
        while !self.lists.is_empty() || self.names.is_some() {
            let before = self.names.as_deref().map(|names| names.before.len());
            let element = list.next_element_seed(Wanted {
                paths: &paths,
                lists: &lists,
                values: self.values,
                names: self.names.as_deref_mut(),
                is_element: true,
                depth: self.depth + 1,
            })?;
            let Some(value) = element else { return Ok(Some(Value::Other(A_LIST))) };
            texts.iter().for_each(|at| row::append(&mut self.values[*at], value.clone()));
            // A text may stand in the place of a list or an object.
            for (rests, kind) in [(&lists, A_LIST), (&paths, AN_OBJECT)] {
                for (at, _) in rests {
                    row::append_in_place_of(&mut self.values[*at], value.as_ref(), kind);
                }
            }
            read += 1;
            if let (Some(names), Some(before)) = (self.names.as_deref_mut(), before) {
                names.before.truncate(before);
                if matches!(value, Some(Value::Text(_))) {
                    names.note_texts();
                }
                if read >= NAMED_ELEMENTS {
                    self.names = None;
                }
            }
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Some(Value::Other(A_LIST)))
    }

    fn visit_map<A: MapAccess<'l>>(self, map: A) -> Result<Self::Value, A::Error> {
        let Self { paths, values, names, is_element, depth, .. } = self;
        Object { paths, values, names, is_element, depth }.visit_map(map)?;
        Ok(Some(Value::Other(AN_OBJECT)))
    }
}
/// The name of a field, which is borrowed where it has no escapes.
struct Name<'l>(Cow<'l, str>);

impl<'l> de::Deserialize<'l> for Name<'l> {
    fn deserialize<D: de::Deserializer<'l>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor;
        impl<'l> Visitor<'l> for NameVisitor {
            type Value = Name<'l>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a field")
            }

            fn visit_borrowed_str<E>(self, name: &'l str) -> Result<Name<'l>, E> {
                Ok(Name(Cow::Borrowed(name)))
            }

            fn visit_str<E>(self, name: &str) -> Result<Name<'l>, E> {
                Ok(Name(Cow::Owned(name.to_owned())))
            }
        }
        deserializer.deserialize_str(NameVisitor)
    }
}

#[cfg(test)]
mod tests;
