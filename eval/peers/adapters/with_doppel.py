"""Doppel: `doppel dedup`, which writes a line for every page. This module only reads the answer."""

import json
import subprocess

from adapters.command import main
from comparison.answer import Answer
from comparison.settings import Settings


def answer(settings: Settings) -> Answer:
    """Pairs each duplicate with the kept page that Doppel names. A page without a line is lost."""
    row_of_url = settings.row_of_url()
    pairs, groups, kept, removed = set(), {}, [], []
    with open(settings.result, encoding="utf-8") as lines:
        for line in map(json.loads, lines):
            row = row_of_url[line["url"]]
            if line["group"] is not None:
                groups.setdefault(line["group"], []).append(row)
            if line["status"] == "duplicate":
                removed.append(row)
                pairs.add(tuple(sorted((row, row_of_url[line["duplicate_of"]]))))
            else:
                kept.append(row)
    version = subprocess.run([settings.doppel, "--version"], check=True, capture_output=True, text=True).stdout.split()[-1]
    told = f"dedup --policy jaccard:tau={settings.threshold},words={settings.ngram}: exact"
    of_two = sorted(sorted(rows) for rows in groups.values() if len(rows) > 1)
    return Answer(version, told, sorted(pairs), False, of_two, None, sorted(kept), sorted(removed))


if __name__ == "__main__":
    main(lambda settings: None, answer)
