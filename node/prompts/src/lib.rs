//! Prompts: a stored prompt and the arguments of an invocation as one chat request, and the value of the answer. Calls
//! nothing: depends on no HTTP, storage or clock.
//!
//! | step | what it does |
//! |---|---|
//! | [`merge_overrides`], [`Prompt::read`] | the stored form with the overrides of the invocation |
//! | [`PromptArguments::variables`], [`thread_variables`] | what templates see |
//! | [`assemble`] | rendered messages, tools and params, which wait for their attachments |
//! | [`ChatDraft::fill`] | the request |
//! | [`Judge::verdict`] | the choice of a judge |
//! | [`ToolLoop`] | rounds with tools that the server runs |
//! | [`answer_value`] | the value of an answer |

mod assembly;
mod attachments;
mod error;
mod judge;
mod messages;
mod modes;
mod mustache;
mod nunjucks;
mod params;
mod prompt;
mod template;
mod text;
mod threads;
mod tool_loop;
mod tools;
mod transcript;
mod variables;

pub use assembly::{ChatDraft, ChatRequest, PromptInvocation, TOOLS_MAX, assemble};
pub use attachments::{ATTACHMENTS_MAX, AttachmentReference, AttachmentSource};
pub use error::{AnswerError, PromptError};
pub use judge::{CHOICES_MAX, JUDGE_ATTEMPTS_MAX, Judge, JudgeForm, JudgeVerdict, NO_MATCH, SELECT_CHOICE, SKIP};
pub use modes::{InvokeMode, answer_value, code_value, is_structured};
pub use mustache::{SECTION_DEPTH_MAX, TAG_NAME_BYTES_MAX};
pub use nunjucks::{ELIFS_MAX, NAMED_ADDITIONS_MAX, TAG_TOKENS_MAX};
pub use params::{ParamNames, PromptCacheMode, SCHEMA_DEPTH_MAX};
pub use prompt::{MESSAGES_MAX, Prompt, PromptBody, ROLES};
pub use template::{RENDER_STEPS_MAX, RENDERED_BYTES_MAX, TEMPLATE_BYTES_MAX, TemplateFormat, TextRenderer};
pub use threads::{THREAD_VARIABLES, TraceReference, add_thread_variables, take_trace, thread_variables};
pub use tool_loop::{CALLS_MAX, PARALLEL_CALLS_MAX, PROMPT_DEPTH_MAX, TOOL_ROUNDS_MAX, ToolCall, ToolLoop, ToolStep};
pub use tools::{TOOL_NAME_CHARS_MAX, ToolCatalog, ToolParameters, ToolSource};
pub use transcript::{THOUGHT_CHARS_MAX, TOOL_CHARS_MAX, transcript};
pub use variables::{OVERRIDE_DEPTH_MAX, PromptArguments, merge_overrides};
