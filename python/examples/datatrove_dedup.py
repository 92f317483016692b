"""Doppel as a block of a datatrove pipeline: `python datatrove_dedup.py INPUT_FOLDER OUTPUT_FOLDER`.

Every document that is dropped is near one that is kept, and was compared with it exactly. Tried with datatrove 0.10.
"""

from __future__ import annotations

import pickle
import sys
import tempfile
from collections.abc import Iterator
from typing import Any, BinaryIO

from datatrove.data import Document, DocumentsPipeline
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.base import PipelineStep
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers import JsonlWriter
from datatrove.pipeline.writers.disk_base import DiskWriter

import doppel


class DoppelDedup(PipelineStep):
    """Drops documents that are near-duplicates of a kept one, and writes them to `exclusion_writer`, if there is one.

    Kept documents have `duplicate_group` in their metadata, dropped ones also `duplicate_of`, the id of the kept one, and `similarity`.
    Parameters are those of `doppel.dedup`, such as `tau=0.8` and `policy="content"`.

    It sees all documents of a task, so the pipeline has one task (`tasks=1`): Doppel is a process that uses all processors by itself.
    Documents are in a temporary file while it works, not in memory.
    """

    type = "🫂 - DEDUPS"
    name = "Doppel"

    def __init__(self, exclusion_writer: DiskWriter | None = None, **parameters: Any) -> None:
        super().__init__()
        self.exclusion_writer = exclusion_writer
        self.parameters = parameters

    def run(self, data: DocumentsPipeline, rank: int = 0, world_size: int = 1) -> DocumentsPipeline:
        if world_size != 1:
            raise ValueError("duplicates in different tasks would not be found: run this block with tasks=1")
        with tempfile.TemporaryFile() as file:
            rows = ({"id": document.id, "text": document.text} for document in self._kept_in(file, data))
            found = doppel.dedup(rows, **self.parameters)
            file.seek(0)
            if self.exclusion_writer is None:
                yield from self._chosen(file, found, rank)
            else:
                with self.exclusion_writer:
                    yield from self._chosen(file, found, rank)

    def _kept_in(self, file: BinaryIO, data: DocumentsPipeline) -> Iterator[Document]:
        """The documents, each of which is written into the file."""
        for document in data or ():
            pickle.dump(document, file)
            yield document

    def _chosen(self, file: BinaryIO, found: Any, rank: int) -> Iterator[Document]:
        for batch in found.select(["group", "duplicate_of", "similarity", "kept"]).to_batches():
            for row in batch.to_pylist():
                document: Document = pickle.load(file)
                kept = row.pop("kept")
                self.stat_update("total", "forwarded" if kept else "dropped")
                if row["group"] is not None:
                    document.metadata["duplicate_group"] = row["group"]
                if kept:
                    self.update_doc_stats(document)
                    yield document
                elif self.exclusion_writer is not None:
                    document.metadata |= {"duplicate_of": row["duplicate_of"], "similarity": row["similarity"]}
                    self.exclusion_writer.write(document, rank)


def main(source: str, target: str) -> None:
    pipeline = [
        JsonlReader(source),
        DoppelDedup(tau=0.8, exclusion_writer=JsonlWriter(f"{target}/removed")),
        JsonlWriter(f"{target}/kept"),
    ]
    LocalPipelineExecutor(pipeline, tasks=1, logging_dir=f"{target}/logs").run()


if __name__ == "__main__":
    main(*sys.argv[1:])
