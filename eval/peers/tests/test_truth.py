import importlib.util
import random
import unittest
from fractions import Fraction

from comparison.words import n_grams


@unittest.skipUnless(importlib.util.find_spec("scipy"), "needs the environment of the truth")
class TruthOfAllPairs(unittest.TestCase):
    def test_the_product_of_matrices_finds_what_comparing_all_sets_finds(self):
        from comparison.truth import pairs

        draw = random.Random(7)
        for size in (1, 2, 3):
            for threshold in ("0.3", "0.5", "0.8"):
                texts = []
                for _ in range(60):
                    words = (draw.choice(texts).split(" ") if texts and draw.random() < 0.7 else []) or draw.choices("abcdef", k=draw.randrange(12))
                    if words and draw.random() < 0.5:
                        words = words[1:] + [draw.choice("abcdef")]
                    texts.append(" ".join(words))
                for padded in (False, True):
                    sets = [n_grams(text, size, padded) for text in texts]
                    expected = ([], [])
                    for a in range(len(sets)):
                        for b in range(a + 1, len(sets)):
                            if sets[a] & sets[b]:
                                coefficient = Fraction(len(sets[a] & sets[b]), len(sets[a] | sets[b]))
                                if coefficient >= Fraction(threshold):
                                    expected[coefficient == Fraction(threshold)].append([a, b])
                    found = pairs(texts, size, threshold, padded)
                    self.assertEqual((found.above.tolist(), found.at.tolist()), expected)

    def test_no_texts_and_texts_without_n_grams(self):
        from comparison.truth import pairs

        for texts in ([], ["a"], ["a", "a", "a b"]):
            found = pairs(texts, 3, "0.8", False)
            self.assertEqual((found.above.tolist(), found.at.tolist()), ([], []))


if __name__ == "__main__":
    unittest.main()
