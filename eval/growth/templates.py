"""Writes pages of one template, to measure what such a family costs.

    python3 eval/growth/templates.py KIND PAGES > pages.jsonl
    doppel dedup pages.jsonl
    python3 eval/growth/load.py pages.jsonl

The template has 100 words. The kinds of pages:

    own1, own3, own10   a page has that many words of its own in the place of words of the template
    half                every other page has one word of its own, and the others have four
    two                 two templates, which share half of their words; a page has three words of its own
    fields              six words of a page are values of fields, each one of 20

With one word of their own, all pages are near-duplicates. With three, few pairs are, and with ten, none. A page is a
function of its number. --shuffle writes the pages in another order.
"""

import argparse
import json
import random

WORDS = 100
KINDS = ["own1", "own3", "own10", "half", "two", "fields"]


def page(kind: str, number: int) -> str:
    chance = random.Random(number)
    words = [f"word{place}" for place in range(WORDS)]
    if kind == "two" and number % 2 == 1:
        words[WORDS // 2 :] = [f"other{place}" for place in range(WORDS // 2)]
    if kind == "fields":
        for field in range(6):
            words[8 + 16 * field] = f"field{field}value{chance.randrange(20)}"
        return " ".join(words)
    own = {"own1": 1, "own10": 10, "half": 1 if number % 2 == 1 else 4}.get(kind, 3)
    for place in chance.sample(range(WORDS), own):
        words[place] = f"own{chance.randrange(10**9)}"
    return " ".join(words)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("kind", choices=KINDS)
    arguments.add_argument("pages", type=int)
    arguments.add_argument("--shuffle", action="store_true", help="write the pages in another order")
    given = arguments.parse_args()
    numbers = list(range(given.pages))
    if given.shuffle:
        random.Random(0).shuffle(numbers)
    for number in numbers:
        print(json.dumps({"id": number, "text": page(given.kind, number)}))


if __name__ == "__main__":
    main()
