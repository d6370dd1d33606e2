//! Plans of a page: its items as steps of the target, and the tally behind them.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value, json};

use crate::error::ImportError;
use crate::fitting::{OUT_OF_RANGE, SCORES_KEY, bytes_of, fit, fitting_id};
use crate::ids::{digits, home_text, row_hash, short_hash};
use crate::item::{
    DatasetRow, ItemHome, NeutralDataset, NeutralExperiment, NeutralItem, NeutralPrompt, NeutralScore, NeutralSpan,
    ScoreValue, SpanRepeat,
};
use crate::source::SourcePage;
use crate::tally::{ObjectTally, Tally};

/// Upper bound of the rows of one request to the target.
pub const BATCH_ROWS_MAX: usize = 200;
/// Upper bound of the bytes of the rows of one request to the target, unless a single row is larger.
pub const BATCH_BYTES_MAX: usize = 2 << 20;
/// Upper bound of a row. Larger inputs and outputs are left out, and the report names them.
pub const ROW_BYTES_MAX: usize = 5 << 20;
/// Upper bound of the rows, traces and scores of an import, whose hashes are in memory.
pub const DISTINCT_MAX: usize = 20_000_000;

/// Object of the target, by its name.
pub type TargetObject = ItemHome;

/// Step of the target. Each may be repeated without a change.
#[derive(Clone, Debug, PartialEq)]
pub enum TargetStep {
    Dataset(NeutralDataset),
    Experiment(NeutralExperiment),
    Rows { object: TargetObject, rows: Vec<Map<String, Value>> },
    Prompt(Box<NeutralPrompt>),
}

/// Plan of a page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlannedPage {
    pub steps: Vec<TargetStep>,
    /// Tally of the import with this page.
    pub tally: Tally,
    /// Hashes that the page adds to the known ones.
    pub known: Vec<u64>,
    pub unmapped: BTreeMap<String, u64>,
}

/// Planner of the pages of one source.
#[derive(Debug)]
pub struct Planner {
    /// Beginning of the ids of rows.
    prefix: String,
    identity: String,
    known: HashSet<u64>,
}

/// Page in the making.
struct Draft<'p> {
    planner: &'p Planner,
    page: PlannedPage,
    added: HashSet<u64>,
    bytes: usize,
}

impl Planner {
    /// Creates a planner. `known` are the hashes of acknowledged pages.
    pub fn new(source: &str, identity: &str, known: HashSet<u64>) -> Planner {
        let prefix = format!("{source}-{}", &digits(&[identity])[..8]);
        Planner { prefix, identity: identity.to_owned(), known }
    }

    /// Returns whether a row of an object is of this import.
    pub fn knows(&self, hash: u64) -> bool {
        self.known.contains(&hash)
    }

    /// Returns the id of a row, which follows from the source, the kind of object and its id there.
    fn row_id(&self, key: &str, row_id: Option<&str>) -> String {
        match row_id {
            Some(id) => fitting_id(id.to_owned(), &digits(&[key])),
            None => format!("{}-{}", self.prefix, digits(&[&self.identity, key])),
        }
    }

    /// Plans a page behind the tally of the pages before.
    pub fn plan(&self, page: SourcePage, tally: &Tally) -> Result<(PlannedPage, Vec<crate::SourceTask>), ImportError> {
        let planned = PlannedPage { tally: tally.clone(), unmapped: page.unmapped, ..PlannedPage::default() };
        let mut draft = Draft { planner: self, page: planned, added: HashSet::new(), bytes: 0 };
        for item in page.items {
            match item {
                NeutralItem::Span(span) => draft.span(*span),
                NeutralItem::Score(score) => draft.score(score),
                NeutralItem::Dataset(dataset) => {
                    draft.page.tally.datasets.entry(dataset.name.clone()).or_default();
                    draft.step(TargetStep::Dataset(dataset));
                }
                NeutralItem::DatasetRow(row) => draft.dataset_row(row),
                NeutralItem::Experiment(experiment) => {
                    draft.page.tally.experiments.entry(experiment.name.clone()).or_default();
                    draft.step(TargetStep::Experiment(experiment));
                }
                NeutralItem::Prompt(prompt) => draft.prompt(prompt),
            }
        }
        if self.known.len() + draft.added.len() > DISTINCT_MAX {
            return Err(ImportError::TooMany { what: "rows, traces and scores", max: DISTINCT_MAX });
        }
        Ok((draft.page, page.next))
    }

    /// Adds the hashes of an acknowledged page.
    pub fn acknowledge(&mut self, page: &PlannedPage) {
        self.known.extend(&page.known);
    }
}

impl Draft<'_> {
    /// Adds a hash, and returns whether it was not known.
    fn is_new(&mut self, hash: u64) -> bool {
        let is_new = !self.planner.known.contains(&hash) && self.added.insert(hash);
        if is_new {
            self.page.known.push(hash);
        }
        is_new
    }

    fn knows(&self, hash: u64) -> bool {
        self.planner.known.contains(&hash) || self.added.contains(&hash)
    }

    fn note(&mut self, what: &str) {
        *self.page.unmapped.entry(what.to_owned()).or_default() += 1;
    }

    fn tally(&mut self, home: &ItemHome) -> &mut ObjectTally {
        let tally = &mut self.page.tally;
        match home {
            ItemHome::Logs => &mut tally.logs,
            ItemHome::Experiment(name) => tally.experiments.entry(name.clone()).or_default(),
            ItemHome::Dataset(name) => tally.datasets.entry(name.clone()).or_default(),
        }
    }

    fn step(&mut self, step: TargetStep) {
        self.page.steps.push(step);
        self.bytes = 0;
    }

    /// Adds a row to the last request, or to a new one.
    fn row(&mut self, home: &ItemHome, row: Map<String, Value>) {
        let bytes = bytes_of(&row);
        if let Some(TargetStep::Rows { object, rows }) = self.page.steps.last_mut()
            && object == home
            && rows.len() < BATCH_ROWS_MAX
            && self.bytes + bytes <= BATCH_BYTES_MAX
        {
            rows.push(row);
            self.bytes += bytes;
            return;
        }
        self.step(TargetStep::Rows { object: home.clone(), rows: vec![row] });
        self.bytes = bytes;
    }

    fn span(&mut self, span: NeutralSpan) {
        let id = self.planner.row_id(&span.key, span.row_id.as_deref());
        if !self.is_new(row_hash(&span.home, &id)) {
            match span.repeat {
                SpanRepeat::Duplicate => self.page.tally.duplicates += 1,
                SpanRepeat::Implied => {}
                SpanRepeat::Added => {
                    let mut row = span.fields;
                    fit(&mut row);
                    row.insert("id".to_owned(), Value::from(id));
                    row.insert("_is_merge".to_owned(), Value::Bool(true));
                    self.row(&span.home, row);
                }
            }
            return;
        }
        if span.home == ItemHome::Logs && self.is_new(short_hash(&["trace", &span.trace])) {
            self.page.tally.traces += 1;
        }
        let mut row = Map::with_capacity(span.fields.len() + 5);
        row.insert("id".to_owned(), Value::from(id.clone()));
        row.insert("span_id".to_owned(), Value::from(fitting_id(span.span, &id)));
        row.insert("root_span_id".to_owned(), Value::from(fitting_id(span.trace, &id)));
        let parents = span.parents.into_iter().map(|parent| fitting_id(parent, "none")).collect::<Vec<_>>();
        row.insert("span_parents".to_owned(), if parents.is_empty() { Value::Null } else { json!(parents) });
        row.extend(span.fields);
        if let Some((dataset, key)) = &span.origin {
            let of_dataset = self.planner.row_id(key, None);
            // The shell replaces the name of the dataset by its id.
            row.insert(
                "origin".to_owned(),
                json!({"object_type": "dataset", "dataset_name": dataset, "id": of_dataset}),
            );
        }
        self.fit(&mut row);
        self.tally(&span.home).add_span(&row);
        let (kind, name) = home_text(&span.home);
        let scores = row.get("scores").and_then(Value::as_object);
        let scored: Vec<String> = scores.into_iter().flatten().map(|(score, _)| score.clone()).collect();
        for score in scored {
            self.is_new(short_hash(&["score", kind, name, &id, &score]));
        }
        self.row(&span.home, row);
    }

    /// Fits a row to the target, and notes what that changes.
    fn fit(&mut self, row: &mut Map<String, Value>) {
        for note in fit(row) {
            self.page.tally.scores_in_metadata += u64::from(note == OUT_OF_RANGE);
            self.note(note);
        }
    }

    fn score(&mut self, score: NeutralScore) {
        let id = self.planner.row_id(&score.target, score.row_id.as_deref());
        if !self.knows(row_hash(&score.home, &id)) {
            return self.note("scores of spans that the source does not have");
        }
        let (kind, name) = home_text(&score.home);
        if !self.is_new(short_hash(&["score id", kind, name, &score.id])) {
            self.page.tally.duplicates += 1;
            return;
        }
        let mut kept = score.details;
        kept.insert("name".to_owned(), Value::from(score.name.clone()));
        let number = match &score.value {
            ScoreValue::Number(number) => {
                kept.insert("value".to_owned(), crate::fields::json_number(*number));
                Some(*number)
            }
            ScoreValue::Text(text) => {
                kept.insert("value".to_owned(), Value::from(text.as_str()));
                None
            }
        };
        let mut row = Map::new();
        row.insert("id".to_owned(), Value::from(id.clone()));
        row.insert("_is_merge".to_owned(), Value::Bool(true));
        row.insert("metadata".to_owned(), json!({SCORES_KEY: {score.id: kept}}));
        match number.filter(|number| (0.0..=1.0).contains(number)) {
            Some(number) if self.is_new(short_hash(&["score", kind, name, &id, &score.name])) => {
                row.insert("scores".to_owned(), json!({&*score.name: crate::fields::json_number(number)}));
                self.tally(&score.home).add_score(&id, &score.name, number);
            }
            Some(_) => {
                self.note("further scores of the same name on a span, which are in its metadata");
                self.page.tally.scores_in_metadata += 1;
            }
            None => {
                self.note(if number.is_some() { OUT_OF_RANGE } else { "scores that are texts, which are in metadata" });
                self.page.tally.scores_in_metadata += 1;
            }
        }
        self.row(&score.home, row);
    }

    fn dataset_row(&mut self, row: DatasetRow) {
        let home = ItemHome::Dataset(row.dataset);
        let id = self.planner.row_id(&row.key, row.row_id.as_deref());
        if !self.is_new(row_hash(&home, &id)) {
            self.page.tally.duplicates += 1;
            return;
        }
        let mut fields = Map::with_capacity(row.fields.len() + 1);
        fields.insert("id".to_owned(), Value::from(id));
        fields.extend(row.fields);
        self.fit(&mut fields);
        self.tally(&home).add_row(&fields);
        self.row(&home, fields);
    }

    fn prompt(&mut self, mut prompt: Box<NeutralPrompt>) {
        // Versions cannot be named by the writer, so that a repeated one is found by its origin.
        let imported = json!({"from": self.planner.prefix, "version": prompt.version, "labels": prompt.labels});
        prompt.metadata.insert(PROMPT_KEY.to_owned(), imported);
        if self.is_new(short_hash(&["prompt", &prompt.name, &prompt.version])) {
            self.page.tally.prompt_versions += 1;
            self.step(TargetStep::Prompt(prompt));
        }
    }
}

/// Key of `metadata` of prompts with their origin.
pub const PROMPT_KEY: &str = "imported";
