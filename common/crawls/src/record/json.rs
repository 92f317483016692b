//! Reads a JSON object as a [`Row`] in one pass over its text. Only the values at the wanted paths are kept
//! in memory.
//!
//! The parser carries the wanted paths down into the object. At each field it strips the name of the field
//! from the paths that begin with it, and passes the remaining paths on to the value. A value without
//! remaining paths is skipped, so its content and depth do not matter.

use std::borrow::Cow;
use std::fmt;
use std::mem;

use serde::de::{self, DeserializeSeed, Deserializer as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

use doppel_contract::page::{ItemError, ItemReason};

use super::paths::Paths;
use super::row::{self, A_LIST, AN_OBJECT, LIST, Row, Value};

/// The depth below which the paths of fields are not collected.
const NAMES_DEPTH_MAX: u32 = 32;
/// The number of elements of a list in which the paths of fields are collected.
const NAMED_ELEMENTS_MAX: usize = 4;

/// The wanted values of one JSON object.
pub struct JsonRow<'w, 'l> {
    wanted: &'w [String],
    /// The value of each wanted path, in the order of `wanted`.
    values: Vec<Option<Value<'l>>>,
    names: PathCollector,
}

impl<'w, 'l> JsonRow<'w, 'l> {
    /// Reads the values at the paths `wanted` from a text that is one JSON object. A path that occurs twice
    /// in `wanted` can be taken twice. If `with_names`, also collects the paths of the fields, up to a limit.
    ///
    /// # Errors
    /// If the text is not a JSON object, or has a wanted field twice.
    pub fn parse(json: &'l [u8], wanted: &'w [String], with_names: bool) -> Result<Self, ItemError> {
        let names = PathCollector::default();
        let mut row = Self { wanted, values: wanted.iter().map(|_| None).collect(), names };
        let paths: Vec<(usize, &str)> = wanted.iter().map(String::as_str).enumerate().collect();
        let object = ObjectVisitor {
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

    /// Marks the texts that had lone surrogates as [`Value::Broken`]. `stripped` is the same row without its
    /// lone surrogates, so exactly these texts differ between the two rows.
    pub(super) fn mark_broken(&mut self, stripped: &JsonRow<'_, '_>) {
        for (value, stripped) in self.values.iter_mut().zip(&stripped.values) {
            let Some(Value::Text(text)) = value else { continue };
            if !matches!(stripped, Some(Value::Text(stripped)) if stripped == text) {
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

/// Collects the paths of the fields while an object is parsed.
#[derive(Default)]
struct PathCollector {
    paths: Paths,
    /// The path of the object that is being parsed, with a dot at the end. Empty for the outermost object.
    prefix: String,
}

/// The remaining parts of wanted paths, each with the index of its value in [`JsonRow::values`].
type RemainingPaths<'p> = [(usize, &'p str)];

/// Parses an object that may contain wanted values.
struct ObjectVisitor<'p, 'v, 'l> {
    paths: &'p RemainingPaths<'p>,
    values: &'v mut [Option<Value<'l>>],
    names: Option<&'v mut PathCollector>,
    /// Whether the object is inside a list. Its texts are then appended to the texts of the elements before
    /// it.
    is_element: bool,
    depth: u32,
}

impl<'l> Visitor<'l> for ObjectVisitor<'_, '_, 'l> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'l>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(JsonKey(name)) = map.next_key()? {
            // The wanted paths that end here, that lead into an object, and that lead into a list.
            let mut ends = Vec::new();
            let (mut deeper, mut lists) = (Vec::new(), Vec::new());
            for (at, path) in self.paths {
                match path.strip_prefix(&*name) {
                    Some("") => ends.push(*at),
                    Some(rest) => {
                        deeper.extend(rest.strip_prefix('.').map(|rest| (*at, rest)));
                        lists.extend(rest.strip_prefix(LIST).map(|rest| (*at, rest)));
                    }
                    None => {}
                }
            }
            let is_wanted = !ends.is_empty() || !deeper.is_empty() || !lists.is_empty();
            if !is_wanted && (self.names.is_none() || self.depth >= NAMES_DEPTH_MAX) {
                if let Some(names) = self.names.as_deref_mut() {
                    names.paths.note(&names.prefix, &name);
                }
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let outer_length = self.names.as_deref_mut().map(|names| names.enter(&name, !ends.is_empty()));
            let value = map.next_value_seed(ValueSeed {
                paths: &deeper,
                lists: &lists,
                values: self.values,
                names: self.names.as_deref_mut(),
                is_element: self.is_element,
                depth: self.depth + 1,
            })?;
            if let (Some(names), Some(outer_length)) = (&mut self.names, outer_length) {
                names.prefix.truncate(outer_length);
            }
            for (at, _) in &lists {
                row::append_in_place_of(&mut self.values[*at], value.as_ref(), A_LIST);
            }
            if self.is_element {
                ends.iter().for_each(|at| row::append(&mut self.values[*at], value.clone()));
            } else if let [first, others @ ..] = &*ends {
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

impl PathCollector {
    /// Adds the path of a field, even beyond the limit if the path is wanted, and makes it the prefix of the
    /// fields inside it. Returns the length of the prefix before, to which the caller truncates it
    /// afterwards.
    fn enter(&mut self, name: &str, is_wanted: bool) -> usize {
        let outer_length = self.prefix.len();
        if is_wanted {
            self.paths.push(format!("{}{name}", self.prefix));
        } else {
            self.paths.note(&self.prefix, name);
        }
        self.prefix.push_str(name);
        self.prefix.push('.');
        outer_length
    }

    /// Extends the prefix by the brackets of a list, for the fields inside its elements.
    fn enter_list(&mut self) {
        self.prefix.pop();
        self.prefix.push_str(LIST);
        self.prefix.push('.');
    }

    /// Adds the path of the elements of a list, because they are texts.
    fn note_texts(&mut self) {
        self.paths.note("", self.prefix.trim_end_matches('.'));
    }
}

/// Parses a value that is wanted or may contain wanted values, or whose fields have their paths collected.
struct ValueSeed<'p, 'v, 'l> {
    /// The remaining paths if the value is an object.
    paths: &'p RemainingPaths<'p>,
    /// The remaining paths after the brackets if the value is a list.
    lists: &'p RemainingPaths<'p>,
    values: &'v mut [Option<Value<'l>>],
    names: Option<&'v mut PathCollector>,
    is_element: bool,
    depth: u32,
}

impl<'l> DeserializeSeed<'l> for ValueSeed<'_, '_, 'l> {
    type Value = Option<Value<'l>>;

    fn deserialize<D: de::Deserializer<'l>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'l> Visitor<'l> for ValueSeed<'_, '_, 'l> {
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
        if self.depth < NAMES_DEPTH_MAX
            && let Some(names) = self.names.as_deref_mut()
        {
            names.enter_list();
        } else {
            self.names = None;
        }
        let mut read = 0;
        while !self.lists.is_empty() || self.names.is_some() {
            let outer_length = self.names.as_deref().map(|names| names.prefix.len());
            let element = list.next_element_seed(ValueSeed {
                paths: &paths,
                lists: &lists,
                values: self.values,
                names: self.names.as_deref_mut(),
                is_element: true,
                depth: self.depth + 1,
            })?;
            let Some(value) = element else { return Ok(Some(Value::Other(A_LIST))) };
            texts.iter().for_each(|at| row::append(&mut self.values[*at], value.clone()));
            // A text instead of a list or an object is appended as if it were inside one.
            for (rests, kind) in [(&lists, A_LIST), (&paths, AN_OBJECT)] {
                for (at, _) in rests {
                    row::append_in_place_of(&mut self.values[*at], value.as_ref(), kind);
                }
            }
            read += 1;
            if let (Some(names), Some(outer_length)) = (self.names.as_deref_mut(), outer_length) {
                names.prefix.truncate(outer_length);
                if matches!(value, Some(Value::Text(_))) {
                    names.note_texts();
                }
                if read >= NAMED_ELEMENTS_MAX {
                    self.names = None;
                }
            }
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Some(Value::Other(A_LIST)))
    }

    fn visit_map<A: MapAccess<'l>>(self, map: A) -> Result<Self::Value, A::Error> {
        let Self { paths, values, names, is_element, depth, .. } = self;
        ObjectVisitor { paths, values, names, is_element, depth }.visit_map(map)?;
        Ok(Some(Value::Other(AN_OBJECT)))
    }
}

/// The name of a field. It is borrowed unless it contains escapes.
struct JsonKey<'l>(Cow<'l, str>);

impl<'l> de::Deserialize<'l> for JsonKey<'l> {
    fn deserialize<D: de::Deserializer<'l>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'l> Visitor<'l> for KeyVisitor {
            type Value = JsonKey<'l>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a field")
            }

            fn visit_borrowed_str<E>(self, name: &'l str) -> Result<JsonKey<'l>, E> {
                Ok(JsonKey(Cow::Borrowed(name)))
            }

            fn visit_str<E>(self, name: &str) -> Result<JsonKey<'l>, E> {
                Ok(JsonKey(Cow::Owned(name.to_owned())))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}

#[cfg(test)]
mod tests;
