"""datatrove: its four MinHash stages, each on all threads, from JSON lines to JSON lines."""

import json
import struct
from importlib.metadata import version
from pathlib import Path

from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.dedup import MinhashDedupBuckets, MinhashDedupCluster, MinhashDedupFilter, MinhashDedupSignature
from datatrove.pipeline.dedup.minhash import MinhashConfig
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers import JsonlWriter
from datatrove.utils.text import TextNormConfig
from datatrove.utils.word_tokenizers import WordTokenizer

from adapters.command import main
from comparison.answer import Answer
from comparison.components import components
from comparison.settings import Settings


class SpaceTokenizer(WordTokenizer):
    """Splits words at spaces. The tokenizers of datatrove split a word that has both letters and digits."""

    def word_tokenize(self, text: str) -> list[str]:
        return text.split()

    def sent_tokenize(self, text: str) -> list[str]:
        return [text]

    def span_tokenize(self, text: str) -> list[tuple[int, int]]:
        return [(0, len(text))]


def _config(settings: Settings) -> MinhashConfig:
    # The rules of datatrove for numbers and accents would make different words equal.
    norm = TextNormConfig(norm_numbers=False, norm_unicode_diacritics=False)
    bands, rows = settings.fitting if settings.bands is None else (settings.bands, settings.rows_per_band)
    return MinhashConfig(n_grams=settings.ngram, num_buckets=bands, hashes_per_bucket=rows, norm_config=norm)


def run(settings: Settings) -> None:
    """Runs the four stages: signatures, pairs, groups, and kept rows."""
    config, work = _config(settings), Path(settings.work)
    tasks, workers = len(settings.part_rows), settings.threads

    def reader() -> JsonlReader:
        return JsonlReader(settings.parts, id_key="url")

    def execute(stage: str, pipeline: list, tasks: int) -> None:
        logs = str(work / "logs" / stage)
        LocalPipelineExecutor(pipeline=pipeline, tasks=tasks, workers=workers, logging_dir=logs).run()

    signatures, pairs, groups = (str(work / name) for name in ("signatures", "pairs", "groups"))
    sign = MinhashDedupSignature(signatures, config=config, language=SpaceTokenizer())
    execute("signatures", [reader(), sign], tasks)
    # The default reads five lines at a time, which suits buckets on a network.
    find = MinhashDedupBuckets(signatures, pairs, config=config, lines_to_buffer=-1)
    execute("pairs", [find], config.num_buckets)
    cluster = MinhashDedupCluster(pairs, groups, config=config, save_cluster_id=True, lines_to_buffer=-1)
    execute("groups", [cluster], 1)
    removed = JsonlWriter(str(work / "removed"), compression=None)
    keep = [reader(), MinhashDedupFilter(groups, exclusion_writer=removed), JsonlWriter(str(work / "kept"), compression=None)]
    execute("kept", keep, tasks)


def _urls(folder: Path) -> list[str]:
    return [json.loads(line)["id"] for file in sorted(folder.glob("*.jsonl")) for line in file.open(encoding="utf-8")]


def answer(settings: Settings) -> Answer:
    """Reads the groups and the kept rows. Pairs are only the adjacent rows of each bucket, and not all pairs."""
    work, row_of_url = Path(settings.work), settings.row_of_url()
    first = [sum(settings.part_rows[:at]) for at in range(len(settings.part_rows))]
    pairs = {
        tuple(sorted((first[a_file] + a, first[b_file] + b)))
        for file in sorted((work / "pairs").glob("*.dups"))
        for a_file, a, b_file, b in struct.iter_unpack("<4I", file.read_bytes())
    }
    clusters: dict[int, list[int]] = {}
    for at, start in enumerate(first):
        file = work / "groups" / f"{at:06d}.clusters"
        for row, cluster in struct.iter_unpack("<2I", file.read_bytes() if file.exists() else b""):
            clusters.setdefault(cluster, []).append(start + row)
    groups = components((rows[0], row) for rows in clusters.values() for row in rows)
    kept, removed = (sorted(row_of_url[url] for url in _urls(work / name)) for name in ("kept", "removed"))
    config = _config(settings)
    told = f"MinhashConfig: {config.num_buckets} buckets of {config.hashes_per_bucket} hashes"
    return Answer(version("datatrove"), told, sorted(pairs), False, groups, None, kept, removed)


if __name__ == "__main__":
    main(run, answer)
