import json
import tempfile
import unittest
from pathlib import Path

from comparison.input import from_lines


class Lines(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def lines(self, *records: dict):
        file = self.folder / "lines.jsonl"
        file.write_text("".join(json.dumps(record) + "\n" for record in records) + "\n")
        return file

    def test_every_tool_is_given_the_same_lines(self):
        file = self.lines({"text": "One, two!", "url": "https://a.example/"}, {"text": "three"}, {"text": "", "id": 7})
        made = from_lines(file, self.folder, 2)
        written = [json.loads(line) for line in made.file.read_text().splitlines()]
        self.assertEqual([record["text"] for record in written], ["one two", "three", ""])
        self.assertEqual(written[0]["url"], "https://a.example/")
        parts = "".join(part.read_text() for part in sorted(made.parts.iterdir()))
        self.assertEqual(parts, made.file.read_text())
        self.assertEqual((made.rows, made.words, made.part_rows), (3, 3, [1, 2]))
        self.assertEqual(from_lines(file, self.folder, 2, pages=2).rows, 2)

    def test_what_cannot_be_compared_is_refused(self):
        for records, why in (
            ([{"text": "a", "url": "x"}, {"text": "b", "url": "x"}], "line 2 has the URL of an earlier line"),
            ([{"content": "a"}], "line 1 has no text"),
        ):
            with self.assertRaisesRegex(ValueError, why):
                from_lines(self.lines(*records), self.folder, 1)


if __name__ == "__main__":
    unittest.main()
