//! Files that `doppel plan` writes: where each content is stored, and the map.

use std::io::Write;
use std::path::Path;

use doppel_control::layout::ContentLayout;
use doppel_inputs::arguments::InputArgs;
use doppel_model::signature::Signature;
use doppel_model::{NodeId, PageUrl};
use doppel_terminal::destination::{self, Destination};
use doppel_terminal::exit::Failure;
use serde::Serialize;

use super::contents::Contents;

/// Destinations of the files.
pub(super) struct Outputs {
    assignments: Option<Destination>,
    map: Option<Destination>,
}

#[derive(Serialize)]
struct Assignment<'a> {
    url: &'a PageUrl,
    partition: u32,
    node: NodeId,
    probed_nodes: &'a [NodeId],
}

impl Outputs {
    /// Ensures that the files can be written and differ from each other. Writes nothing yet.
    ///
    /// # Errors
    /// If a file cannot be written, both are the same file, or one is an input.
    pub(super) fn open(
        assignments: Option<&Path>,
        map: Option<&Path>,
        inputs: &InputArgs,
    ) -> anyhow::Result<Self> {
        for (option, path) in [("--assignments", assignments), ("--map", map)] {
            path.map_or(Ok(()), |path| inputs.refuse_output(option, path))?;
        }
        let open = |path: Option<&Path>| path.map(Destination::open).transpose();
        let outputs = Self { assignments: open(assignments)?, map: open(map)? };
        if let (Some(one), Some(other)) = (assignments, map)
            && outputs.are_one(one, other)
        {
            let (one, other) = (one.display(), other.display());
            let text = format!("--assignments {one} and --map {other} go to the same place; name two");
            return Err(Failure::Usage(text).into());
        }
        Ok(outputs)
    }

    fn are_one(&self, assignments: &Path, map: &Path) -> bool {
        match (&self.assignments, &self.map) {
            (Some(Destination::Standard), Some(Destination::Standard)) => true,
            (Some(Destination::Standard), _) | (_, Some(Destination::Standard)) => false,
            _ => destination::is_same_path(assignments, map),
        }
    }

    /// Whether a file goes to standard output.
    pub(super) fn on_stdout(&self) -> bool {
        [&self.assignments, &self.map].iter().any(|out| matches!(out, Some(Destination::Standard)))
    }

    /// Writes the files that the user asked for.
    ///
    /// # Errors
    /// If a file cannot be written. The file then stays as it was.
    pub(super) fn write(&self, layout: &ContentLayout, contents: &Contents) -> anyhow::Result<()> {
        if let Some(out) = &self.assignments {
            out.write(|out| write_assignments(layout, contents, out))?;
        }
        if let Some(out) = &self.map {
            out.write(|out| write_line(layout, out))?;
        }
        Ok(())
    }
}

fn write_assignments(layout: &ContentLayout, contents: &Contents, out: &mut dyn Write) -> anyhow::Result<()> {
    let with_url = contents.values().filter_map(|content| Some((content.url.as_ref()?, &*content.signature)));
    let mut by_url: Vec<(&PageUrl, &Signature)> = with_url.collect();
    by_url.sort_unstable_by_key(|(url, _)| *url);
    let mut probed_nodes = Vec::new();
    for (url, signature) in by_url {
        let home = layout.home(signature, &mut probed_nodes);
        write_line(
            &Assignment { url, partition: home.partition.0, node: home.node, probed_nodes: &probed_nodes },
            out,
        )?;
    }
    Ok(())
}

fn write_line(value: &impl Serialize, out: &mut dyn Write) -> anyhow::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    Ok(out.write_all(b"\n")?)
}
