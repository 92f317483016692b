import unittest

from comparison.answer import Answer
from comparison.scores import Score, Truth, score

# Rows 0 to 3 are a chain, 4 and 5 a pair at the threshold, 6 and 7 a pair; 8 and 9 are alone.
TRUTH = Truth(above={(0, 1), (1, 2), (2, 3), (6, 7)}, at={(4, 5)})
ROWS = 10


class Scores(unittest.TestCase):
    def test_the_truth_itself_is_right(self):
        groups = [[0, 1, 2, 3], [6, 7]]
        answer = Answer("1", "", sorted(TRUTH.above), True, groups, None, [0, 2, 4, 5, 6, 8, 9], [1, 3, 7])
        scores = score(answer, TRUTH, ROWS)
        self.assertEqual((scores.pairs, scores.group_pairs, scores.rows), (Score(1, 1), Score(1, 1), Score(1, 1)))
        self.assertEqual((scores.groups, scores.grouped_pairs, scores.pairs_named), (2, 7, 4))
        self.assertEqual((scores.kept, scores.removed, scores.removed_wrongly, scores.left_in, scores.lost), (7, 3, 0, 0, 0))

    def test_a_pair_at_the_threshold_is_right_and_no_mistake_without(self):
        answer = Answer("1", "", [(4, 5), (6, 7)], True, [[4, 5], [6, 7]])
        scores = score(answer, TRUTH, ROWS)
        self.assertEqual(scores.pairs, Score(1, 1 / 4))
        self.assertEqual(scores.group_pairs, Score(1, 1 / 7))

    def test_mistakes_are_counted(self):
        # 8 and 9 are not alike, the chain is cut, row 5 is lost, and 3 is removed although its only neighbour is removed.
        groups = [[0, 1], [2, 3], [8, 9]]
        answer = Answer("1", "", [(0, 1), (2, 3), (8, 9)], True, groups, None, [0, 1, 4, 6, 7, 8], [2, 3, 9])
        scores = score(answer, TRUTH, ROWS)
        self.assertEqual(scores.pairs, Score(2 / 3, 2 / 4))
        self.assertEqual(scores.group_pairs, Score(2 / 3, 2 / 7))
        self.assertEqual(scores.rows, Score(4 / 6, 4 / 6))
        # 3 and 9 have no kept near-duplicate; 1 and 7 are kept beside one.
        self.assertEqual((scores.removed_wrongly, scores.left_in, scores.lost), (2, 2, 1))

    def test_what_is_not_told_is_not_scored(self):
        scores = score(Answer("1", "", flagged=[0, 1, 9]), TRUTH, ROWS)
        self.assertEqual(scores.rows, Score(2 / 3, 2 / 6))
        self.assertTrue(scores.pairs is scores.group_pairs is scores.kept is scores.lost is None)
        some = score(Answer("1", "", [(0, 1)], False), TRUTH, ROWS)
        self.assertEqual((some.pairs.precision, some.pairs.recall, some.pairs.f1), (1, None, None))

    def test_f1_is_the_harmonic_mean(self):
        self.assertEqual(Score(0.5, 1).f1, 2 / 3)
        self.assertEqual(Score(0.0, 0.0).f1, 0)


if __name__ == "__main__":
    unittest.main()
