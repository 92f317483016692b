//! Pages generated from a seed: texts over one vocabulary, near copies of them, and whole crawls with
//! updates, copies, redirects and deaths.

pub use doppel_model::Random;
use serde_json::{Value, json};

/// A text of `words` words. Texts of different seeds differ.
pub fn text(seed: u64, words: usize) -> Vec<String> {
    let mut random = Random::new(seed);
    let syllables = ["ba", "do", "ki", "lu", "me", "no", "ra", "si", "tu", "ve"];
    let word = |random: &mut Random| (0..3).map(|_| syllables[random.index(10)]).collect::<String>();
    (0..words).map(|_| word(&mut random)).collect()
}

/// A near copy of a text, with one word in the middle replaced. In a text of 200 words this changes 5 of the
/// 200 shingles on each side, so J = 195 / 205.
pub fn near_copy(text: &[String], seed: u64) -> Vec<String> {
    let mut copy = text.to_vec();
    let middle = copy.len() / 2;
    copy[middle] = format!("changed{seed}");
    copy
}

/// An HTML page with these words.
pub fn html(title: &str, words: &[String]) -> String {
    let paragraphs: String = words.chunks(40).map(|chunk| format!("<p>{}</p>\n", chunk.join(" "))).collect();
    format!("<!doctype html>\n<html><head><title>{title}</title></head><body>\n{paragraphs}</body></html>\n")
}

/// A crawl in `rounds` rounds with `topics` families of pages. A family has 1 to 5 pages that are near
/// copies. In later rounds some pages change slightly, some completely, some move to another family, some
/// become redirects, and some die.
pub fn rounds(seed: u64, topics: usize, rounds: usize) -> Vec<Vec<Value>> {
    let mut random = Random::new(seed);
    let sizes: Vec<usize> = (0..topics).map(|_| 1 + random.index(5)).collect();
    let url = |topic: usize, page: usize| format!("http://site{}.example/topic{topic}/page{page}", topic % 7);
    let content = |topic: usize, variant: u64| {
        let family = text(seed ^ (topic as u64 + 1) << 20, 120 + topic % 150);
        html("page", &near_copy(&family, variant))
    };
    let mut crawl = Vec::new();
    for round in 0..rounds {
        let mut pages = Vec::new();
        for (topic, size) in sizes.iter().enumerate() {
            for page in 0..*size {
                let mut line = json!({
                    "url": url(topic, page),
                    "fetched_at": format!("2024-03-{:02}T{:02}:{:02}:00Z", round + 1, topic / 60 % 24, topic % 60),
                });
                let other = random.index(topics);
                match if round == 0 { 0 } else { random.index(12) } {
                    0..=5 => line["html"] = content(topic, page as u64).into(),
                    6 | 7 => line["html"] = content(topic, 100 + round as u64).into(),
                    8 => line["html"] = content(topics + topic + round, 0).into(),
                    9 => line["html"] = content(other, 0).into(),
                    10 => line["redirect_to"] = url(other, 0).into(),
                    _ => line["dead"] = true.into(),
                }
                pages.push(line);
            }
        }
        crawl.push(pages);
    }
    crawl
}

/// The pages as JSON lines.
pub fn ndjson(pages: &[Value]) -> String {
    pages.iter().map(|page| format!("{page}\n")).collect()
}
