//! The schema of a Parquet file, in the description at its end. It is a list in which each group says how many of the next elements are in it.
//! The decoder follows these numbers by recursion, and takes memory by them; so they are checked first. It reads known fields as what they
//! have to be, whatever their type is said to be, so each has to be of its type here: otherwise the two would not read the same.

use std::io::Read;

use super::compact::{Compact, damaged, kind};
use crate::error::Reason;
use crate::limits::too_large;

/// The deepest nesting of a schema.
const DEPTH_MAX: usize = 64;

/// The room that the paths of all elements may take, in bytes: each column has one, with the names of all groups around it.
const PATHS_BYTES_MAX: usize = 64 << 20;

/// The room that an element takes beside its path, about.
const ELEMENT_BYTES: u64 = 256;

/// The deepest nesting in a field that is not looked at.
const SKIPPED_DEPTH_MAX: u32 = 16;

/// What an element says of itself.
#[derive(Default)]
struct Element {
    name_bytes: u64,
    children: u64,
}

/// A group that is not complete.
struct Group {
    /// How many of its children are to come.
    left: u64,
    /// The length of its path.
    path_bytes: u64,
}

/// Checks the schema in the description of a file.
///
/// # Errors
/// When it is damaged, nested too deep, or would take too much room.
pub(super) fn check_schema(description: impl Read) -> Result<(), Reason> {
    let mut compact = Compact::new(description);
    let mut number = 0;
    while let Some((next, kind)) = compact.field(number)? {
        number = next;
        match (number, kind) {
            // Writers have only the version in front of it.
            (1, kind::I32) => compact.skip(kind, SKIPPED_DEPTH_MAX)?,
            // The decoder takes no second one.
            (2, kind::LIST) => return check_elements(&mut compact),
            _ => break,
        }
    }
    Err(damaged())
}

fn check_elements<R: Read>(compact: &mut Compact<R>) -> Result<(), Reason> {
    let (kind, mut left) = compact.list()?;
    if kind != kind::STRUCT || left == 0 {
        return Err(damaged());
    }
    // How many elements the groups around have to come, which the list has to have.
    let mut owed = 1_u64;
    let mut bytes = 0_u64;
    let mut around: Vec<Group> = Vec::new();
    while left > 0 {
        if owed == 0 {
            return Err(damaged());
        }
        let element = Element::read(compact)?;
        left -= 1;
        owed = (owed - 1).saturating_add(element.children);
        if owed > left {
            return Err(damaged());
        }
        let outside = around.last().map_or(0, |group| group.path_bytes);
        let path_bytes = outside.saturating_add(element.name_bytes);
        bytes = bytes.saturating_add(path_bytes).saturating_add(ELEMENT_BYTES);
        too_large("the paths of a Parquet schema", bytes, PATHS_BYTES_MAX)?;
        if let Some(group) = around.last_mut() {
            group.left -= 1;
        }
        if element.children > 0 {
            around.push(Group { left: element.children, path_bytes });
        }
        if around.len() > DEPTH_MAX {
            return Err(Reason::Columns(format!("a schema that is more than {DEPTH_MAX} deep")));
        }
        while around.last().is_some_and(|group| group.left == 0) {
            around.pop();
        }
    }
    Ok(())
}

impl Element {
    fn read<R: Read>(compact: &mut Compact<R>) -> Result<Self, Reason> {
        let mut element = Self::default();
        compact.fields(|compact, field, kind| {
            match (field, kind) {
                (4, kind::BINARY) => {
                    element.name_bytes = compact.varint()?;
                    compact.skip_bytes(element.name_bytes)?;
                }
                (5, kind::I32) => element.children = compact.number()?.into(),
                (10, kind::STRUCT) => skip_logical_type(compact)?,
                (1..=3 | 6..=9, kind::I32) => compact.skip(kind, SKIPPED_DEPTH_MAX)?,
                (1..=10, _) => return Err(damaged()),
                _ => compact.skip(kind, SKIPPED_DEPTH_MAX)?,
            }
            Ok(())
        })?;
        Ok(element)
    }
}

/// Goes over what a column means: one structure of several, by its number.
fn skip_logical_type<R: Read>(compact: &mut Compact<R>) -> Result<(), Reason> {
    compact.fields(|compact, which, kind| {
        if kind != kind::STRUCT {
            return Err(damaged());
        }
        compact.fields(|compact, field, kind| {
            let is_right = match (which, field) {
                // The scale and the precision of a decimal number; the algorithm of a geography.
                (5, 1 | 2) | (18, 2) => kind == kind::I32,
                // The unit of a time.
                (7 | 8, 2) if kind == kind::STRUCT => {
                    return compact.fields(|compact, _, kind| match kind {
                        kind::STRUCT => compact.skip(kind, SKIPPED_DEPTH_MAX),
                        _ => Err(damaged()),
                    });
                }
                (7 | 8, 2) => false,
                // Whether it is of UTC; whether a number has a sign.
                (7 | 8, 1) | (10, 2) => matches!(kind, kind::TRUE | kind::FALSE),
                // The bits of a number; the version of a variant.
                (10 | 16, 1) => kind == kind::BYTE,
                // The reference system of a geometry.
                (17 | 18, 1) => kind == kind::BINARY,
                _ => true,
            };
            if is_right { compact.skip(kind, SKIPPED_DEPTH_MAX) } else { Err(damaged()) }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An element with this name and so many children.
    fn element(name: &str, children: u64) -> Vec<u8> {
        let mut bytes = vec![0x48];
        varint(name.len() as u64, &mut bytes);
        bytes.extend(name.as_bytes());
        if children > 0 {
            bytes.push(0x15);
            varint(children << 1, &mut bytes);
        }
        bytes.push(0);
        bytes
    }

    fn varint(mut number: u64, bytes: &mut Vec<u8>) {
        while number >= 0x80 {
            bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        bytes.push(number as u8);
    }

    /// A description with this schema.
    fn description(elements: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = vec![0x15, 0x04, 0x19, 0xfc];
        varint(elements.len() as u64, &mut bytes);
        bytes.extend(elements.concat());
        bytes.push(0);
        bytes
    }

    fn check(elements: &[Vec<u8>]) -> Result<(), Reason> {
        check_schema(&*description(elements))
    }

    #[test]
    fn schemas_that_are_complete_are_taken() {
        let nested = [element("root", 3), element("a", 0), element("b", 2), element("c", 0), element("d", 1)];
        let mut nested = nested.to_vec();
        nested.extend([element("e", 0), element("f", 0)]);
        assert!(check(&nested).is_ok());
        assert!(check(&[element("root", 0)]).is_ok());
        let wide: Vec<_> = (0..20_000).map(|n| element(&format!("column {n}"), 0)).collect();
        assert!(check(&[vec![element("root", 20_000)], wide].concat()).is_ok());
        let deep: Vec<_> = (0..DEPTH_MAX).map(|_| element("g", 1)).chain([element("leaf", 0)]).collect();
        assert!(check(&deep).is_ok());
    }

    #[test]
    fn numbers_of_children_are_those_of_the_list() {
        let cases: [&[Vec<u8>]; 6] = [
            &[],
            &[element("root", 2), element("a", 0)],
            &[element("root", 1), element("a", 0), element("b", 0)],
            &[element("root", (1 << 31) - 1), element("a", 0)],
            &[element("root", 2), element("a", 1), element("b", 0)],
            &[element("root", 1), element("a", 1 << 40)],
        ];
        for (number, case) in cases.into_iter().enumerate() {
            assert!(matches!(check(case), Err(Reason::Columns(_))), "{number}");
        }
    }

    #[test]
    fn depth_and_room_are_bounded() {
        let deep: Vec<_> = (0..100_000).map(|_| element("g", 1)).chain([element("leaf", 0)]).collect();
        assert!(matches!(check(&deep), Err(Reason::Columns(why)) if why.contains("more than 64 deep")));
        let long = element(&"k".repeat(1 << 20), 10_000);
        let many = vec![element("a", 0); 10_000];
        let schema = [vec![element("root", 1), long], many].concat();
        assert!(matches!(check(&schema), Err(Reason::TooLarge { .. })));
    }

    #[test]
    fn a_field_of_another_type_is_refused() {
        // The number of children as another type, and the name.
        for bad in [
            &[0x48, 1, b'r', 0x16, 2, 0][..],
            &[0x45, 2, 0],
            &[0x48, 1, b'r', 0x58, 1, 2, 0],
            // The unit of a time that is no structure.
            &[0x48, 1, b'r', 0x6c, 0x8c, 0x11, 0x11, 0, 0, 0],
            &[0x48, 1, b'r', 0x6c, 0x8c, 0x11, 0x1c, 0x11, 0, 0, 0, 0],
        ] {
            assert!(check(&[bad.to_vec()]).is_err(), "{bad:?}");
        }
        let time = [0x48, 1, b'r', 0x6c, 0x8c, 0x11, 0x1c, 0x1c, 0, 0, 0, 0, 0];
        assert!(check(&[time.to_vec()]).is_ok());
        // Another field in front of the schema, and none at all.
        assert!(check_schema(&[0x15, 0x04, 0x29, 0x0c, 0][..]).is_err());
        assert!(check_schema(&[0x15, 0x04, 0][..]).is_err());
    }
}
