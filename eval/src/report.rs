//! Output of a measurement: tables and notes on standard output, and plots in an SVG file.
//!
//! A measurement implements [`Report`]; this module never changes a figure. Documents quote the titles and
//! columns of the tables, and the fields of the JSON.

use std::io::{self, Write};

use doppel_terminal::destination::Destination;
use doppel_terminal::output::{Output, table};
use doppel_terminal::svg::{self, Panel};
use serde::Serialize;

/// Result of a measurement that can be printed, drawn and checked.
pub(crate) trait Report: Serialize {
    /// Tables of the figures.
    fn tables(&self) -> Vec<Table>;
    /// Notes that follow the tables, one line each.
    fn notes(&self) -> Vec<String>;
    /// Plots of the figures.
    fn panels(&self) -> Vec<Panel>;
    /// Checks the property that the measured code must have.
    ///
    /// # Errors
    /// If the code does not have the property.
    fn verdict(&self) -> anyhow::Result<()> {
        Ok(())
    }
}

/// Table with a title. The first row is its head.
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

    /// Writes the table in Markdown.
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

/// Format of a printed report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReportFormat {
    /// Aligned columns.
    Text,
    /// Tables in Markdown.
    Markdown,
    /// JSON on one line.
    Json,
}

/// Prints a report, and draws its plots into `plot` if there is one.
///
/// # Errors
/// If the report cannot be written, or if [`Report::verdict`] fails.
pub(crate) fn print_report(
    report: &impl Report,
    form: ReportFormat,
    plot: Option<&Destination>,
) -> anyhow::Result<()> {
    if let Some(plot) = plot {
        plot.write(|out| Ok(out.write_all(svg::document(&report.panels()).as_bytes())?))?;
    }
    let json = form == ReportFormat::Json;
    Output { json }.print(report, |out| write(report, form, out))?;
    report.verdict()
}

/// Writes the tables and the notes of a report.
///
/// # Errors
/// If writing to `out` fails.
pub(crate) fn write(report: &impl Report, form: ReportFormat, out: &mut dyn Write) -> io::Result<()> {
    for part in report.tables() {
        writeln!(out, "{}\n", part.title)?;
        match form {
            ReportFormat::Markdown => part.markdown(out)?,
            ReportFormat::Text | ReportFormat::Json => table(out, &part.rows)?,
        }
        writeln!(out)?;
    }
    report.notes().iter().try_for_each(|note| writeln!(out, "{note}"))
}

/// Formats a share in percent, with enough digits to distinguish it from 0.
pub(crate) fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0".to_owned(),
        small @ ..0.1 => format!("{small:.3}"),
        large => format!("{large:.2}"),
    }
}
