//! The pages of a row group of a Parquet file, whose decoder takes memory by what they say of themselves. So that is checked
//! first: the sizes in all headers before the first page is unpacked, and the counts in a page before it is decoded.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::sync::Arc;

use flate2::bufread::MultiGzDecoder;
use parquet::arrow::arrow_reader::RowGroups;
use parquet::basic::{Compression, Encoding, Type};
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::{ColumnDescPtr, ColumnDescriptor};

use super::delta_lengths;
use super::page_headers::PageHeader;
use crate::error::Reason;
use crate::limits::{Limits, too_large};

/// The most values of a page where memory is taken for all at once.
const VALUES_MAX: u32 = 1 << 26;

/// How much deflate can expand.
const GZIP_RATIO_MAX: u64 = 1_032;

/// How much LZ4 can expand.
const LZ4_RATIO_MAX: u64 = 255;

/// Bytes that are read at once for a header; most have fewer.
const HEADER_BYTES: usize = 512;

/// Bytes that are read at once of a page that is only measured.
const BUFFER_BYTES: usize = 64 << 10;

/// What messages call a page.
const PAGE: &str = "a page of a Parquet column";

/// What the frame format of LZ4 begins with.
const LZ4_FRAME: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];

/// Sizes of the pages of a column, in bytes.
pub(super) struct PageSizes {
    /// Of the largest one whose values share their beginnings, each of which can be as long as the page.
    pub(super) shared: u64,
    /// Of all of them as they are unpacked, but no less than what is stored.
    pub(super) unpacked: u64,
}

/// Checks what the headers of the pages of a column say.
///
/// # Errors
/// When a page is larger than the limit or than its column, or is damaged.
pub(super) fn check_headers(
    file: &File,
    column: &ColumnChunkMetaData,
    limits: &Limits,
) -> Result<PageSizes, Reason> {
    let (mut at, bytes) = column.byte_range();
    let end = at.saturating_add(bytes);
    let in_column = u64::try_from(column.uncompressed_size()).unwrap_or_default();
    let is_list = column.column_descr().max_rep_level() > 0;
    let mut file = BufReader::with_capacity(HEADER_BYTES, file);
    let (mut shared, mut values, mut all) = (0, 0_u32, 0_u64);
    while at < end {
        file.seek(SeekFrom::Start(at)).map_err(Reason::Io)?;
        let mut input = Read::take(&mut file, end - at);
        let header = PageHeader::read(&mut input)?;
        let left = input.limit();
        let (stored, unpacked) = (u64::from(header.stored), u64::from(header.unpacked));
        if stored > left {
            return Err(Reason::Columns("a page that goes beyond its column".to_owned()));
        }
        too_large(PAGE, unpacked.max(stored), limits.column_page_bytes_max)?;
        if unpacked > in_column {
            let why = format!("a page of {unpacked} bytes in a column of {in_column} bytes");
            return Err(Reason::Columns(why));
        }
        values = values.saturating_add(header.values);
        all = all.saturating_add(unpacked);
        if (is_list && values > VALUES_MAX) || (header.shares_beginnings && header.values > VALUES_MAX) {
            return Err(Reason::Columns(format!("more than {VALUES_MAX} values in a page or a list")));
        }
        if header.shares_beginnings {
            shared = shared.max(unpacked);
        }
        check_codec(&mut file, column.compression(), &header, limits)?;
        at = end - left + stored;
    }
    Ok(PageSizes { shared, unpacked: all.max(bytes) })
}

/// Checks that a page unpacks to no more than the limit where its codec does not stop by itself at the size that the header says.
/// `file` is at the beginning of the page.
fn check_codec(
    file: impl BufRead,
    codec: Compression,
    header: &PageHeader,
    limits: &Limits,
) -> Result<(), Reason> {
    let (stored, max) = (u64::from(header.stored), limits.column_page_bytes_max as u64);
    let mut page = file.take(stored);
    let mut unpacked: Box<dyn Read + '_> = match codec {
        Compression::GZIP(_) if stored.saturating_mul(GZIP_RATIO_MAX) > max => {
            skip(&mut page, header.levels)?;
            Box::new(MultiGzDecoder::new(page))
        }
        Compression::BROTLI(_) => {
            skip(&mut page, header.levels)?;
            Box::new(brotli::Decompressor::new(page, BUFFER_BYTES))
        }
        // The older LZ4 has blocks that say their sizes, or else is of the frame format.
        Compression::LZ4 if stored.saturating_mul(LZ4_RATIO_MAX) > max => {
            skip(&mut page, header.levels)?;
            let mut begin = Vec::new();
            page.take(4).read_to_end(&mut begin).map_err(Reason::Io)?;
            return if begin == LZ4_FRAME {
                too_large(PAGE, max + 1, limits.column_page_bytes_max)
            } else {
                Ok(())
            };
        }
        _ => return Ok(()),
    };
    // Damage is told by the decoder, which meets it as well.
    let bytes = io::copy(&mut (&mut unpacked).take(max + 1), &mut io::sink()).unwrap_or_default();
    too_large(PAGE, bytes, limits.column_page_bytes_max)
}

fn skip(page: &mut impl Read, bytes: u32) -> Result<(), Reason> {
    io::copy(&mut page.take(bytes.into()), &mut io::sink()).map(drop).map_err(Reason::Io)
}

/// A row group, of whose pages the counts are checked before they are decoded.
pub(super) struct CheckedGroup {
    pub(super) file: Arc<File>,
    pub(super) metadata: Arc<ParquetMetaData>,
    /// Its number.
    pub(super) group: usize,
}

impl CheckedGroup {
    fn described(&self) -> &RowGroupMetaData {
        self.metadata.row_group(self.group)
    }
}

impl RowGroups for CheckedGroup {
    fn num_rows(&self) -> usize {
        usize::try_from(self.described().num_rows()).unwrap_or_default()
    }

    fn column_chunks(&self, column: usize) -> ParquetResult<Box<dyn PageIterator>> {
        let column = self.described().column(column);
        let pages = SerializedPageReader::new(Arc::clone(&self.file), column, self.num_rows(), None)?;
        let pages = CheckedPages { pages, column: column.column_descr_ptr() };
        Ok(Box::new(OneColumn(Some(Box::new(pages)))))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(std::iter::once(self.described()))
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }
}

/// The pages of the only column there is.
struct OneColumn(Option<Box<dyn PageReader>>);

impl Iterator for OneColumn {
    type Item = ParquetResult<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.take().map(Ok)
    }
}

impl PageIterator for OneColumn {}

struct CheckedPages {
    pages: SerializedPageReader<File>,
    column: ColumnDescPtr,
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> ParquetResult<Option<Page>> {
        let page = self.pages.get_next_page()?;
        page.as_ref().map_or(Ok(()), |page| check_counts(page, &self.column))?;
        Ok(page)
    }

    fn peek_next_page(&mut self) -> ParquetResult<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> ParquetResult<()> {
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> ParquetResult<bool> {
        self.pages.at_record_boundary()
    }
}

impl Iterator for CheckedPages {
    type Item = ParquetResult<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

/// Checks the counts for which the decoder takes memory at once.
fn check_counts(page: &Page, column: &ColumnDescriptor) -> ParquetResult<()> {
    let most = u64::from(page.num_values());
    let is_possible = match (page, page.encoding()) {
        (Page::DictionaryPage { buf, .. }, _) => {
            // The least room that a value takes.
            let least = if column.physical_type() == Type::FIXED_LEN_BYTE_ARRAY { 1 } else { 4 };
            most.saturating_mul(least) <= buf.len() as u64
        }
        (_, Encoding::DELTA_LENGTH_BYTE_ARRAY) => {
            values(page, column).is_some_and(|data| delta_lengths::measure(data, most).is_some())
        }
        // First the lengths of the shared beginnings, then those of the rest.
        (_, Encoding::DELTA_BYTE_ARRAY) => values(page, column).is_some_and(|data| {
            let behind = delta_lengths::measure(data, most).and_then(|(_, bytes)| data.get(bytes..));
            behind.is_some_and(|behind| delta_lengths::measure(behind, most).is_some())
        }),
        _ => true,
    };
    if is_possible {
        return Ok(());
    }
    Err(ParquetError::General("a page that cannot have as many values as it says".to_owned()))
}

/// The values of a page, behind what says which of them are null.
fn values<'p>(page: &'p Page, column: &ColumnDescriptor) -> Option<&'p [u8]> {
    match page {
        Page::DataPageV2 { buf, def_levels_byte_len, rep_levels_byte_len, .. } => {
            let levels = usize::try_from(def_levels_byte_len.checked_add(*rep_levels_byte_len)?).ok()?;
            buf.get(levels..)
        }
        Page::DataPage { buf, def_level_encoding, rep_level_encoding, .. } => {
            let mut rest = &buf[..];
            let levels =
                [(column.max_rep_level(), rep_level_encoding), (column.max_def_level(), def_level_encoding)];
            for (_, encoding) in levels.into_iter().filter(|(max, _)| *max > 0) {
                // The older encoding of levels is from before the delta encodings.
                if *encoding != Encoding::RLE {
                    return None;
                }
                let (bytes, behind) = rest.split_first_chunk()?;
                rest = behind.get(usize::try_from(u32::from_le_bytes(*bytes)).ok()?..)?;
            }
            Some(rest)
        }
        Page::DictionaryPage { buf, .. } => Some(buf),
    }
}
