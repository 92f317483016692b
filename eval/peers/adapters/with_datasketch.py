"""datasketch: MinHash LSH in memory, whose pairs share a band. It has one thread."""

from importlib.metadata import version

from datasketch import MinHash, MinHashLSH

from adapters.command import main
from adapters.libraries import n_gram_texts, read_pairs, write_pairs
from comparison.answer import Answer
from comparison.settings import Settings


def _index(settings: Settings) -> MinHashLSH:
    params = None if settings.bands is None else (settings.bands, settings.rows_per_band)
    return MinHashLSH(threshold=float(settings.threshold), num_perm=settings.permutations, params=params)


def run(settings: Settings) -> None:
    """Inserts all rows, and queries each row."""
    sets = ([gram.encode() for gram in set(n_gram_texts(text, settings.ngram))] for text in settings.texts())
    hashes = MinHash.bulk(sets, num_perm=settings.permutations)
    index = _index(settings)
    with index.insertion_session() as session:
        for row, minhash in enumerate(hashes):
            session.insert(row, minhash)
    write_pairs(settings, ((row, other) for row, minhash in enumerate(hashes) for other in index.query(minhash)))


def answer(settings: Settings) -> Answer:
    """Returns all pairs that share a band."""
    index = _index(settings)
    told = f"MinHashLSH(threshold={settings.threshold}, num_perm={settings.permutations}): {index.b} bands of {index.r} rows"
    return read_pairs(settings, version("datasketch"), told)


if __name__ == "__main__":
    main(run, answer)
