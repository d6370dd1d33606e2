//! Langfuse's public API as rows, records and queries of this server, and back. It depends on no HTTP and no clock.
//!
//! | module | subject |
//! |---|---|
//! | `credential` | pairs of a public and a secret key |
//! | `operation` | operations by method and path |
//! | `export` | spans of an export, with the rows of their traces and experiments |
//! | `event`, `observation` | events of the ingestion endpoint, and the row of an observation |
//! | `score` | scores, as rows of their own and on their targets |
//! | `trace` | traces, sessions and observations from rows |
//! | `query` | queries for rows, and pages |
//! | `prompt` | versions of prompts |
//! | `dataset` | datasets, their items, and runs |
//! | `metadata` | place of metadata and of fields without an equivalent in a row |
//!
//! # Layout
//!
//! A trace is a row whose id is the trace id. It is the root of its spans, so that trace-level fields and scores have a
//! row whose position is known in any order of arrival. A score of an observation awaits the row of its span, because
//! the first write of a row fixes its position in the trace. Rows are merged, so that repeated requests keep scores.

mod credential;
mod dataset;
mod event;
mod export;
mod fields;
mod metadata;
mod observation;
mod operation;
mod prompt;
mod query;
mod score;
mod trace;

pub use credential::{KeyPair, PUBLIC_KEY_PREFIX, public_key};
pub use dataset::{
    NewItem, NewRunItem, dataset_fields, dataset_view, item_row, item_view, run_item_row, run_item_view, run_view,
};
pub use event::{Accepted, EventError, EventRows, IngestionEvent, events_of, rows_of_event};
pub use export::{SdkVersion, experiment_mark, experiment_of_trace, rows_of_export};
pub use fields::{BadField, decoded_segment};
pub use operation::{WireOperation, operation_of};
pub use prompt::{
    NewPrompt, PROMPT_LABEL_DEFAULT, PromptState, VersionChoice, label_list, new_version, prompt_meta, prompt_view,
    with_labels,
};
pub use query::{NumberedPage, PAGE_ROWS_MAX, RowFilter, page_meta};
pub use score::{
    NewScore, ScoreRows, ScoreShape, experiment_target, observation_row, score_removal, score_target, score_view,
};
pub use trace::{observation_v2_view, observation_view, session_view, trace_row_of, trace_view, trace_with_rows};
