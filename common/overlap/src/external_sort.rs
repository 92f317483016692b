//! Sorts records that do not fit into memory, within the budget of memory and disk space.
//!
//! A [`Sorter`](sorter::Sorter) collects fixed-length records in a buffer. Whenever the buffer is full, the
//! sorter writes a sorted run to a temporary file. [`Sorter::finish`](sorter::Sorter::finish) returns
//! [`Sorted`](sorted::Sorted) records, which can be scanned any number of times.

pub(crate) mod fixed_record;
pub(crate) mod sorted;
pub(crate) mod sorter;
pub(crate) mod temporary_file;
