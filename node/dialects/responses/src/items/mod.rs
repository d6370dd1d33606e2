//! Items of `input` and `output`, and their parts.

mod content;
mod read;
mod reasoning;
mod write;

pub(super) use content::{MESSAGE_MARK, put_signature, read_part, write_input_part};
pub(super) use read::{ResponsesItem, empty_message, mark_message, read_item, wrap_content};
pub(super) use reasoning::{SUMMARY_GAP, read_reasoning, write_reasoning};
pub(super) use write::{
    begins_item, is_message_part, message_mark, wrapped_content, write_call, write_input_content, write_result,
};
