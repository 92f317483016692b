//! The texts of pages: families around the threshold, and texts that are too short to be compared.

use doppel_model::Random;

/// The texts of a history, and the number of texts of the first family, which come first. The last text has
/// no word.
pub(crate) fn texts(random: &mut Random) -> (Vec<String>, usize) {
    let (mut texts, mut first) = (Vec::new(), 0);
    for family in 0..2 + random.index(2) {
        let words = 30 + random.index(120);
        // Windows over one long text: neighbours share most of their words, and the ends of the chain share
        // few words.
        let step = (words / (12 + random.index(10))).max(1);
        for window in 0..5 + random.index(4) {
            texts.push(text(family, window * step..window * step + words));
        }
        // Copies with a few other words. Some copies are just above the threshold and some just below.
        for changed in 1..=3 {
            texts.push(with_other_words(&text(family, 0..words), changed));
        }
        // A beginning of the text with four fifths of its words, and one with one word more.
        texts.push(text(family, 0..words * 4 / 5));
        texts.push(text(family, 0..words * 4 / 5 + 1));
        first = if family == 0 { texts.len() } else { first };
    }
    // Texts under 20 words are duplicates only of equal texts.
    texts.push(text(90, 0..19));
    texts.push(with_other_words(&text(90, 0..19), 1));
    texts.push(text(91, 0..40));
    texts.push("!!! ...".to_owned());
    (texts, first)
}

fn text(family: usize, words: std::ops::Range<usize>) -> String {
    words.map(|word| format!("f{family}w{word}")).collect::<Vec<_>>().join(" ")
}

/// The text with `changed` words replaced, far from each other.
fn with_other_words(text: &str, changed: usize) -> String {
    let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
    for number in 1..=changed {
        let at = words.len() * number / (changed + 1);
        words[at] = format!("other{number}");
    }
    words.join(" ")
}
