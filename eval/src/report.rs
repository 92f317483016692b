//! What an evaluation prints and draws.

use std::io::{self, Write};

use doppel_terminal::destination::Destination;
use doppel_terminal::output::{Output, table};
use doppel_terminal::svg::{self, Panel};
use serde::Serialize;

/// What an evaluation prints and draws.
pub(crate) trait Report: Serialize {
    /// The figures.
    fn tables(&self) -> Vec<Table>;
    /// Notes, one line each.
    fn notes(&self) -> Vec<String>;
    /// The figures as plots.
    fn panels(&self) -> Vec<Panel>;
    /// Checks what the measure must fulfil.
    ///
    /// # Errors
    /// When it is not fulfilled.
    fn verdict(&self) -> anyhow::Result<()> {
        Ok(())
    }
}

/// A table with a title and a head.
#[derive(Debug)]
pub(crate) struct Table {
    title: String,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<T: Into<String>>(title: &str, head: impl IntoIterator<Item = T>) -> Self {
        Self { title: title.to_owned(), rows: vec![head.into_iter().map(Into::into).collect()] }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// As Markdown writes it.
    fn markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        for (number, row) in self.rows.iter().enumerate() {
            writeln!(out, "| {} |", row.join(" | "))?;
            if number == 0 {
                writeln!(out, "|{}", "---|".repeat(row.len()))?;
            }
        }
        Ok(())
    }
}

/// How a report is given out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Aligned columns.
    Text,
    /// Tables for a document.
    Markdown,
    /// One line.
    Json,
}

/// Prints a report, and draws it into a file where one is given.
///
/// # Errors
/// When the report cannot be written, or the measure does not fulfil what it must.
pub(crate) fn give(report: &impl Report, form: Form, plot: Option<&Destination>) -> anyhow::Result<()> {
    if let Some(plot) = plot {
        plot.write(|out| Ok(out.write_all(svg::document(&report.panels()).as_bytes())?))?;
    }
    let json = form == Form::Json;
    Output { json }.print(report, |out| write(report, form, out))?;
    report.verdict()
}

/// Writes a report as tables and notes.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn write(report: &impl Report, form: Form, out: &mut dyn Write) -> io::Result<()> {
    for part in report.tables() {
        writeln!(out, "{}\n", part.title)?;
        match form {
            Form::Markdown => part.markdown(out)?,
            Form::Text | Form::Json => table(out, &part.rows)?,
        }
        writeln!(out)?;
    }
    report.notes().iter().try_for_each(|note| writeln!(out, "{note}"))
}

/// A share in percent, with enough digits to distinguish it from 0.
pub(crate) fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0".to_owned(),
        small @ ..0.1 => format!("{small:.3}"),
        large => format!("{large:.2}"),
    }
}
