import unittest

from comparison.words import n_grams, words


class Words(unittest.TestCase):
    def test_runs_of_letters_and_digits_in_lower_case(self):
        self.assertEqual(words("Don't stop_at 3.14, ÉTÉ!"), ["don", "t", "stop", "at", "3", "14", "été"])

    def test_a_script_without_spaces_gives_pairs_of_characters(self):
        self.assertEqual(words("ab中文字c 字"), ["ab", "中文", "文字", "c", "字"])

    def test_what_is_written_back_is_split_into_the_same_words(self):
        for text in ("Don't stop_at 3.14", "ab中文字c ひらがな漢字", "İstanbul ﬁn Straße ΟΔΟΣ", "", "..."):
            once = words(text)
            self.assertEqual(words(" ".join(once)), once, text)

    def test_n_grams(self):
        self.assertEqual(n_grams("a b c", 2), {("a", "b"), ("b", "c")})
        self.assertEqual(n_grams("a b a b", 2), {("a", "b"), ("b", "a")})
        self.assertEqual(n_grams("a b c", 2, padded=True), {("a", "b"), ("b", "c"), ("c", "")})
        self.assertEqual(n_grams("a", 2), set())
        self.assertEqual(n_grams("a", 2, padded=True), {("a", "")})
        self.assertEqual(n_grams("", 2, padded=True), set())


if __name__ == "__main__":
    unittest.main()
