import unittest

from comparison.environments import REQUIREMENTS
from comparison.report import _markdown_table, _plain_table, _share
from comparison.tools import ADAPTERS, TOOLS


class Tools(unittest.TestCase):
    def test_each_has_an_adapter_and_pinned_requirements(self):
        for tool in TOOLS:
            self.assertTrue((ADAPTERS / f"{tool.adapter}.py").exists(), tool.name)
            if tool.requirements is not None:
                pinned = (REQUIREMENTS / f"{tool.requirements}.txt").read_text()
                self.assertIn(f"\n{tool.requirements}==", pinned)
                self.assertIn("--hash=sha256:", pinned)

    def test_doppel_is_asked_what_it_takes(self):
        doppel = TOOLS[0]
        for ngram, threshold in ((5, "0.8"), (3, "0.3"), (13, "0.9999")):
            self.assertIsNone(doppel.cannot(ngram, threshold))
        for ngram, threshold in ((2, "0.8"), (14, "0.8"), (5, "0.29")):
            self.assertIsNotNone(doppel.cannot(ngram, threshold))

    def test_a_share_looks_whole_only_if_it_is(self):
        self.assertEqual([_share(1.0), _share(0.99999), _share(0.5), _share(None)], ["1.0000", "<1", "0.5000", "-"])

    def test_tables(self):
        rows = [["tool", "seconds"], ["doppel", "1.00"]]
        self.assertEqual(_plain_table(rows), "tool    seconds\ndoppel     1.00")
        self.assertEqual(_markdown_table(rows), "| tool | seconds |\n|---|---|\n| doppel | 1.00 |")


if __name__ == "__main__":
    unittest.main()
