use arrow_ipc::Block;
use arrow_schema::{DataType, Field};

use super::file::check_blocks;
use super::*;

fn decoder(names: &[&str]) -> Decoder {
    let fields: Vec<_> = names.iter().map(|name| Field::new(*name, DataType::Int64, true)).collect();
    let now = doppel_model::Timestamp::from_millis(0);
    Decoder::new(Schema::new(fields), Limits { columns_bytes_max: 1_000, ..Limits::at(now) })
}

#[test]
fn messages_that_share_bytes_are_refused() {
    let blocks = [Block::new(8, 100, 200), Block::new(8, 100, 200)];
    assert!(check_blocks(blocks.iter(), 600).is_ok());
    assert!(check_blocks(blocks.iter(), 599).is_err());
}

#[test]
fn if_several_columns_have_one_name_the_first_is_read() {
    let mut decoder = decoder(&["b", "a", "a", "a.b", "a"]);
    decoder.project(Some(&["a".to_owned(), "a.b".to_owned()]));
    assert_eq!(decoder.projection, [1, 3]);
}

#[test]
fn the_size_of_the_present_dictionaries_and_the_number_of_their_additions_are_bounded() {
    let mut decoder = decoder(&[]);
    for _ in 0..100 {
        assert_eq!(decoder.check_dictionary(1, 600, false).unwrap(), 0);
    }
    assert!(decoder.check_dictionary(2, 400, false).is_ok());
    assert!(decoder.check_dictionary(2, 401, false).is_err());
    assert_eq!(decoder.check_dictionary(2, 100, false).unwrap(), 0);
    assert_eq!(decoder.check_dictionary(2, 100, true).unwrap(), 200);
    assert!((0..ADDITIONS_MAX).any(|_| decoder.check_dictionary(2, 0, true).is_err()));
    assert!(decoder.check_dictionary(2, 0, false).is_ok());
}
