//! A JSON object as a row: one pass over its text, in which only the wanted values are kept.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

use doppel_protocol::page::{ItemError, ItemReason};

use super::row::{Row, Value};

/// The wanted values of one JSON object.
pub struct JsonRow<'w, 'l> {
    wanted: &'w [String],
    values: Vec<Option<Value<'l>>>,
    names: Names,
}

impl<'w, 'l> JsonRow<'w, 'l> {
    /// Reads the values at the paths `wanted` from a text that is one JSON object. The paths of all its fields are kept `with_names`.
    ///
    /// # Errors
    /// When it is no JSON object, or has a wanted field twice.
    pub fn parse(json: &'l [u8], wanted: &'w [String], with_names: bool) -> Result<Self, ItemError> {
        let mut row = Self { wanted, values: wanted.iter().map(|_| None).collect(), names: Names::default() };
        let paths: Vec<(usize, &str)> = wanted.iter().map(String::as_str).enumerate().collect();
        let object =
            Object { paths: &paths, values: &mut row.values, names: with_names.then_some(&mut row.names) };
        let mut json = serde_json::Deserializer::from_slice(json);
        match json.deserialize_map(object).and_then(|()| json.end()) {
            Ok(()) => Ok(row),
            Err(error) => Err(ItemError { field: None, reason: ItemReason::json(&error) }),
        }
    }
}

impl<'l> Row<'l> for JsonRow<'_, 'l> {
    fn take(&mut self, path: &str) -> Option<Value<'l>> {
        let at = self.wanted.iter().position(|wanted| wanted == path)?;
        self.values[at].take()
    }

    fn names(&self, each: &mut dyn FnMut(&str)) {
        self.names.paths.iter().for_each(|path| each(path));
    }
}

/// The paths of fields, in one object after the other.
#[derive(Default)]
struct Names {
    paths: Vec<String>,
    /// The path of the object that is read, with a dot at the end.
    before: String,
}

/// An object on the way to wanted values: what is left of their paths, and the place of each value.
struct Object<'p, 'v, 'l> {
    paths: &'p [(usize, &'p str)],
    values: &'v mut [Option<Value<'l>>],
    names: Option<&'v mut Names>,
}

impl<'l> Visitor<'l> for Object<'_, '_, 'l> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'l>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(Name(name)) = map.next_key()? {
            let mut leaf = None;
            let mut deeper = Vec::new();
            for (at, path) in self.paths {
                match path.strip_prefix(&*name) {
                    Some("") => leaf = Some(*at),
                    Some(rest) => deeper.extend(rest.strip_prefix('.').map(|rest| (*at, rest))),
                    None => {}
                }
            }
            if leaf.is_none() && deeper.is_empty() && self.names.is_none() {
                map.next_value::<IgnoredAny>()?;
            } else {
                let before = self.names.as_deref_mut().map(|names| names.enter(&name));
                let names = self.names.as_deref_mut();
                let value = map.next_value_seed(Wanted { paths: &deeper, values: self.values, names })?;
                if let (Some(names), Some(before)) = (&mut self.names, before) {
                    names.before.truncate(before);
                }
                if let Some(at) = leaf {
                    if self.values[at].is_some() {
                        return Err(de::Error::custom(format_args!("{name:?} is given twice")));
                    }
                    self.values[at] = value;
                }
            }
        }
        Ok(())
    }
}

impl Names {
    /// Notes a field, in which others may be. Returns the length of the path before.
    fn enter(&mut self, name: &str) -> usize {
        let before = self.before.len();
        self.before.push_str(name);
        self.paths.push(self.before.clone());
        self.before.push('.');
        before
    }
}

/// A value that is wanted, or has wanted values in it.
struct Wanted<'p, 'v, 'l> {
    paths: &'p [(usize, &'p str)],
    values: &'v mut [Option<Value<'l>>],
    names: Option<&'v mut Names>,
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

    fn visit_seq<A: SeqAccess<'l>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Some(Value::Other("a list")))
    }

    fn visit_map<A: MapAccess<'l>>(self, map: A) -> Result<Self::Value, A::Error> {
        Object { paths: self.paths, values: self.values, names: self.names }.visit_map(map)?;
        Ok(Some(Value::Other("an object")))
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
