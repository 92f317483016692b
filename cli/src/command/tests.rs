//! Generates the reference of the command line as a Markdown page, and tests that the page in `docs` is
//! current.
//!
//! The page has the same texts as `--help`, so nobody needs to edit it. To generate it again, run
//! `DOPPEL_REFERENCE=write cargo test --lib reference`.

use std::fmt::Write as _;
use std::fs;

use clap::builder::StyledStr;
use clap::{Arg, ArgAction, Command, CommandFactory};

use super::Cli;

/// Path of the page.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reference/command-line.md");

const HEAD: &str = "\
# Command line

This page lists every command of `doppel` with its arguments, its options, and examples. It is a reference. `doppel COMMAND --help` prints
the same text.

<!-- Generated from the program. `DOPPEL_REFERENCE=write cargo test --lib reference` writes this page anew. -->
";

#[test]
fn the_reference_is_up_to_date() {
    let page = page();
    if std::env::var("DOPPEL_REFERENCE").as_deref() == Ok("write") {
        fs::write(PAGE, page).unwrap();
        return;
    }
    let stored = fs::read_to_string(PAGE).unwrap_or_default();
    let differs = page.lines().zip(stored.lines()).find(|(new, old)| new != old);
    assert!(
        page == stored,
        "docs/reference/command-line.md differs from `--help`, first at {differs:?}; \
         run `DOPPEL_REFERENCE=write cargo test --lib reference`"
    );
}

/// Returns the whole page.
fn page() -> String {
    let mut root = Cli::command();
    root.build();
    let mut page = HEAD.to_owned();
    page.push_str("\n## Commands\n\n| command | what it does |\n|---|---|\n");
    for command in commands(&root) {
        let name = command.get_bin_name().unwrap_or(command.get_name());
        let anchor = name.replace(' ', "-");
        let about = command.get_about().map(text).unwrap_or_default();
        writeln!(page, "| [`{name}`](#{anchor}) | {} |", about.replace('|', "\\|")).unwrap();
    }
    let codes = root.get_after_help().map(StyledStr::to_string).unwrap_or_default();
    let codes = codes.trim_start_matches("Exit codes:\n").trim_end();
    write!(page, "\n## Exit codes\n\n```text\n{codes}\n```\n").unwrap();
    for command in commands(&root) {
        section(&mut page, command);
    }
    page
}

/// Returns all commands in the order of the help, each before its own subcommands.
fn commands(of: &Command) -> Vec<&Command> {
    let visible =
        of.get_subcommands().filter(|command| command.get_name() != "help" && !command.is_hide_set());
    visible.flat_map(|command| [vec![command], commands(command)].concat()).collect()
}

/// Appends the section of one command.
fn section(page: &mut String, command: &Command) {
    let name = command.get_bin_name().unwrap_or(command.get_name());
    write!(page, "\n## `{name}`\n").unwrap();
    if let Some(about) = command.get_long_about().or(command.get_about()) {
        for paragraph in about.to_string().split("\n\n") {
            write!(page, "\n{}\n", markdown(paragraph)).unwrap();
        }
    }
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim().replace("\n       ", "\n");
    write!(page, "\n```text\n{usage}\n```\n").unwrap();
    let (arguments, options): (Vec<_>, Vec<_>) =
        command.get_arguments().filter(|arg| !is_general(arg)).partition(|arg| arg.is_positional());
    for (title, list) in [("Arguments", arguments), ("Options", options)] {
        if !list.is_empty() {
            write!(page, "\n**{title}**\n\n").unwrap();
        }
        for arg in list {
            writeln!(page, "- {}", item(arg)).unwrap();
        }
    }
    if let Some(examples) = command.get_after_long_help().or(command.get_after_help()) {
        let examples = examples.to_string();
        let lines: Vec<&str> = examples.trim_end().lines().collect();
        let is_titled = lines.first().is_some_and(|line| ["Example:", "Examples:"].contains(line));
        let lines = if is_titled { &lines[1..] } else { &lines[..] };
        let lines: Vec<&str> = lines.iter().map(|line| line.strip_prefix("  ").unwrap_or(line)).collect();
        let title = if is_titled { "Examples" } else { "Notes" };
        write!(page, "\n**{title}**\n\n```text\n{}\n```\n", lines.join("\n")).unwrap();
    }
}

/// Returns true for `--help`, `--version`, and arguments that the help does not show.
fn is_general(arg: &Arg) -> bool {
    ["help", "version"].contains(&arg.get_id().as_str()) || arg.is_hide_set()
}

/// Returns the name of an argument, with its help text, default, and possible values.
fn item(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default();
    let values: Vec<String> = names.iter().map(|name| format!("<{name}>")).collect();
    let long = arg.get_long().map(|long| format!("--{long}"));
    let short = arg.get_short().map(|short| format!("-{short}"));
    let mut spelling: Vec<String> = short.into_iter().chain(long).collect();
    if let Some(last) = spelling.last_mut().filter(|_| arg.get_action().takes_values()) {
        write!(last, " {}", values.join(" ")).unwrap();
    }
    if arg.is_positional() {
        let many = matches!(arg.get_action(), ArgAction::Append)
            || arg.get_num_args().is_some_and(|many| many.max_values() > 1);
        spelling.push(format!("{}{}", values.join(" "), if many { "..." } else { "" }));
    }
    let help = arg.get_long_help().or(arg.get_help()).map(text).unwrap_or_default();
    // Some help texts end with `[default: …]`.
    let help = match help.strip_suffix(']').and_then(|help| help.split_once(" \\[default")) {
        Some((help, default)) => format!("{}. Default{default}", help.trim_end_matches('.')),
        None => help,
    };
    let mut item = format!("`{}`: {help}", spelling.join(", "));
    if !item.ends_with(['.', ':']) {
        item.push('.');
    }
    let defaults: Vec<String> =
        arg.get_default_values().iter().map(|value| format!("`{}`", value.to_string_lossy())).collect();
    if !defaults.is_empty() && arg.get_action().takes_values() && !arg.is_hide_default_value_set() {
        write!(item, " Default: {}.", defaults.join(", ")).unwrap();
    }
    if let Some(variable) = arg.get_env() {
        write!(item, " Environment variable: `{}`.", variable.to_string_lossy()).unwrap();
    }
    let possible = arg.get_possible_values();
    let shown = possible.iter().filter(|value| !value.is_hide_set() && arg.get_action().takes_values());
    for value in shown {
        let help = value.get_help().map(text);
        let help = help.map(|help| format!(": {help}")).unwrap_or_default();
        write!(item, "\n  - `{}`{help}", value.get_name()).unwrap();
    }
    item
}

/// Returns a help text as one line of Markdown.
fn text(help: &StyledStr) -> String {
    markdown(&help.to_string().split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Escapes Markdown markup outside of inline code, and turns each named page of `docs` into a link.
fn markdown(plain: &str) -> String {
    let parts = plain.split('`').enumerate().map(|(at, part)| {
        if at % 2 == 1 {
            return part.to_owned();
        }
        part.split(' ').map(word).collect::<Vec<_>>().join(" ")
    });
    parts.collect::<Vec<_>>().join("`")
}

fn word(word: &str) -> String {
    let Some(start) = word.find("docs/") else {
        return word.replace('*', "\\*").replace('<', "\\<").replace('[', "\\[");
    };
    let Some(end) = word.find(".md").map(|end| end + 3).filter(|end| *end > start) else {
        return word.to_owned();
    };
    let (before, path, after) = (&word[..start], &word[start..end], &word[end..]);
    let below = path.trim_start_matches("docs/");
    let link = below.strip_prefix("reference/").map_or_else(|| format!("../{below}"), ToOwned::to_owned);
    format!("{before}[{path}]({link}){after}")
}
