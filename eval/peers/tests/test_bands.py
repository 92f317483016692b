import unittest

from comparison.bands import fitting


class Bands(unittest.TestCase):
    def test_they_are_those_that_datasketch_and_text_dedup_take(self):
        self.assertEqual(fitting(0.8, 128), (9, 13))
        self.assertEqual(fitting(0.75, 256), (21, 12))


if __name__ == "__main__":
    unittest.main()
