//! Importers of other products: their records as rows, datasets, experiments and prompts.
//!
//! ```text
//! source ─> answer ─> ImportSource::page ─> items ─> Planner ─> target steps ─> Assay
//!              ^                                        │
//!              └── next tasks <── ImportState <── tally ┘   (saved once the target has acknowledged the page)
//! ```
//! An import is a stack of tasks. Each task names one request to the source, and its answer becomes items and more
//! tasks. The state is saved after the target has acknowledged all items of a page. A killed import repeats at
//! most one page. All ids follow from the source, so a repeated page changes nothing.
//!
//! | module | subject |
//! |---|---|
//! | `source` | tasks, requests and answers of a source |
//! | `item` | items that sources produce |
//! | `fields` | readers of JSON fields |
//! | `fitting` | fits of rows to what the target accepts |
//! | `ids` | ids and checksums |
//! | `planner` | items as steps of the target, in bounded batches |
//! | `tally` | counts and checksums of an import, and their comparison |
//! | `state` | saved state of an import |
//! | `report` | report for people and programs |
//! | `records` | records of files: lines, arrays, CSV, messages |
//! | `langfuse`, `phoenix`, `mlflow`, `langsmith`, `braintrust`, `otlp`, `table` | the sources |
//!
//! This crate performs no I/O.

mod braintrust;
mod error;
mod fields;
mod fitting;
mod ids;
mod item;
mod langfuse;
mod langsmith;
mod mlflow;
mod openinference;
mod otlp;
mod phoenix;
mod planner;
mod records;
mod report;
mod source;
mod state;
mod table;
mod tally;

pub use braintrust::BraintrustSource;
pub use error::ImportError;
pub use fields::time_text;
pub use ids::row_hash;
pub use item::{
    DatasetRow, ItemHome, NeutralDataset, NeutralExperiment, NeutralItem, NeutralPrompt, NeutralScore, NeutralSpan,
    ScoreValue, SpanRepeat,
};
pub use langfuse::{LangfuseApi, LangfuseExport, LangfuseSource};
pub use langsmith::{LangsmithExport, LangsmithSource};
pub use mlflow::MlflowSource;
pub use otlp::OtlpSource;
pub use phoenix::PhoenixSource;
pub use planner::{
    BATCH_BYTES_MAX, BATCH_ROWS_MAX, DISTINCT_MAX, PROMPT_KEY, PlannedPage, Planner, ROW_BYTES_MAX, TargetObject,
    TargetStep,
};
pub use records::{FileSlice, RECORD_BYTES_MAX, RecordForm, SLICE_BYTES, SLICE_RECORDS_MAX, csv_head, form_of, slice};
pub use report::{ImportReport, markdown};
pub use source::{ImportSource, ImportWindow, SourceAnswer, SourcePage, SourceRequest, SourceTask, TASKS_MAX};
pub use state::{ImportState, StateHeader, source_hash};
pub use table::{ColumnMap, TableSource};
pub use tally::{ObjectTally, Tally, differences};
