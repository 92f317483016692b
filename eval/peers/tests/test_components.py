import unittest

from comparison.components import components, keep_first


class Components(unittest.TestCase):
    def test_pairs_are_followed_in_any_order(self):
        pairs = [(7, 3), (1, 2), (3, 2), (9, 8), (4, 4)]
        self.assertEqual(components(pairs), [[1, 2, 3, 7], [8, 9]])
        self.assertEqual(components(reversed(pairs)), components(pairs))
        self.assertEqual(components([]), [])

    def test_a_row_stays_unless_an_earlier_one_that_stays_is_paired_with_it(self):
        # Row 1 is removed because of row 0. Row 2 is paired only with row 1, so it is kept.
        self.assertEqual(keep_first([(0, 1), (2, 1)], 4), [0, 2, 3])


if __name__ == "__main__":
    unittest.main()
