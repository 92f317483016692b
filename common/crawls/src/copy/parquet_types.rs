//! Chooses the Parquet schema of a copy. It is the schema of the input, as far as the encoder writes the same
//! values with it. A copy must never change a value, so an input with other columns is refused.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use doppel_streams::Reason;
use parquet::basic::{ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::errors::ParquetError;
use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};

/// The number of bytes of the longest decimal.
const DECIMAL_BYTES_MAX: i32 = 32;

/// The schema of a copy: the columns of the `input`, then the further columns of `schema` as text or
/// floating-point numbers. `None` if the input has columns of the type `INT96`, which is no longer written.
/// The encoder then chooses the schema.
///
/// # Errors
/// If the values of a column would be changed by the copy.
pub(super) fn output_schema(
    input: &SchemaDescriptor,
    schema: &SchemaRef,
) -> Result<Option<SchemaDescriptor>, Reason> {
    check_types(input)?;
    if input.columns().iter().any(|column| column.physical_type() == Physical::INT96) {
        return Ok(None);
    }
    let root = input.root_schema();
    let fields: Result<Vec<TypePtr>, _> = root.get_fields().iter().map(written_type).collect();
    let mut fields = fields.map_err(Reason::columns)?;
    for field in schema.fields().iter().skip(fields.len()) {
        let column = if field.data_type().is_floating() {
            Type::primitive_type_builder(field.name(), Physical::DOUBLE)
        } else {
            Type::primitive_type_builder(field.name(), Physical::BYTE_ARRAY)
                .with_converted_type(ConvertedType::UTF8)
                .with_logical_type(Some(LogicalType::String))
        };
        let column = column.with_repetition(Repetition::OPTIONAL).build();
        fields.push(Arc::new(column.map_err(Reason::columns)?));
    }
    let root = Type::group_type_builder(root.name()).with_fields(fields).build().map_err(Reason::columns)?;
    Ok(Some(SchemaDescriptor::new(Arc::new(root))))
}

/// Refuses columns whose values a copy would change. The decoder does not read the months of an interval, and
/// the encoder does not write decimals of variable length.
pub(super) fn check_types(input: &SchemaDescriptor) -> Result<(), Reason> {
    for column in input.columns() {
        let is = match column.converted_type() {
            ConvertedType::INTERVAL => "an interval",
            ConvertedType::DECIMAL if column.physical_type() == Physical::BYTE_ARRAY => {
                "a decimal of any length"
            }
            _ => continue,
        };
        return Err(Reason::Unwritable { column: column.path().string(), is });
    }
    Ok(())
}

/// The type with which a column or a group of columns is written. The encoder writes a decimal with as many
/// bytes as its precision needs, whatever its length in the input. All other types stay as they are.
fn written_type(read: &TypePtr) -> Result<TypePtr, ParquetError> {
    let info = read.get_basic_info();
    let id = info.has_id().then(|| info.id());
    match &**read {
        Type::GroupType { fields, .. } => {
            let fields: Vec<TypePtr> = fields.iter().map(written_type).collect::<Result<_, _>>()?;
            if fields.iter().zip(read.get_fields()).all(|(written, read)| Arc::ptr_eq(written, read)) {
                return Ok(Arc::clone(read));
            }
            let group = Type::group_type_builder(read.name())
                .with_repetition(info.repetition())
                .with_converted_type(info.converted_type())
                .with_logical_type(info.logical_type_ref().cloned())
                .with_id(id);
            Ok(Arc::new(group.with_fields(fields).build()?))
        }
        Type::PrimitiveType { physical_type, type_length, scale, precision, .. } => {
            let is_fixed = *physical_type == Physical::FIXED_LEN_BYTE_ARRAY
                && info.converted_type() == ConvertedType::DECIMAL;
            if !is_fixed || *type_length == decimal_bytes(*precision) {
                return Ok(Arc::clone(read));
            }
            let column = Type::primitive_type_builder(read.name(), *physical_type)
                .with_repetition(info.repetition())
                .with_converted_type(info.converted_type())
                .with_logical_type(info.logical_type_ref().cloned())
                .with_length(decimal_bytes(*precision))
                .with_precision(*precision)
                .with_scale(*scale)
                .with_id(id);
            Ok(Arc::new(column.build()?))
        }
    }
}

/// The number of bytes that a sign and `precision` decimal digits need.
fn decimal_bytes(precision: i32) -> i32 {
    let fits = |bytes: &i32| 10_f64.powi(precision) < 2_f64.powi(8 * bytes - 1);
    (1..DECIMAL_BYTES_MAX).find(fits).unwrap_or(DECIMAL_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use arrow_array::cast::AsArray;
    use arrow_array::types::{Decimal128Type, Decimal256Type};
    use arrow_array::{ArrayRef, Decimal128Array, RecordBatch, StringArray};
    use arrow_schema::DataType;
    use bytes::Bytes;
    use parquet::arrow::ArrowWriter;
    use parquet::arrow::arrow_reader::{
        ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
    };
    use parquet::data_type::{ByteArrayType, FixedLenByteArrayType};
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    use super::*;
    use crate::copy::batch_writers::{BatchWriter, ParquetBatchWriter};

    /// A Parquet file with a column `x` of the type in `column`, with these values as bytes.
    fn file(column: &str, values: &[Vec<u8>]) -> Bytes {
        let schema = Arc::new(parse_message_type(&format!("message m {{ required {column}; }}")).unwrap());
        let is_fixed = column.starts_with("fixed");
        let properties = Arc::new(WriterProperties::builder().build());
        let mut writer = SerializedFileWriter::new(Vec::new(), schema, properties).unwrap();
        let mut group = writer.next_row_group().unwrap();
        let mut out = group.next_column().unwrap().unwrap();
        let values = values.iter().map(|value| Bytes::from(value.clone()).into());
        if is_fixed {
            let values: Vec<_> = values.map(|value: parquet::data_type::ByteArray| value.into()).collect();
            out.typed::<FixedLenByteArrayType>().write_batch(&values, None, None).unwrap();
        } else {
            out.typed::<ByteArrayType>().write_batch(&values.collect::<Vec<_>>(), None, None).unwrap();
        }
        out.close().unwrap();
        group.close().unwrap();
        writer.into_inner().unwrap().into()
    }

    fn rows(file: Bytes) -> RecordBatch {
        ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap().next().unwrap().unwrap()
    }

    fn shown(rows: &RecordBatch) -> Vec<String> {
        let column = rows.column(0);
        let value = |row| match column.data_type() {
            DataType::Decimal256(..) => column.as_primitive::<Decimal256Type>().value_as_string(row),
            _ => column.as_primitive::<Decimal128Type>().value_as_string(row),
        };
        (0..rows.num_rows()).map(value).collect()
    }

    #[test]
    fn decimals_of_every_width_keep_their_values() {
        for (width, precision) in [(16, 9), (16, 20), (5, 10), (9, 18), (16, 38), (24, 30), (4, 9)] {
            let value = |n: i128| {
                let wide = [vec![if n < 0 { 0xff } else { 0 }; 32], n.to_be_bytes().to_vec()].concat();
                wide[wide.len() - width..].to_vec()
            };
            let read = file(
                &format!("fixed_len_byte_array({width}) x (DECIMAL({precision}, 2))"),
                &[value(123_456_789), value(-1), value(0)],
            );
            let metadata = ArrowReaderMetadata::load(&read, ArrowReaderOptions::new()).unwrap();
            let mut out = ParquetBatchWriter::new(Vec::new(), metadata.schema(), &metadata).unwrap();
            let before = rows(read.clone());
            out.write(&before).unwrap();
            let after = rows(out.finish().unwrap().into());
            assert_eq!(shown(&after), shown(&before));
            assert_eq!(shown(&after).concat(), "1234567.89-0.010.00", "{width} {precision}");
        }
    }

    #[test]
    fn a_column_whose_values_a_copy_would_change_is_refused() {
        for (column, value, is) in [
            ("fixed_len_byte_array(12) x (INTERVAL)", vec![1; 12], "an interval"),
            ("byte_array x (DECIMAL(9, 2))", vec![1], "a decimal of any length"),
        ] {
            let read = file(column, &[value]);
            let metadata = ArrowReaderMetadata::load(&read, ArrowReaderOptions::new()).unwrap();
            let writer = ParquetBatchWriter::new(Vec::new(), metadata.schema(), &metadata);
            let error = writer.err().unwrap().to_string();
            assert!(error.starts_with(&format!("the column \"x\" is {is}")), "{error}");
        }
    }

    #[test]
    fn the_check_before_a_copy_refuses_only_files_that_cannot_be_copied() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a.parquet");
        let options = crate::InputOptions::from(crate::Limits::at(doppel_model::Timestamp::now()));
        let check = || crate::copy::check(&path, crate::record::RecordFile::single(&path), &options);
        fs::write(&path, file("fixed_len_byte_array(12) x (INTERVAL)", &[vec![1; 12]])).unwrap();
        assert!(matches!(check().unwrap_err().reason, Reason::Unwritable { .. }));
        let url: ArrayRef = Arc::new(StringArray::from(vec!["http://a/"]));
        let number: ArrayRef = Arc::new(Decimal128Array::from(vec![1]));
        let batch = RecordBatch::try_from_iter([("url", url), ("number", number)]).unwrap();
        let mut writer =
            ArrowWriter::try_new(fs::File::create(&path).unwrap(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        check().unwrap();
        fs::write(&path, "no such file").unwrap();
        check().unwrap();
    }
}
