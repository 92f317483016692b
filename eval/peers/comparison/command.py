"""Command line of the comparison."""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from decimal import Decimal, InvalidOperation
from pathlib import Path

from comparison.bands import fitting
from comparison.environments import NotInstalled, environment
from comparison.input import Input, from_crawls, from_lines
from comparison.report import Report
from comparison.runs import run
from comparison.scores import Truth
from comparison.settings import Settings
from comparison.tools import TOOLS, Tool

REPOSITORY = Path(__file__).resolve().parents[3]


def main() -> int:
    """Makes the input, the environments and the truth, runs all tools, and prints the report."""
    options = _options()
    say = (lambda line: None) if options.quiet else (lambda line: print(line, file=sys.stderr, flush=True))
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    doppel = _program("doppel", options.doppel, say)
    tools, left_out = _tools(options, folder, say)
    truth_python = environment("truth", folder / "environments")
    source = _input(options, folder, say)
    settings = Settings(
        input=str(source.file),
        parts=str(source.parts),
        part_rows=source.part_rows,
        work=str(folder),
        rows=source.rows,
        ngram=options.ngram,
        threshold=options.threshold,
        permutations=options.permutations,
        bands=options.bands,
        rows_per_band=options.rows,
        fitting=fitting(float(options.threshold), options.permutations),
        threads=options.threads,
        doppel=str(doppel),
    )
    truths = _truths(settings, source, truth_python, folder, say)
    load = f"{os.getloadavg()[0]:.2f}"
    results = run(tools, settings, options.rounds, folder, options.seconds_max, say)
    asked = ("ngram", "threshold", "permutations", "bands", "rows_per_band", "threads")
    question = {name: asdict(settings)[name] for name in asked} | {"rounds": options.rounds}
    report = Report(source, question, truths, results, left_out)
    report.load_before = load
    if options.out:
        options.out.write_text(json.dumps(report.json(), indent=2) + "\n")
    print(json.dumps(report.json(), indent=2) if options.json else report.markdown() if options.markdown else report.text())
    return 1 if any(result.failure for result in results) else 0


def _options() -> argparse.Namespace:
    data = os.environ.get("DOPPEL_DATA")
    data = Path(data) if data else REPOSITORY.parent / "shared" / "data"
    parser = argparse.ArgumentParser(
        prog="eval/peers/run",
        description="Doppel and other near-duplicate tools on the same input in one run: seconds, memory, bytes, and precision, recall and F1 "
        "against the exact truth. Needs Python 3.11 with venv and pip, and Linux; makes an environment for each tool.",
        epilog="docs/evaluation/comparison.md says what the figures mean.",
    )
    add = parser.add_argument
    add("inputs", nargs="*", type=Path, metavar="INPUT", help="crawls, as `doppel dedup` reads them [default: mid/mid-*.warc.gz in $DOPPEL_DATA, or in ../shared/data]")
    add("--lines", type=Path, metavar="FILE", help="take this file of JSON lines with `text` (and `url`) instead of crawls")
    add("--pages", type=int, help="pages of the input; past those that the crawls have, families are made from them, and 0 is as many as there are [default: 20000]", default=20_000)
    add("--seed", type=int, default=7, help="seed of the pages that are made [default: 7]")
    add("--tools", default=",".join(tool.name for tool in TOOLS), metavar="NAME,...", help="[default: %(default)s]")
    add("--ngram", type=int, default=5, metavar="WORDS", help="words in an n-gram [default: 5]")
    add("--threshold", default="0.8", help="Jaccard coefficient, as a decimal [default: 0.8]")
    add("--permutations", type=int, default=128, help="hash functions of a MinHash [default: 128]")
    add("--bands", type=int, help="bands of every tool that has them, with --rows [default: what each tool takes]")
    add("--rows", type=int, help="rows in a band")
    add("--threads", type=int, default=os.cpu_count(), help="threads or processes of each tool [default: the cores]")
    add("--rounds", type=int, default=3, help="rounds, in which the tools run in turn [default: 3]")
    add("--seconds-max", type=float, default=3_600, help="a tool that takes longer is stopped [default: 3600]")
    add("--folder", type=Path, default=REPOSITORY / "target" / "peers", help="where environments and the input are kept [default: target/peers]")
    add("--doppel", type=Path, metavar="FILE", help="the program to measure [default: target/release/doppel, which is built]")
    add("--doppel-eval", type=Path, metavar="FILE", help="the program that extracts the texts [default: target/release/doppel-eval, which is built]")
    add("--out", type=Path, metavar="FILE", help="also write the report as JSON to this file")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--markdown", action="store_true", help="print tables in Markdown")
    add("--quiet", action="store_true", help="say nothing on the way")
    options = parser.parse_args()
    _check(parser, options)
    if not options.inputs and options.lines is None:
        options.inputs = sorted((data / "mid").glob("mid-*.warc.gz"))
        if not options.inputs:
            parser.error(f"there are no crawls mid-*.warc.gz in {data / 'mid'}: name an INPUT, or set DOPPEL_DATA")
    return options


def _check(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    try:
        in_range = 0 < Decimal(options.threshold) < 1
    except InvalidOperation:
        in_range = False
    if not in_range:
        parser.error("--threshold is a decimal above 0 and below 1")
    if (options.bands is None) != (options.rows is None):
        parser.error("--bands and --rows go together")
    if options.bands is not None and (min(options.bands, options.rows) < 1 or options.bands * options.rows > options.permutations):
        parser.error("--bands times --rows is at least 1 and at most --permutations")
    least_one = ("ngram", "permutations", "threads", "rounds")
    for name in least_one:
        if getattr(options, name) < 1:
            parser.error(f"--{name} is at least 1")
    if options.pages < 0:
        parser.error("--pages is not negative")
    if options.lines is not None and options.inputs:
        parser.error("--lines and INPUT exclude each other")
    known = {tool.name for tool in TOOLS}
    unknown = set(options.tools.split(",")) - known
    if unknown:
        parser.error(f"unknown tools: {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}")


def _program(name: str, given: Path | None, say: Callable[[str], None]) -> Path:
    """Returns the given program. Without one, builds the program in the release profile and returns it."""
    if given is not None:
        return given.resolve()
    say(f"building {name}")
    package = [] if name == "doppel" else ["-p", name]
    subprocess.run(["cargo", "build", "--release", "--locked", *package, "--bin", name], cwd=REPOSITORY, check=True)
    return REPOSITORY / "target" / "release" / name


def _tools(options: argparse.Namespace, folder: Path, say: Callable[[str], None]) -> tuple[list[tuple[Tool, Path]], dict[str, str]]:
    """Returns the tools that can run on this machine, each with its Python, and the reasons why others cannot."""
    tools, left_out = [], {}
    for tool in TOOLS:
        if tool.name not in options.tools.split(","):
            continue
        if why := tool.cannot(options.ngram, options.threshold):
            left_out[tool.name] = why
            continue
        try:
            if tool.requirements is not None:
                say(f"environment of {tool.name}")
            python = Path(sys.executable) if tool.requirements is None else environment(tool.requirements, folder / "environments")
            tools.append((tool, python))
        except NotInstalled as failure:
            left_out[tool.name] = str(failure)
    return tools, left_out


def _input(options: argparse.Namespace, folder: Path, say: Callable[[str], None]) -> Input:
    say("making the input")
    pages = options.pages or None
    if options.lines is not None:
        return from_lines(options.lines, folder, options.threads, pages)
    doppel_eval = _program("doppel-eval", options.doppel_eval, say)
    return from_crawls(doppel_eval, options.inputs, pages, options.seed, folder, options.threads)


def _truths(settings: Settings, source: Input, python: Path, folder: Path, say: Callable[[str], None]) -> dict[str, Truth]:
    """Returns the exact truth, which is computed once for an input, n-gram size and threshold."""
    place = folder / "truth" / f"{source.digest[:16]}-{settings.ngram}-{settings.threshold}"
    if not (place / "done").exists():
        say("working out the exact truth")
        place.mkdir(parents=True, exist_ok=True)
        file = folder / "settings.json"
        settings.write(file)
        environment = os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parent.parent)}
        subprocess.run([python, "-m", "comparison.truth", file, place], env=environment, check=True)
        (place / "done").touch()
    return {name: Truth.read(place, name) for name in ("plain", "padded")}
