//! Groups all pages at once, after the last page is read. Stores nothing, or creates a data directory.

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use anyhow::Context;
use doppel_contract::answer::ExportLine;
use doppel_crawls::copy::RecordName;
use doppel_dataset::accounts::{Accounts, DecisionCounts};
use doppel_dataset::collection_groups::CollectionGroups;
use doppel_dataset::extracted;
use doppel_dataset::extracted::{ExtractedBatch, ExtractedPage};
use doppel_dataset::extraction_log::{BEGINS_ANEW, ExtractionLog, FRAMES_VERSION, GOES_ON};
use doppel_dataset::reference::{NamesOfRun, ProtectedRecords, ReferenceInput};
use doppel_dataset::results::{RecordDecisions, TakenRecords};
use doppel_dataset::summary::{IngestSummary, Summary};
use doppel_dataset::weights::Weights;
use doppel_inputs::ingested::{self, IngestedFile, ReadingPlan};
use doppel_inputs::reading::directory;
use doppel_inputs::records::record_names::{RecordLabel, RecordNames};
use doppel_model::Timestamp;
use doppel_model::pairwise::Signer;
use doppel_model::signature::TOKENISER_VERSION;
use doppel_model::tables::TERMS_VERSION;
use doppel_node::directory::manifest::{Manifest, ManifestRequest};
use doppel_node::directory::named_by;
use doppel_node::directory::new_directory::{NewDirectory, WHOLE};
use doppel_node::directory::policy_tables;
use doppel_node::engine::{self, CollectionRequest, DEFAULTS};
use doppel_terminal::output::say;
use doppel_terminal::scratch::Scratch;
use doppel_terminal::{interrupt, progress};
use doppel_tier1::bulk::{
    Bulk, BulkConfig, BulkOutput, GroupedCollection, NamedRecord, NamedRecords, NewContents, PageWithContent,
    Unit,
};
use serde::Serialize;

use super::report_plan::ReportData;
use super::{Dedup, DedupOutcome, Plan, deletion, nothing_kept_message};

/// Bytes of signatures that are kept in memory while pages are grouped without a data directory. Further
/// signatures go to a temporary file.
const SIGNATURES_MAX: usize = 128 << 20;

/// Message if a signal ends a run when the directory is complete but the output is not.
const NOT_WRITTEN: &str =
    "interrupted; the collection is complete, but its output is not; the same command writes the output";

/// The pages that were read, grouped.
struct GroupedInput {
    ingest: IngestSummary,
    grouped: GroupedCollection,
    /// Contents of the new databases, for the index. `None` if no directory is made.
    contents: Option<NewContents>,
    accounts: Accounts,
    weights: Weights,
    /// Names of the records, if output lines name them.
    names: Option<RecordNames>,
    protected: ProtectedRecords,
    /// Decision on each record, if records are to be written.
    decisions: Option<RecordDecisions>,
    /// Files that were read to their ends, for the list of the collection.
    ended: Vec<IngestedFile>,
}

/// An output line in a run that judges each record on its own.
#[derive(Serialize)]
struct RecordLine<'l> {
    #[serde(flatten)]
    line: ExportLine<'l>,
    /// Record that the line describes.
    record: Option<RecordLabel<'l>>,
    /// Record that is the winner of the group.
    winner_record: Option<RecordLabel<'l>>,
    /// Kept record of which this record is a duplicate.
    duplicate_of_record: Option<RecordLabel<'l>>,
}

impl Dedup {
    /// Groups the pages and stores no collection.
    pub(super) fn at_once(&self, request: CollectionRequest, plan: &Plan) -> anyhow::Result<DedupOutcome> {
        let scratch = Scratch::new()?;
        let CollectionRequest { wanted: ManifestRequest { policy, winners, .. }, tables, .. } = request;
        let signer = policy_tables::signer(policy.unwrap_or_default(), tables)?;
        let begin = Instant::now();
        let config = BulkConfig {
            policy: signer.policy(),
            winners: winners.unwrap_or_default(),
            market: plan.market.clone(),
            group_members_max: self.engine.tuning.group_members_max,
            unit: self.unit(),
            keep: BulkOutput::Answer { memory_max: SIGNATURES_MAX, temp_dir: scratch.path() },
        };
        let read = self.group(&config, signer.clone(), &plan.references.inputs, None)?;
        Ok(self.answer(read, begin, (&signer, config.unit), Some(plan)))
    }

    /// Creates a data directory.
    pub(super) fn make_directory(
        &self,
        dir: &Path,
        request: CollectionRequest,
        plan: &Plan,
    ) -> anyhow::Result<DedupOutcome> {
        let CollectionRequest { wanted, tables, .. } = request;
        let manifest = Manifest::new(wanted, DEFAULTS)?;
        let signer = policy_tables::signer(manifest.policy, tables)?;
        let goes_on = plan.reading.as_ref().is_some_and(ReadingPlan::goes_on);
        let new = if goes_on { NewDirectory::resume(dir)? } else { NewDirectory::begin(dir)? };
        let has_log = new.extraction_log().exists();
        interrupt::set_message(if has_log { GOES_ON } else { BEGINS_ANEW })?;
        named_by::keep_for_new(&self.inputs.records.fields.ids);
        let begin = Instant::now();
        let (tier1, map) = (new.tier1(), manifest.map()?);
        let config = BulkConfig {
            policy: manifest.policy,
            winners: manifest.winners,
            market: plan.market.clone(),
            group_members_max: self.engine.tuning.group_members_max,
            unit: Unit::Page,
            keep: BulkOutput::Databases { dir: &tier1, map },
        };
        let mut read = self
            .group(&config, signer.clone(), &[], plan.reading.as_ref().map(|reading| (reading, &new)))
            .with_context(|| nothing_kept_message(dir, new.keeps_log()))?;
        // The next command would take an empty directory for an existing collection. The output may lie in
        // the directory, which must stay empty, so it is not written. The caller reports that nothing was
        // read.
        if read.grouped.counters.submissions == 0 {
            new.keep_log(false);
            interrupt::set_message(BEGINS_ANEW)?;
            return Ok(self.answer(read, begin, (&signer, config.unit), None));
        }
        if let Some(tables) = signer.tables() {
            policy_tables::write(&new.tables(), tables)?;
        }
        // Ways to name records, including those of files that an interrupted run has read.
        let mut names = self.inputs.records.fields.ids.kept();
        names.extend(read.ended.iter().filter_map(IngestedFile::named_by));
        if !names.is_empty() {
            let list = new.named_by();
            named_by::write_new(&list, &names).with_context(|| format!("cannot write {}", list.display()))?;
        }
        let list = new.ingested();
        let ended = std::mem::take(&mut read.ended);
        ingested::write_new(&list, &ended).with_context(|| format!("cannot write {}", list.display()))?;
        // The index comes last, because the collection is whole without it if the disk is full.
        let spinner = progress::waiting("indexing");
        let contents = read.contents.take().context("the new directory has no contents")?;
        let dimensions = self.engine.tuning.dimensions;
        if let Err(error) = engine::write_index(&new.create_tier2()?, &manifest, dimensions, contents) {
            say!("doppel: WARNING: {error:#}. The next start of the collection makes the index");
            new.create_tier2()?;
        }
        let marked = doppel_tier2::check::mark(&new.tier2());
        marked.with_context(|| format!("cannot write {}", dir.display()))?;
        spinner.finish_and_clear();
        new.finish(&manifest, if plan.writes() { NOT_WRITTEN } else { WHOLE })?;
        Ok(self.answer(read, begin, (&signer, config.unit), Some(plan)))
    }

    /// Reads the references and all pages, and groups them.
    fn group(
        &self,
        config: &BulkConfig<'_>,
        signer: Signer,
        references: &[ReferenceInput],
        making: Option<(&ReadingPlan, &NewDirectory)>,
    ) -> anyhow::Result<GroupedInput> {
        let is_kept = matches!(config.keep, BulkOutput::Databases { .. });
        let mut bulk = Bulk::new(config)?;
        let protected = ProtectedRecords::read(references, &signer, |reference, submission| {
            Ok(bulk.protect(reference, submission)?)
        })?;
        let (mut ingest, mut weights) = (IngestSummary::default(), Weights::by_record());
        let mut names = self.names_records(config.unit).then(RecordNames::default);
        let mut results = self.results.is_wanted().then(TakenRecords::default);
        let (mut ended, mut taken) = (Vec::new(), 0);
        let mut take = |extracted: ExtractedBatch| {
            ended.extend(extracted.ended.into_iter().map(|end| end.ingested));
            for page in extracted.pages {
                let (input, original, is_redirect) =
                    (page.input_record(), page.original(), page.is_redirect());
                let ExtractedPage { record, submission, bytes, origin } = page;
                let page = submission.url.id();
                ingest.note_date(submission.fetched_at);
                let outcome = bulk.submit_record(input, submission)?;
                weights.note((record, page), bytes, (is_redirect, outcome));
                if let Some(names) = &mut names {
                    names.note(record, &origin);
                }
                if let Some(results) = &mut results {
                    results.note((record, original), page);
                }
                ingest.outcomes.add(&[outcome]);
                taken += 1;
            }
            Ok(())
        };
        let (mut log, mut reading) = (None, None);
        if let Some((all, new)) = making {
            reading = Some(all.behind(Vec::new()));
            if all.goes_on() {
                let sources = &self.inputs.sources()?.all;
                let maker = maker(&signer, all);
                let (mut opened, read) = ExtractionLog::open(new.extraction_log(), &maker, (sources, all))?;
                new.keep_log(opened.has_files());
                opened.replay(&mut take)?;
                (log, reading) = (Some(opened), Some(all.behind(read)));
            }
        }
        // The language of a page can be asked for only in a stored collection.
        let extractor = (signer, is_kept && self.engine.detect_language);
        let input = extracted::files(&self.inputs, extractor, reading.as_ref(), |extracted| {
            if let (Some(log), Some((_, new))) = (&mut log, making) {
                log.add(&extracted)?;
                new.keep_log(log.has_files());
            }
            take(extracted)
        })?;
        ingest.input = input;
        if is_kept {
            let gone = directory::gone(bulk.live().cloned().map(Ok), self.directories())?;
            if self.count_gone(&mut ingest, &gone) {
                let now = Timestamp::now();
                gone.into_iter().try_for_each(|url| bulk.submit(deletion(url, now)).map(drop))?;
            }
        }
        let spinner = progress::waiting("grouping");
        let (grouped, contents) = bulk.finish_with_contents()?;
        spinner.finish_and_clear();
        let annotate = names.as_ref().filter(|_| self.results.annotate);
        let name = annotate.map(|inputs| {
            let names = NamesOfRun { inputs, protected: &protected };
            move |record| names.name(record)
        });
        let annotate = name.as_ref().map(|name| name as &dyn Fn(Option<NamedRecord>) -> RecordName);
        let decisions = results.map(|results| results.decide(&grouped, config.unit, annotate)).transpose()?;
        // Files of an interrupted run are not read again, but all their records were submitted.
        let bad_before = ingest.input.read_before.bad;
        let decided = DecisionCounts::of_grouped(&grouped, config.unit);
        let mut accounts = Accounts::new(&ingest.input, taken, bad_before, config.unit, decided);
        if let Some(decisions) = &decisions {
            accounts.keep_originals(decisions.originals());
        }
        Ok(GroupedInput { ingest, grouped, contents, accounts, weights, names, protected, decisions, ended })
    }

    /// Unit of judging: pages if the versions of each URL are folded, else records.
    pub(super) fn unit(&self) -> Unit {
        if self.latest || self.data.is_some() { Unit::Page } else { Unit::Record }
    }

    /// Whether output lines name the records of the inputs.
    fn names_records(&self, unit: Unit) -> bool {
        self.results.annotate || unit == Unit::Record && (self.out.is_some() || self.report.is_some())
    }

    /// Builds the results of a run, and writes the output if there is a plan.
    fn answer(
        &self,
        read: GroupedInput,
        begin: Instant,
        (signer, unit): (&Signer, Unit),
        plan: Option<&Plan>,
    ) -> DedupOutcome {
        let elapsed = begin.elapsed();
        let GroupedInput { ingest, grouped, accounts, weights, names, protected, decisions, .. } = read;
        let grouped = &grouped;
        let write = |out: &mut dyn Write| {
            for page in grouped.pages_with_contents() {
                match names.as_ref().filter(|_| unit == Unit::Record) {
                    Some(inputs) => {
                        let names = NamesOfRun { inputs, protected: &protected };
                        serde_json::to_writer(&mut *out, &record_line(&page, names))?;
                    }
                    None => serde_json::to_writer(&mut *out, &ExportLine::from(&page.line))?,
                }
                out.write_all(b"\n")?;
            }
            out.flush().map_err(Into::into)
        };
        let most = plan.map_or(self.top, |plan| plan.largest(self.top));
        let mut groups = CollectionGroups::in_bulk(grouped, most);
        let write_all = |plan: &Plan| {
            // The report reads the inputs again, and `out` may replace an input, so the report is written
            // first.
            let of = ReportData {
                accounts: &accounts,
                unit,
                names: names.as_ref(),
                ingest: &ingest,
                groups: &groups,
            };
            let reported = self.report(plan, (&mut { grouped }, &weights), &of, signer);
            plan.out.as_ref().map_or(Ok(()), |out| out.write(write)).and(reported)
        };
        let written = plan.map_or(Ok(()), write_all);
        groups.keep(self.top);
        let balance = weights.balance_of(grouped, unit);
        let policy = signer.policy();
        let mut summary = Summary::new(policy, (accounts, ingest), elapsed, groups, balance);
        summary.references = protected.summaries(grouped);
        DedupOutcome { summary, decisions, written }
    }
}

fn record_line<'l>(page: &'l PageWithContent, names: NamesOfRun<'l>) -> RecordLine<'l> {
    let NamedRecords { own, winner, duplicate_of } = page.records;
    RecordLine {
        line: ExportLine::from(&page.line),
        record: names.label(own.map(NamedRecord::Input)),
        winner_record: names.label(winner),
        duplicate_of_record: names.label(duplicate_of),
    }
}

/// Identifies what the frames of an extraction log depend on: versions of the formats, the policy with its
/// tables, and how pages are read.
fn maker(signer: &Signer, reading: &ReadingPlan) -> String {
    let tables = signer.tables().map(|tables| tables.hash().to_string());
    let versions = format!("{FRAMES_VERSION} {TOKENISER_VERSION} {TERMS_VERSION}");
    format!("{} {} {versions} {}", signer.policy(), tables.unwrap_or_default(), reading.how())
}
