//! Checks the schema of a Parquet file, which is part of the footer, before the decoder reads it.
//!
//! A schema is a flat list of elements. An element is a column or a group, and each group declares how many
//! of the elements after it are its children. The decoder follows these numbers by recursion and takes memory
//! for them. A hostile file could therefore overflow the stack or exhaust the memory. The check bounds the
//! depth of the nesting and the memory for all paths, and every declared child must be in the list.
//!
//! The decoder reads each field that it knows as the type that the format prescribes, whatever type the file
//! declares. The check refuses a field of another type. Otherwise the check and the decoder would read the
//! same bytes differently.

use std::io::Read;

use super::compact::{CompactReader, damaged, kind};
use doppel_streams::{Reason, too_large};

/// The deepest nesting of a schema.
const DEPTH_MAX: usize = 64;

/// The memory that the paths of all elements may take, in bytes. The path of a column contains the names of
/// all groups that the column is in.
const PATHS_BYTES_MAX: usize = 64 << 20;

/// The memory that an element takes in addition to its path, in bytes, approximately.
const ELEMENT_BYTES: u64 = 256;

/// The deepest nesting in a field that the check skips.
const SKIPPED_DEPTH_MAX: u32 = 16;

/// The parts of a schema element that the check needs.
#[derive(Default)]
struct Element {
    name_bytes: u64,
    /// The number of children that the element declares. 0 for a column.
    children: u64,
}

/// A group whose children have not all been read.
struct OpenGroup {
    /// The number of children that have not been read.
    left: u64,
    /// The length of the path of the group in bytes.
    path_bytes: u64,
}

/// Checks the schema in a footer.
///
/// # Errors
/// If the schema is damaged, is nested too deep, or would take too much memory.
pub(super) fn check_schema(footer: impl Read) -> Result<(), Reason> {
    let mut reader = CompactReader::new(footer);
    let mut number = 0;
    while let Some((next, kind)) = reader.field(number)? {
        number = next;
        match (number, kind) {
            // Writers put only the version before the schema.
            (1, kind::I32) => reader.skip(kind, SKIPPED_DEPTH_MAX)?,
            // The decoder ignores a second schema, so the rest of the footer needs no check.
            (2, kind::LIST) => return check_elements(&mut reader),
            _ => break,
        }
    }
    Err(damaged())
}

fn check_elements<R: Read>(reader: &mut CompactReader<R>) -> Result<(), Reason> {
    let (kind, mut left) = reader.list()?;
    if kind != kind::STRUCT || left == 0 {
        return Err(damaged());
    }
    // The number of children that all open groups still need. The list must contain them.
    let mut needed = 1_u64;
    let mut bytes = 0_u64;
    let mut open_groups: Vec<OpenGroup> = Vec::new();
    while left > 0 {
        if needed == 0 {
            return Err(damaged());
        }
        let element = Element::read(reader)?;
        left -= 1;
        needed = (needed - 1).saturating_add(element.children);
        if needed > left {
            return Err(damaged());
        }
        let parent_bytes = open_groups.last().map_or(0, |group| group.path_bytes);
        let path_bytes = parent_bytes.saturating_add(element.name_bytes);
        bytes = bytes.saturating_add(path_bytes).saturating_add(ELEMENT_BYTES);
        too_large("the paths of a Parquet schema", bytes, PATHS_BYTES_MAX)?;
        if let Some(group) = open_groups.last_mut() {
            group.left -= 1;
        }
        if element.children > 0 {
            open_groups.push(OpenGroup { left: element.children, path_bytes });
        }
        if open_groups.len() > DEPTH_MAX {
            return Err(Reason::Columns(format!("the schema is nested more than {DEPTH_MAX} deep")));
        }
        while open_groups.last().is_some_and(|group| group.left == 0) {
            open_groups.pop();
        }
    }
    Ok(())
}

impl Element {
    fn read<R: Read>(reader: &mut CompactReader<R>) -> Result<Self, Reason> {
        let mut element = Self::default();
        reader.fields(|reader, field, kind| {
            match (field, kind) {
                (4, kind::BINARY) => {
                    element.name_bytes = reader.varint()?;
                    reader.skip_bytes(element.name_bytes)?;
                }
                (5, kind::I32) => element.children = reader.number()?.into(),
                (10, kind::STRUCT) => skip_logical_type(reader)?,
                (1..=3 | 6..=9, kind::I32) => reader.skip(kind, SKIPPED_DEPTH_MAX)?,
                (1..=10, _) => return Err(damaged()),
                _ => reader.skip(kind, SKIPPED_DEPTH_MAX)?,
            }
            Ok(())
        })?;
        Ok(element)
    }
}

/// Skips the logical type of a column and checks the types of its fields. A logical type is a union: a
/// structure with one field, whose number says which logical type it is.
fn skip_logical_type<R: Read>(reader: &mut CompactReader<R>) -> Result<(), Reason> {
    reader.fields(|reader, logical_type, kind| {
        if kind != kind::STRUCT {
            return Err(damaged());
        }
        reader.fields(|reader, field, kind| {
            let has_right_type = match (logical_type, field) {
                // The scale and the precision of a decimal; the algorithm of a geography.
                (5, 1 | 2) | (18, 2) => kind == kind::I32,
                // The unit of a time or a timestamp.
                (7 | 8, 2) if kind == kind::STRUCT => {
                    return reader.fields(|reader, _, kind| match kind {
                        kind::STRUCT => reader.skip(kind, SKIPPED_DEPTH_MAX),
                        _ => Err(damaged()),
                    });
                }
                (7 | 8, 2) => false,
                // Whether a time or a timestamp is in UTC; whether an integer has a sign.
                (7 | 8, 1) | (10, 2) => matches!(kind, kind::TRUE | kind::FALSE),
                // The number of bits of an integer; the version of a variant.
                (10 | 16, 1) => kind == kind::BYTE,
                // The coordinate reference system of a geometry or a geography.
                (17 | 18, 1) => kind == kind::BINARY,
                _ => true,
            };
            if has_right_type { reader.skip(kind, SKIPPED_DEPTH_MAX) } else { Err(damaged()) }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A schema element with a name and a declared number of children.
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

    /// A footer with a schema of these elements.
    fn footer(elements: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = vec![0x15, 0x04, 0x19, 0xfc];
        varint(elements.len() as u64, &mut bytes);
        bytes.extend(elements.concat());
        bytes.push(0);
        bytes
    }

    fn check(elements: &[Vec<u8>]) -> Result<(), Reason> {
        check_schema(&*footer(elements))
    }

    #[test]
    fn a_complete_schema_is_accepted() {
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
    fn a_schema_whose_numbers_of_children_do_not_match_its_list_is_refused() {
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
    fn the_depth_of_a_schema_and_the_memory_for_its_paths_are_bounded() {
        let deep: Vec<_> = (0..100_000).map(|_| element("g", 1)).chain([element("leaf", 0)]).collect();
        assert!(matches!(check(&deep), Err(Reason::Columns(why)) if why.contains("more than 64 deep")));
        let long = element(&"k".repeat(1 << 20), 10_000);
        let many = vec![element("a", 0); 10_000];
        let schema = [vec![element("root", 1), long], many].concat();
        assert!(matches!(check(&schema), Err(Reason::TooLarge { .. })));
    }

    #[test]
    fn a_field_that_does_not_have_its_prescribed_type_is_refused() {
        // Numbers of children and a name with wrong types.
        for bad in [
            &[0x48, 1, b'r', 0x16, 2, 0][..],
            &[0x45, 2, 0],
            &[0x48, 1, b'r', 0x58, 1, 2, 0],
            // Units of a time that are not structures.
            &[0x48, 1, b'r', 0x6c, 0x8c, 0x11, 0x11, 0, 0, 0],
            &[0x48, 1, b'r', 0x6c, 0x8c, 0x11, 0x1c, 0x11, 0, 0, 0, 0],
        ] {
            assert!(check(&[bad.to_vec()]).is_err(), "{bad:?}");
        }
        let time = [0x48, 1, b'r', 0x6c, 0x8c, 0x11, 0x1c, 0x1c, 0, 0, 0, 0, 0];
        assert!(check(&[time.to_vec()]).is_ok());
        // A footer with another field before the schema, and a footer without a schema.
        assert!(check_schema(&[0x15, 0x04, 0x29, 0x0c, 0][..]).is_err());
        assert!(check_schema(&[0x15, 0x04, 0][..]).is_err());
    }
}
