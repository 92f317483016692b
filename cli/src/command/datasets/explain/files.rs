//! `doppel explain FILE FILE`: compares two pages on disk under a policy, without a server.
//!
//! The result has the form of the server's answer, without the parts that need a collection. It shows which
//! part of each page the policy compares and which parts it leaves out. A signature does not store the parts
//! that are left out.

use std::io::{self, Write};
use std::path::Path;

use clap::Args;
use doppel_contract::answer::{ComparisonMeasures, MainContentAnswer, OmittedPart};
use doppel_engine::comparison::{self, MeasuredComparison};
use doppel_engine::ingest;
use doppel_inputs::reading::one_page::OnePage;
use doppel_inputs::records::FieldArgs;
use doppel_model::pairwise::Signer;
use doppel_model::signature::Signature;
use doppel_node::args::PolicyArgs;
use doppel_node::directory::policy_tables;
use doppel_terminal::exit::Failure;
use doppel_terminal::output::{Output, count, plural, table};
use doppel_text::{Extraction, Extractor};
use serde::Serialize;

use super::print_measures;

/// Characters of text that are shown for each rule that leaves out text, unless `--left-out` says otherwise.
const LEFT_OUT: u32 = 200;
/// Largest value of `--left-out`.
const LEFT_OUT_MAX: i64 = 100_000;

/// Options that apply to two files.
#[derive(Debug, Args)]
pub(super) struct FilesArgs {
    #[command(flatten)]
    policy: PolicyArgs,
    /// For files: the URL that selects a page of the first file if it has several, or at which a plain file
    /// was found. Policies that read the site of a page need it.
    #[arg(long, value_name = "URL")]
    url_a: Option<String>,
    /// Like --url-a, for the second file.
    #[arg(long, value_name = "URL")]
    url_b: Option<String>,
    /// For files, if the policy compares only the main content: how many characters to show of the text that
    /// each rule leaves out; 0 shows none [default: 200].
    #[arg(long, value_name = "CHARACTERS", value_parser = clap::value_parser!(u32).range(0..=LEFT_OUT_MAX))]
    left_out: Option<u32>,
    #[command(flatten)]
    fields: FieldArgs,
}

/// Comparison of two pages on disk.
#[derive(Debug, Serialize)]
struct FileComparison {
    a: Side,
    b: Side,
    policy: String,
    measures: ComparisonMeasures,
    duplicate: bool,
    reason: String,
}

/// What the policy compares of one page.
#[derive(Debug, Serialize)]
struct Side {
    file: String,
    url: String,
    hash: String,
    tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    shingles: Option<u32>,
    comparable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    main_content: Option<MainContentAnswer>,
}

impl FilesArgs {
    /// Compares the pages of two files, and prints the result.
    pub(super) fn run(self, a: &Path, b: &Path, output: Output) -> anyhow::Result<()> {
        let policy = self.policy.policy()?.unwrap_or_default();
        let signer = policy_tables::signer(policy, policy_tables::from_args(&self.policy)?)?;
        let chars = self.left_out.unwrap_or(LEFT_OUT) as usize;
        let [a, b] = [("--url-a", a, &self.url_a), ("--url-b", b, &self.url_b)]
            .map(|(option, file, url)| OnePage { file, option, url: url.as_deref(), fields: &self.fields })
            .map(|page| side(&page, &signer, chars));
        let ((a, x), (b, y)) = (a?, b?);
        let measured = comparison::compare(policy, &x, &y);
        let reason = comparison::reason(policy, (x.tokens(), y.tokens()), &measured);
        let MeasuredComparison { comparison, measures } = measured;
        let compared = FileComparison {
            a,
            b,
            policy: policy.to_string(),
            measures,
            duplicate: comparison.similar,
            reason,
        };
        output.print(&compared, |out| print(&compared, out))?;
        Ok(())
    }

    /// Refuses options that have no effect on a question to a server.
    pub(super) fn check_unused(&self) -> Result<(), Failure> {
        let PolicyArgs { policy, tau, policy_tables, .. } = &self.policy;
        let is_given = [
            (policy.is_some(), "--policy"),
            (tau.is_some(), "--tau"),
            (policy_tables.is_some(), "--policy-tables"),
            (self.url_a.is_some(), "--url-a"),
            (self.url_b.is_some(), "--url-b"),
            (self.left_out.is_some(), "--left-out"),
            (!self.fields.is_empty(), "a field of records"),
        ];
        match is_given.into_iter().find(|(is_given, _)| *is_given) {
            None => Ok(()),
            Some((_, option)) => Err(Failure::Usage(format!(
                "{option} applies to two files only; a server compares two URLs under the policy of its collection"
            ))),
        }
    }
}

fn side(named: &OnePage<'_>, signer: &Signer, chars: usize) -> anyhow::Result<(Side, Signature)> {
    let (page, policy) = (named.page()?, signer.policy());
    let file = named.file.display().to_string();
    if policy.reads_site() && page.url.host().is_empty() {
        let (name, option) = (policy.name(), named.option);
        let text = match named.url {
            Some(url) => {
                format!("the policy {name} reads the site of a page, and {option} {url} has no host")
            }
            None => format!(
                "the policy {name} reads the site of a page: say with {option} where {file} was found"
            ),
        };
        return Err(Failure::Usage(text).into());
    }
    let mut extractor = Extractor::signing(signer.clone());
    let nothing =
        |why: String| Failure::BadInput(format!("{file}: {} {why}: there is nothing to compare", page.url));
    let raw = page.body.raw_content().filter(|_| policy.reads_main());
    let taken = raw.and_then(|raw| extractor.main_content_report(&page.url, raw, chars));
    let main_content = taken.map(comparison::main_content);
    let signature = match ingest::extracted(&mut extractor, &page) {
        Some(Extraction::Page(page)) => page.signature,
        Some(Extraction::Redirect(target)) => {
            return Err(nothing(format!("redirects to {target}")).into());
        }
        None => return Err(nothing("is dead".to_owned()).into()),
    };
    let side = Side {
        url: page.url.to_string(),
        hash: signature.content().to_string(),
        tokens: signature.tokens(),
        shingles: signature.kind().is_of_shingles().then(|| signature.size()),
        comparable: policy.comparable(&signature),
        main_content,
        file,
    };
    Ok((side, signature))
}

fn print(compared: &FileComparison, out: &mut dyn Write) -> io::Result<()> {
    let FileComparison { a, b, policy, measures, duplicate, reason } = compared;
    let verdict = if *duplicate { "near-duplicates" } else { "no near-duplicates" };
    writeln!(out, "{verdict}: {reason}")?;
    let row = |name: &str, of: fn(&Side) -> String| vec![name.to_owned(), of(a), of(b)];
    let mut rows = vec![vec![String::new(), "a".to_owned(), "b".to_owned()]];
    rows.push(row("file", |side| side.file.clone()));
    rows.push(row("url", |side| side.url.clone()));
    rows.push(row("tokens", |side| side.tokens.to_string()));
    if a.shingles.is_some() {
        rows.push(row("shingles", |side| side.shingles.unwrap_or_default().to_string()));
    }
    table(out, &rows)?;
    print_measures(policy, measures, *duplicate, out)?;
    for (name, side) in [("a", a), ("b", b)] {
        if let Some(main_content) = &side.main_content {
            print_main_content(name, main_content, out)?;
        }
    }
    Ok(())
}

pub(in crate::command) fn print_main_content(
    name: &str,
    main_content: &MainContentAnswer,
    out: &mut dyn Write,
) -> io::Result<()> {
    let MainContentAnswer { part, page_tokens, taken_tokens, left_out_tokens, left_out } = main_content;
    let part = match part.as_str() {
        "main" => "what stands in main",
        "page" => "the page by the rules, without its title",
        "page-and-title" => "the page by the rules, with its title",
        _ => "the whole page",
    };
    let [taken, left] = [*taken_tokens, *left_out_tokens].map(count);
    writeln!(
        out,
        "main content of {name}: {part}; {taken} of {} taken, {left} left out",
        plural(*page_tokens, "token")
    )?;
    let row = |OmittedPart { rule, tokens, text }: &OmittedPart| {
        vec![String::new(), rule.clone(), plural(*tokens, "token"), text.clone()]
    };
    table(out, &left_out.iter().map(row).collect::<Vec<_>>())
}
