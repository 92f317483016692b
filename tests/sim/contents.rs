//! The contents of pages: families built around the threshold, and the links between them. For `jaccard` the
//! links follow from a definition that shares no code with the product. For other policies they come from the
//! product, which the test `reference` of `doppel-text` compares with such a definition.

use std::collections::BTreeSet;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use doppel_model::pairwise::{Features, Policy, Signer};
use doppel_model::signature::Signature;
use doppel_model::{ContentHash, Tau, stable_hash64};

/// First number and size of each family of related contents.
pub(crate) const FAMILIES: [(usize, usize); 9] =
    [(0, 8), (8, 8), (16, 7), (23, 6), (29, 4), (33, 6), (39, 3), (42, 1), (43, 5)];

/// First number and size of parts of the chains. Each part forms a group, and a content between two parts
/// links their groups.
pub(crate) fn islands(policy: Policy) -> &'static [(usize, usize)] {
    if policy.metric().is_some_and(|tau| tau > Tau::DEFAULT) {
        &[(8, 2), (11, 2), (14, 2)]
    } else {
        &[(0, 2), (3, 2), (6, 2), (33, 2), (36, 2)]
    }
}

/// Words of a text, each a number.
type Text = Vec<u32>;

/// The contents and links of one policy, shared by all runs.
pub(crate) struct Contents {
    pub(crate) policy: Policy,
    pub(crate) signatures: Vec<Arc<Signature>>,
    /// Whether two contents are near-duplicates.
    similar: Vec<Vec<bool>>,
}

impl Contents {
    /// The contents of a policy. They are made once.
    pub(crate) fn of(policy: Policy) -> &'static Self {
        static ALL: Mutex<Option<HashMap<Policy, &'static Contents>>> = Mutex::new(None);
        let mut all = ALL.lock().unwrap();
        let all = all.get_or_insert_default();
        // Leaking is fine: there are few policies, and their contents live as long as the test process.
        all.entry(policy).or_insert_with(|| Box::leak(Box::new(Self::make(policy))))
    }

    fn make(policy: Policy) -> Self {
        let mut texts: Vec<Text> = Vec::new();
        for (family, range) in texts_by_family().into_iter().zip(FAMILIES) {
            assert_eq!((texts.len(), family.len()), range);
            texts.extend(family);
        }
        let tokens = |text: &Text| text.iter().map(|word| stable_hash64(&word.to_le_bytes())).collect();
        let tokens: Vec<Vec<u64>> = texts.iter().map(tokens).collect();
        let mut signer = Signer::learnt(policy, &tokens);
        let signatures: Vec<Arc<Signature>> = tokens
            .iter()
            .zip(0..)
            // For policies that depend on it, pages are on two sites, and some are plain text with a word per
            // line.
            .map(|(tokens, number)| {
                let main = (number % 3 > 0).then_some(&**tokens);
                signer.sign(Features { tokens, site: Some(number % 2), main, terms: tokens, lines: tokens })
            })
            .map(Arc::new)
            .collect();
        let each = 0..texts.len();
        let is_similar = |a: usize, b: usize| match policy {
            Policy::Jaccard { tau, words, .. } => {
                is_near_duplicate(&texts[a], &texts[b], tau, words as usize)
            }
            _ => policy.similar(&signatures[a], &signatures[b]),
        };
        let similar: Vec<Vec<bool>> =
            each.clone().map(|a| each.clone().map(|b| is_similar(a, b)).collect()).collect();
        let near = similar.iter().flatten().filter(|similar| **similar).count();
        assert!(near > texts.len() + 10 && near < texts.len() * texts.len() / 2, "{policy}: {near} pairs");
        for (a, row) in similar.iter().enumerate() {
            for (b, similar) in row.iter().enumerate() {
                let linked = policy.linked(&signatures[a], &signatures[b]);
                assert_eq!(linked, *similar, "contents {a} and {b}: a pair that has no band in common");
            }
        }
        Self { policy, signatures, similar }
    }

    pub(crate) fn hash(&self, number: usize) -> ContentHash {
        self.signatures[number].content()
    }

    pub(crate) fn has_tokens(&self, number: usize) -> bool {
        self.signatures[number].tokens() > 0
    }

    pub(crate) fn similar(&self, a: usize, b: usize) -> bool {
        self.similar[a][b]
    }
}

/// F by its definition, on words: the exact Jaccard coefficient of the sets of `words` consecutive words. The
/// text is followed by dummy words, one fewer than a shingle has.
fn is_near_duplicate(a: &[u32], b: &[u32], tau: Tau, words: usize) -> bool {
    if a == b {
        return !a.is_empty();
    }
    let set = |text: &[u32]| -> BTreeSet<Vec<Option<u32>>> {
        (0..text.len()).map(|at| (at..at + words).map(|at| text.get(at).copied()).collect()).collect()
    };
    let (x, y) = (set(a), set(b));
    let shared = x.intersection(&y).count();
    let all = x.len() + y.len() - shared;
    a.len() >= 20 && b.len() >= 20 && 10_000 * shared > tau.numerator() as usize * all
}

/// A text whose words no other family has.
fn text(family: u32, words: u32) -> Text {
    (0..words).map(|word| family * 100_000 + word).collect()
}

/// The text with other words at the positions `changed`.
fn edited(mut text: Text, salt: u32, changed: impl IntoIterator<Item = usize>) -> Text {
    for at in changed {
        text[at] += 1_000 * (1 + salt);
    }
    text
}

fn texts_by_family() -> Vec<Vec<Text>> {
    // Each text is the previous one with `step` more words replaced, six apart.
    let chain = |family: u32, words: u32, step: usize, length: usize| -> Vec<Text> {
        (0..length).map(|n| edited(text(family, words), 0, (0..n * step).map(|i| 3 + i * 6))).collect()
    };
    // A center, and texts that differ from it in one place each.
    let star = |family: u32, words: u32, length: usize| -> Vec<Text> {
        let satellite = |n: usize| edited(text(family, words), n as u32, [2 + 7 * n]);
        std::iter::once(text(family, words)).chain((0..length).map(satellite)).collect()
    };
    // Each text is the beginning of the next. J of the texts of 84 and 96 words is exactly 4/5, and of 94 and
    // 96 words it is exactly 9/10.
    let beginnings: Vec<Text> = [84, 94, 95, 96].map(|words| text(5, words)).into();
    let short: Vec<Text> = [12, 18, 19].map(|words| text(6, words)).into();
    let singles: Vec<Text> =
        [25, 40, 90, 160, 300].iter().zip(8..).map(|(words, f)| text(f, *words)).collect();
    vec![
        chain(1, 100, 2, 8),
        chain(2, 100, 1, 8),
        star(3, 60, 6),
        star(4, 200, 5),
        beginnings,
        chain(7, 150, 3, 6),
        short,
        vec![Vec::new()],
        singles,
    ]
}
