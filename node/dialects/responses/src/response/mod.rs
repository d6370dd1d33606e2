//! Whole responses.

mod output;
mod read;
mod status;
mod write;

pub(super) use output::{OutputItem, is_expressible, logprobs_of, write_content};
pub(super) use read::{created_of, read_output_item, take_logprobs, tidy_item};
pub(super) use status::{finish_of, is_cut};
pub(super) use write::{choice_logprobs, in_progress, with_error};
pub use {read::failure, read::read_response, write::write_response};
