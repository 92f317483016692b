//! Checks the pages of a Parquet row group before the decoder takes memory for them.
//!
//! The decoder takes memory for the sizes and counts that pages declare. This module checks the declared
//! numbers in two steps:
//!
//! 1. [`check_headers`] checks the sizes in all page headers of a column before any page is unpacked. If the
//!    codec of the column does not stop at the declared size, it also unpacks the page in bounded memory to
//!    measure it.
//! 2. [`CheckedGroup`] hands the decoder each unpacked page only if the page can contain as many values as it
//!    declares.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::sync::Arc;

use doppel_streams::{Limits, Reason, too_large};
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

/// The maximum number of values for which the decoder takes memory at once.
const VALUES_MAX: u32 = 1 << 26;

/// The maximum expansion of deflate: unpacked bytes per stored byte.
const GZIP_RATIO_MAX: u64 = 1_032;

/// The maximum expansion of LZ4: unpacked bytes per stored byte.
const LZ4_RATIO_MAX: u64 = 255;

/// The size of the read buffer for page headers, in bytes. Most headers are shorter.
const HEADER_BYTES: usize = 512;

/// The size of the buffer for a page that is only measured, in bytes.
const BUFFER_BYTES: usize = 64 << 10;

/// How error messages name a page.
const PAGE: &str = "a page of a Parquet column";

/// The first bytes of LZ4's frame format.
const LZ4_FRAME: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];

/// The sizes of the pages of a column, in bytes.
pub(super) struct PageSizes {
    /// The unpacked size of the largest page whose values share prefixes. Each value of such a page can be as
    /// long as the page. 0 if there is no such page.
    pub(super) largest_shared: u64,
    /// The unpacked size of all pages, but at least the stored size of the column.
    pub(super) unpacked: u64,
}

/// Checks the sizes and counts in the headers of all pages of a column.
///
/// # Errors
/// If a page is damaged, or is larger than the limit or than its column.
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
    let (mut largest_shared, mut values, mut all) = (0, 0_u32, 0_u64);
    while at < end {
        file.seek(SeekFrom::Start(at)).map_err(Reason::Io)?;
        let mut input = Read::take(&mut file, end - at);
        let header = PageHeader::read(&mut input)?;
        let left = input.limit();
        let (stored, unpacked) = (u64::from(header.stored), u64::from(header.unpacked));
        if stored > left {
            return Err(Reason::Columns("a page extends beyond the end of its column".to_owned()));
        }
        too_large(PAGE, unpacked.max(stored), limits.column_page_bytes_max)?;
        if unpacked > in_column {
            let why = format!("a page of {unpacked} bytes is in a column of {in_column} bytes");
            return Err(Reason::Columns(why));
        }
        values = values.saturating_add(header.values);
        all = all.saturating_add(unpacked);
        if (is_list && values > VALUES_MAX) || (header.shares_prefixes && header.values > VALUES_MAX) {
            return Err(Reason::Columns(format!(
                "a page or a list column has more than {VALUES_MAX} values"
            )));
        }
        if header.shares_prefixes {
            largest_shared = largest_shared.max(unpacked);
        }
        check_codec(&mut file, column.compression(), &header, limits)?;
        at = end - left + stored;
    }
    Ok(PageSizes { largest_shared, unpacked: all.max(bytes) })
}

/// Checks that a page unpacks to at most the limit. Only codecs that do not stop at the declared size need
/// the check. `file` is positioned at the beginning of the page.
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
        // The older LZ4 codec has blocks that declare their sizes, or else frames. The decoder does not bound
        // frames, so a page that can expand beyond the limit is refused if it has frames.
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
    // An error of the codec counts as the end of the page. The decoder will meet the damage again and report
    // it.
    let bytes = io::copy(&mut (&mut unpacked).take(max + 1), &mut io::sink()).unwrap_or_default();
    too_large(PAGE, bytes, limits.column_page_bytes_max)
}

fn skip(page: &mut impl Read, bytes: u32) -> Result<(), Reason> {
    io::copy(&mut page.take(bytes.into()), &mut io::sink()).map(drop).map_err(Reason::Io)
}

/// A row group whose reader checks the counts in each page before the page is decoded.
pub(super) struct CheckedGroup {
    pub(super) file: Arc<File>,
    pub(super) metadata: Arc<ParquetMetaData>,
    /// The number of the row group in the file, counted from 0.
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

/// An iterator that returns the page reader of one column, then ends.
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
    let declared = u64::from(page.num_values());
    let is_possible = match (page, page.encoding()) {
        (Page::DictionaryPage { buf, .. }, _) => {
            // The least number of bytes that a value takes.
            let value_bytes = if column.physical_type() == Type::FIXED_LEN_BYTE_ARRAY { 1 } else { 4 };
            declared.saturating_mul(value_bytes) <= buf.len() as u64
        }
        (_, Encoding::DELTA_LENGTH_BYTE_ARRAY) => {
            values(page, column).is_some_and(|data| delta_lengths::measure(data, declared).is_some())
        }
        // The lengths of the shared prefixes, then the lengths of the suffixes.
        (_, Encoding::DELTA_BYTE_ARRAY) => values(page, column).is_some_and(|data| {
            let suffixes = delta_lengths::measure(data, declared).and_then(|(_, bytes)| data.get(bytes..));
            suffixes.is_some_and(|suffixes| delta_lengths::measure(suffixes, declared).is_some())
        }),
        _ => true,
    };
    if is_possible {
        return Ok(());
    }
    Err(ParquetError::General("a page cannot have as many values as it declares".to_owned()))
}

/// The encoded values of a page, after the levels that say which values are null or in lists. `None` if the
/// page is damaged.
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
                // The older encoding of levels predates the delta encodings, so no writer combines the two.
                if *encoding != Encoding::RLE {
                    return None;
                }
                let (bytes, after) = rest.split_first_chunk()?;
                rest = after.get(usize::try_from(u32::from_le_bytes(*bytes)).ok()?..)?;
            }
            Some(rest)
        }
        Page::DictionaryPage { buf, .. } => Some(buf),
    }
}
