//! `query`: queries about traces, on us, on DuckDB and on ClickHouse (as chDB) with the same rows.
//!
//! ```text
//! one seed ─► spans, experiments, documents ─┬─► bodies of inserts ─► `assay serve`, over HTTP
//!                                            └─► files of JSON lines ─► DuckDB, chDB, each in a process of its own
//! queries.rs: a question in three languages ─► each engine alone, warm ─► times, answers ─► equal? ─► the table
//! ```
//! Engines follow each other: what one was measured with is gone before the next begins. An answer that differs from
//! another engine's fails the run and is named, with the first row that differs.
//!
//! Rows are generated again for each engine, and never held; ids to be looked up (traces) are recorded as they pass.

mod assay;
mod concurrent_inserts;
mod documents;
mod event_feed;
mod experiments;
mod figures;
mod measurements;
mod peer;
mod queries;
mod query_result;
mod release_comparison;
mod spans;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::process::{Memory, bytes_below};
use crate::report::Report;
use assay::{Objects, Ours};
use documents::{Documents, Wrapped};
use event_feed::write_lines;
use experiments::Trials;
use measurements::{EngineMeasurement, Runs};
use peer::{Engine, Environment, Files, Peer};
use queries::{EVENTS, EXPORT, Question, TRACES};
use query_result::{QueryResult, difference};
use spans::Spans;

pub use figures::geometric_mean;
pub use release_comparison::{Turns, in_turns};

/// More rows than any run inserts.
const BESIDE_ROWS: u64 = 1 << 40;
/// Ours, in figures.
const ASSAY: &str = "assay";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Assay,
    Peer(Engine),
}

impl FromStr for Side {
    type Err = String;

    fn from_str(text: &str) -> Result<Side, String> {
        let peer = Engine::ALL.into_iter().find(|engine| engine.name() == text).map(Side::Peer);
        let known = peer.or((text == ASSAY).then_some(Side::Assay));
        known.ok_or_else(|| format!("`{text}` is not measured: use assay, duckdb, chdb"))
    }
}

#[derive(Clone, Debug)]
pub struct QueryOptions {
    /// Program of our side, if it is measured.
    pub program: Option<PathBuf>,
    pub rows: u64,
    pub documents: u64,
    /// Ours once more, with so many.
    pub grown: Option<u64>,
    pub sides: Vec<Side>,
    /// The others' Python environment.
    pub environment: Option<PathBuf>,
    /// Folder in which our side stays loaded.
    pub kept: Option<PathBuf>,
    /// Whether ours is queried once more while rows come in.
    pub beside: bool,
    pub seed: u64,
}

/// Facts about the rows that queries name.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Facts {
    traces: Vec<String>,
    big: String,
}

impl Facts {
    fn of(spans: &Spans) -> Facts {
        Facts { traces: spans.traces().to_vec(), big: spans.big_trace().to_owned() }
    }

    /// Returns the texts of a query: one, or one for each looked-up trace.
    fn texts(&self, text: &str) -> Vec<String> {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ").replace("$BIG", &self.big);
        if !text.contains("$TRACE") {
            return vec![text];
        }
        self.traces.iter().map(|trace| text.replace("$TRACE", trace)).collect()
    }
}

pub fn run(options: &QueryOptions, dir: &Path, json_file: Option<&Path>) -> anyhow::Result<()> {
    let environment = match options.sides.iter().any(|side| matches!(side, Side::Peer(_))) {
        true => Some(Environment::made(options.environment.clone())?),
        false => None,
    };
    let mut measured = Vec::new();
    if options.sides.contains(&Side::Assay) {
        let home = options.kept.clone().unwrap_or_else(|| dir.join(ASSAY));
        measured.push(ours(options, &home, environment.as_ref())?);
    }
    if let Some(environment) = &environment {
        let files = Lines::write(options, dir)?;
        for engine in Engine::ALL.into_iter().filter(|engine| options.sides.contains(&Side::Peer(*engine))) {
            measured.push(peer(environment, engine, options, &files, dir)?);
        }
        files.remove()?;
    }
    let grown = match options.grown {
        Some(rows) => {
            // Spans alone: that is what grows.
            let alone = QueryOptions { rows, documents: 0, kept: None, beside: false, ..options.clone() };
            Some(ours(&alone, &dir.join("grown"), None)?)
        }
        None => None,
    };
    let differences = differences(&measured);
    let mut report = Report::new("query");
    figures::add(&mut report, &measured, grown.as_ref());
    report.detail("measured", &measured)?;
    report.detail("grown", &grown)?;
    report.detail("differences", &differences)?;
    report.finish(json_file)?;
    print!("{}", figures::table(&measured, grown.as_ref()));
    if !differences.is_empty() {
        bail!("engines gave different answers:\n{}", differences.join("\n"));
    }
    Ok(())
}

fn questions() -> impl Iterator<Item = &'static Question> {
    TRACES.iter().chain(&EVENTS)
}

/// Those about what is there.
fn questions_of(options: &QueryOptions) -> impl Iterator<Item = &'static Question> + use<> {
    let events: &[Question] = if options.documents > 0 { &EVENTS } else { &[] };
    TRACES.iter().chain(events)
}

/// Description of our loaded rows, for another run.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Loaded {
    rows: u64,
    documents: u64,
    seed: u64,
    seconds: f64,
    json_bytes: u64,
    memory: Memory,
    facts: Facts,
    objects: Objects,
}

impl Loaded {
    fn file(home: &Path) -> PathBuf {
        home.join("loaded.json")
    }

    /// Returns the description of a kept folder with the same rows.
    fn of(home: &Path, options: &QueryOptions) -> anyhow::Result<Option<Loaded>> {
        let Ok(text) = std::fs::read(Loaded::file(home)) else { return Ok(None) };
        let loaded: Loaded = serde_json::from_slice(&text)?;
        let same = (loaded.rows, loaded.documents, loaded.seed) == (options.rows, options.documents, options.seed);
        ensure!(same, "{} holds other rows", home.display());
        Ok(Some(loaded))
    }

    fn new(ours: &Ours, options: &QueryOptions) -> anyhow::Result<Loaded> {
        let documents = Documents::new(options.seed, options.documents, Wrapped::Row);
        let (objects, began) = (ours.objects.clone(), Instant::now());
        let spans = ours.insert("project_logs", &objects.log, Spans::new(options.seed, options.rows))?;
        let (spans, mut json_bytes) = (spans.feed, spans.bytes);
        for (number, experiment) in (0..).zip(&objects.experiments) {
            json_bytes += ours.insert("experiment", experiment, Trials::new(options.seed, number))?.bytes;
        }
        json_bytes += ours.insert("project_logs", &objects.events, documents)?.bytes;
        let seconds = began.elapsed().as_secs_f64();
        let (facts, memory) = (Facts::of(&spans), ours.server().process().memory()?);
        let QueryOptions { rows, documents, seed, .. } = *options;
        Ok(Loaded { rows, documents, seed, seconds, json_bytes, memory, facts, objects })
    }
}

fn ours(options: &QueryOptions, home: &Path, looker: Option<&Environment>) -> anyhow::Result<EngineMeasurement> {
    let program = options.program.as_ref().context("the program assay")?;
    std::fs::create_dir_all(home).with_context(|| format!("creating {}", home.display()))?;
    let dir = home.join("data");
    let (rows, loaded) = (options.rows, Loaded::of(home, options)?);
    let mut ours = Ours::start(program, &dir, loaded.as_ref().map(|loaded| &loaded.objects))?;
    let loaded = loaded.map_or_else(|| Loaded::new(&ours, options), Ok)?;
    eprintln!("{ASSAY}: {rows} spans and the other rows in {:.0} s", loaded.seconds);
    ours.settled()?;
    std::fs::write(Loaded::file(home), serde_json::to_vec(&loaded)?)?;
    let mut measured = EngineMeasurement {
        engine: ASSAY.into(),
        rows,
        load_seconds: loaded.seconds,
        json_bytes: loaded.json_bytes,
        loaded: loaded.memory,
        fixed_bytes: fixed_bytes(&dir)?,
        ..EngineMeasurement::default()
    };
    measured.disk_bytes = bytes_below(&dir)?.saturating_sub(measured.fixed_bytes);
    for question in questions_of(options) {
        let texts = loaded.facts.texts(&named(question.ours, &loaded.objects));
        let (times, answers) = if question.name == EXPORT {
            export(&mut ours, &texts[0], &dir, looker)?
        } else {
            ours.ask(&texts, Runs::USUAL).with_context(|| question.name)?
        };
        eprintln!("{ASSAY}: {}: {:.2} ms", question.name, times.p50());
        measured.times.insert(question.name, times);
        measured.answers.insert(question.name, answers);
    }
    measured.asked = ours.server().process().memory()?;
    if options.beside {
        measured.beside = Some(beside(&mut ours, options, &loaded)?);
    }
    ours.stop()?;
    if options.kept.as_deref() != Some(home) {
        std::fs::remove_dir_all(home).with_context(|| format!("removing {}", home.display()))?;
    }
    Ok(measured)
}

/// The questions again, but for the export, while rows come in at half of the pace at which all were loaded.
fn beside(ours: &mut Ours, options: &QueryOptions, loaded: &Loaded) -> anyhow::Result<measurements::InsertTimes> {
    let wanted = loaded.json_bytes as f64 / loaded.seconds / 2.0;
    let inserting = ours.insert_beside(Spans::new(options.seed + 1, BESIDE_ROWS), wanted)?;
    let mut times = BTreeMap::new();
    for question in questions_of(options).filter(|question| question.name != EXPORT) {
        let texts = loaded.facts.texts(&named(question.ours, &loaded.objects));
        let (asked, _) = ours.ask(&texts, Runs::USUAL).with_context(|| question.name)?;
        eprintln!("{ASSAY}: {} beside inserts: {:.2} ms", question.name, asked.p50());
        times.insert(question.name, asked);
    }
    Ok(measurements::InsertTimes { wanted, taken: inserting.end()?, times })
}

/// Returns the fixed bytes: our log is overwritten within its budget, and beside it is a file that reserves space for a
/// full disk.
fn fixed_bytes(data_dir: &Path) -> anyhow::Result<u64> {
    let ballast = std::fs::metadata(data_dir.join("BALLAST")).map_or(0, |about| about.len());
    Ok(bytes_below(&data_dir.join("log"))? + ballast)
}

fn named(text: &str, objects: &Objects) -> String {
    let [base, changed] = &objects.experiments;
    let text = text.replace("$LOG", &objects.log).replace("$EVENTS", &objects.events);
    text.replace("$BASE", base).replace("$CHANGED", changed)
}

fn export(
    ours: &mut Ours,
    text: &str,
    dir: &Path,
    looker: Option<&Environment>,
) -> anyhow::Result<(measurements::Times, Vec<QueryResult>)> {
    let (times, files) = ours.export(text, &dir.with_extension("export"), Runs::EXPORT).context(EXPORT)?;
    let looked = looker.map(|looker| looker.look(&files)).transpose()?;
    files.iter().try_for_each(std::fs::remove_file)?;
    Ok((times, Vec::from_iter(looked)))
}

/// The files that the others load, and what is in them.
struct Lines {
    files: Files,
    facts: Facts,
    bytes: u64,
}

impl Lines {
    fn write(options: &QueryOptions, dir: &Path) -> anyhow::Result<Lines> {
        let at = |name: &str| dir.join(name);
        let files = Files {
            spans: at("spans.ndjson"),
            trials: [at("trials-a.ndjson"), at("trials-b.ndjson")],
            events: at("events.ndjson"),
        };
        let mut spans = Spans::new(options.seed, options.rows);
        let mut bytes = write_lines(&mut spans, &files.spans)?;
        for (experiment, path) in (0..).zip(&files.trials) {
            bytes += write_lines(&mut Trials::new(options.seed, experiment), path)?;
        }
        let mut events = Documents::new(options.seed, options.documents, Wrapped::No);
        bytes += write_lines(&mut events, &files.events)?;
        Ok(Lines { files, facts: Facts::of(&spans), bytes })
    }

    /// They are as large as all that was loaded.
    fn remove(self) -> anyhow::Result<()> {
        let Files { spans, trials: [one, other], events } = self.files;
        Ok([spans, one, other, events].iter().try_for_each(std::fs::remove_file)?)
    }
}

fn peer(
    environment: &Environment,
    engine: Engine,
    options: &QueryOptions,
    lines: &Lines,
    dir: &Path,
) -> anyhow::Result<EngineMeasurement> {
    let home = dir.join(engine.name());
    let mut loader = environment.start(engine, &home)?;
    let load_seconds = loader.load(&lines.files)?;
    let loaded = loader.process().memory()?;
    let version = loader.version()?;
    loader.stop()?;
    eprintln!("{}: loaded in {load_seconds:.0} s", engine.name());
    let mut measured = EngineMeasurement {
        engine: engine.name().into(),
        version,
        rows: options.rows,
        load_seconds,
        loaded,
        json_bytes: lines.bytes,
        disk_bytes: bytes_below(&home)?,
        ..EngineMeasurement::default()
    };
    // Another process, which has nothing left of loading.
    let mut peer = environment.start(engine, &home)?;
    for question in questions() {
        let (times, answers) = if question.name == EXPORT {
            export_of(&mut peer, engine, environment, dir)?
        } else {
            let text = if engine == Engine::DuckDb { question.duckdb } else { question.clickhouse };
            peer.ask(&lines.facts.texts(text), Runs::USUAL).with_context(|| question.name)?
        };
        eprintln!("{}: {}: {:.2} ms", engine.name(), question.name, times.p50());
        measured.times.insert(question.name, times);
        measured.answers.insert(question.name, answers);
    }
    measured.asked = peer.process().memory()?;
    peer.stop()?;
    std::fs::remove_dir_all(&home).with_context(|| format!("removing {}", home.display()))?;
    Ok(measured)
}

fn export_of(
    peer: &mut Peer,
    engine: Engine,
    environment: &Environment,
    dir: &Path,
) -> anyhow::Result<(measurements::Times, Vec<QueryResult>)> {
    let file = dir.join(format!("{}.parquet", engine.name()));
    let question = questions().find(|question| question.name == EXPORT).context(EXPORT)?;
    let text = if engine == Engine::DuckDb { question.duckdb } else { question.clickhouse };
    let text = text.replace("$FILE", &file.to_string_lossy());
    let times = peer.write(&text, &file, Runs::EXPORT).context(EXPORT)?;
    let looked = environment.look(std::slice::from_ref(&file))?;
    std::fs::remove_file(&file)?;
    Ok((times, vec![looked]))
}

/// Returns each query with different results, with the first differing row; every engine is compared with the first
/// one.
fn differences(measured: &[EngineMeasurement]) -> Vec<String> {
    let Some((first, others)) = measured.split_first() else { return Vec::new() };
    let mut found = Vec::new();
    for (question, other) in questions().flat_map(|question| others.iter().map(move |other| (question, other))) {
        let of = |one: &EngineMeasurement| one.answers.get(question.name).cloned().unwrap_or_default();
        let (own, others) = (of(first), of(other));
        let pairs = own.iter().zip(&others);
        let mut said = pairs.filter_map(|(own, others)| difference(own, others, question.is_ordered));
        let said = if own.len() == others.len() { said.next() } else { Some("not all was answered".into()) };
        found.extend(said.map(|said| format!("{}: {} and {}: {said}", question.name, first.engine, other.engine)));
    }
    found
}

#[cfg(test)]
mod tests;
