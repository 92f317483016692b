"""Report of a comparison, as text, as Markdown and as JSON."""

import os
import platform
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path

from comparison.input import Input
from comparison.runs import Result
from comparison.scores import Score, Scores, Truth, score

MEBI = 1 << 20
OWN = "doppel, own n-grams"


class Report:
    """Costs and scores of all tools on one input."""

    def __init__(self, input: Input, question: dict, truths: dict[str, Truth], results: list[Result], left_out: dict[str, str]):
        """`question` has the parameters of the task, `truths` the truth without (`plain`) and with dummy words (`padded`)."""
        self.input, self.question, self.results, self.left_out = input, question, results, left_out
        self.truths = truths
        self.date = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
        self.machine = _machine()
        self.load_before = None
        self.scores: dict[str, dict[str, Scores]] = {
            result.tool.name: {name: score(result.answer, truth, input.rows) for name, truth in truths.items()}
            for result in results
            if result.answer is not None
        }

    def json(self) -> dict:
        """All figures, with the costs of every round. Bytes and seconds are plain numbers."""
        tools = []
        for result in self.results:
            name = result.tool.name
            answered = result.answer is not None
            tools.append(
                {
                    "name": name,
                    "version": result.answer.version if answered else None,
                    "settings": result.answer.settings if answered else None,
                    "differs": result.tool.differs,
                    "failure": result.failure,
                    "same_answer_every_round": result.steady,
                    "rounds": [asdict(cost) for cost in result.costs],
                    "scores": {which: _scores_json(scores) for which, scores in self.scores.get(name, {}).items()},
                }
            )
        rows = self.input
        return {
            "date": self.date,
            "machine": self.machine,
            "load_before": self.load_before,
            "question": self.question,
            "input": {"rows": rows.rows, "bytes": rows.bytes, "words": rows.words, "sha256": rows.digest},
            "truth": {
                name: {"pairs_above": len(truth.above), "pairs_at_threshold": len(truth.at)} for name, truth in self.truths.items()
            },
            "tools": tools,
            "left_out": self.left_out,
        }

    def text(self) -> str:
        """Returns the tables for a terminal."""
        return self._render(_plain_table, "")

    def markdown(self) -> str:
        """Returns the tables in Markdown."""
        return self._render(_markdown_table, "- ")

    def _render(self, table, bullet: str) -> str:
        rows, ask, truth = self.input, self.question, self.truths["plain"]
        lines = [
            f"{bullet}{self.date}; {self.machine}; load {self.load_before} before the first round",
            f"{bullet}{rows.rows:,} pages, {rows.words:,} words, {rows.bytes / MEBI:.1f} MiB; SHA-256 of the input {rows.digest[:16]}",
            f"{bullet}{ask['ngram']}-grams of words, threshold {ask['threshold']}, {ask['permutations']} permutations, "
            f"{ask['threads']} threads, {ask['rounds']} rounds",
            f"{bullet}truth: {len(truth.above):,} pairs above the threshold, {len(truth.at):,} at it",
            "",
            table(self._costs()),
            "",
            table(self._answers()),
            "",
        ]
        for result in self.results:
            if result.answer is not None:
                lines.append(f"{bullet}{result.tool.name} {result.answer.version}: {result.answer.settings}")
                if not result.steady:
                    lines.append(f"{bullet}{result.tool.name}: not every round had the same answer; scores are those of the first")
            if result.failure is not None:
                lines.append(f"{bullet}{result.tool.name} failed: {result.failure.strip().splitlines()[-1]}")
        lines += [f"{bullet}{name} was left out: {why.splitlines()[-1]}" for name, why in self.left_out.items()]
        if "doppel" in self.scores:
            lines.append(f"{bullet}{OWN}: the same answer, held against the truth of its own n-grams, with dummy words after the last word")
        return "\n".join(lines)

    def _costs(self) -> list[list[str]]:
        table = [["tool", "seconds", "least-most", "processor seconds", "most memory", "read", "written"]]
        for result in self.results:
            if not result.costs:
                continue
            walls = [cost.wall_seconds for cost in result.costs]
            table.append(
                [
                    result.tool.name,
                    f"{result.median(lambda cost: cost.wall_seconds):.2f}",
                    f"{min(walls):.2f}-{max(walls):.2f}",
                    f"{result.median(lambda cost: cost.processor_seconds):.2f}",
                    _mebibytes(result.median(lambda cost: cost.memory_bytes)),
                    _mebibytes(result.median(lambda cost: cost.read_bytes)),
                    _mebibytes(result.median(lambda cost: cost.written_bytes)),
                ]
            )
        return table

    def _answers(self) -> list[list[str]]:
        table = [
            ["tool", "pairs named", "P", "R", "F1", "groups", "pairs in groups", "P", "R", "F1"]
            + ["pages: P", "R", "F1", "stay", "removed wrongly", "left in", "lost"]
        ]
        answers = [(name, by_truth["plain"]) for name, by_truth in self.scores.items()]
        if "doppel" in self.scores:
            answers.insert(1 + list(self.scores).index("doppel"), (OWN, self.scores["doppel"]["padded"]))
        for name, of in answers:
            table.append(
                [name, _count(of.pairs_named), *_three(of.pairs), _count(of.groups), _count(of.grouped_pairs), *_three(of.group_pairs)]
                + [*_three(of.rows), _count(of.kept), _count(of.removed_wrongly), _count(of.left_in), _count(of.lost)]
            )
        return table


def _scores_json(scores: Scores) -> dict:
    told = asdict(scores)
    for name in ("pairs", "group_pairs", "rows"):
        own: Score | None = getattr(scores, name)
        if own is not None:
            told[name]["f1"] = own.f1
    return told


def _three(score: Score | None) -> list[str]:
    return ["-"] * 3 if score is None else [_share(score.precision), _share(score.recall), _share(score.f1)]


def _share(share: float | None) -> str:
    """Formats a share with four decimals. A share below 1 that would round to 1 is shown as `<1`."""
    if share is None:
        return "-"
    told = f"{share:.4f}"
    return "<1" if told == "1.0000" and share < 1 else told


def _count(count: int | None) -> str:
    return "-" if count is None else f"{count:,}"


def _mebibytes(amount: float) -> str:
    return f"{amount / MEBI:,.0f} MiB"


def _plain_table(rows: list[list[str]]) -> str:
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) if at == 0 else cell.rjust(width) for at, (cell, width) in enumerate(zip(row, widths))) for row in rows
    )


def _markdown_table(rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def _machine() -> str:
    """Describes the machine: processor, cores and memory."""
    name = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            name = line.split(":", 1)[1].strip()
            break
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    return f"{name}, {os.cpu_count()} cores, {memory:.0f} GiB"
