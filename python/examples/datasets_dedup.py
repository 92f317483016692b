"""Near-duplicates of a data set of Hugging Face: `python datasets_dedup.py FILE.parquet KEPT.parquet`. Tried with datasets 5.2."""

from __future__ import annotations

import sys
from typing import Any

import datasets
import pyarrow as pa

import doppel


def without_duplicates(dataset: datasets.Dataset, *, text: str = "text", **parameters: Any) -> datasets.Dataset:
    """The rows to keep, in their order. Of the data set only the text is read, a batch at a time, from where it is mapped into memory;
    the result refers to the same data. Other parameters are those of `doppel.dedup`.
    """
    texts = dataset.select_columns([text]).with_format("arrow")
    schema = texts.features.arrow_schema
    batches = (batch for table in texts.iter(batch_size=10_000) for batch in table.cast(schema).to_batches())
    found = doppel.dedup(pa.RecordBatchReader.from_batches(schema, batches), text=text, **parameters)
    return dataset.select([row for row, kept in enumerate(found["kept"].to_pylist()) if kept])


def main(source: str, target: str) -> None:
    dataset = datasets.load_dataset("parquet", data_files=source, split="train")
    kept = without_duplicates(dataset)
    kept.to_parquet(target)
    print(f"{kept.num_rows} of {dataset.num_rows} rows are kept")


if __name__ == "__main__":
    main(*sys.argv[1:])
