//! Request to run an eval, read from the body of `POST /v1/eval` (functions.md 8.1).

mod data;
mod experiment;
mod function;
mod members;
mod messages;
mod parent;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};
use uuid::Uuid;

pub use data::{EvalData, EvalDataset, EvalDatasetName, EvalDatasetVersion, EvalExperimentName, EvalSourceExperiment};
pub use experiment::{EVAL_TAGS_MAX, EvalBase, EvalExperiment};
pub(crate) use experiment::{TAGS, tags};
pub use function::{EVAL_SCORERS_MAX, EvalFunction, EvalFunctionForm};
pub use members::{EVAL_TEXT_BYTES_MAX, EvalRequestError};
pub(crate) use members::{Members, kind};
pub use messages::{EXTRA_MESSAGES_MAX, ExtraMessagesError, MessagePath};
pub use parent::{EVAL_PARENT_BYTES_MAX, EvalParent, EvalParentSpan, EvalTarget, EvalTargetType};

/// Upper bound of the cases of one eval that run at the same time.
pub const CONCURRENCY_MAX: u32 = 256;
/// Default of the cases of one eval that run at the same time.
pub const CONCURRENCY_DEFAULT: u32 = 10;
/// Upper bound of the trials of each case.
pub const TRIALS_MAX: u32 = 100;
/// Upper bound of the time limit of an eval: seven days.
pub const TIMEOUT_MS_MAX: u64 = 7 * 24 * 3_600_000;

const CONCURRENCY: &str = "a whole number from 1, or null for as many as allowed";
const TRIALS: &str = "a whole number from 1 to 100, or null for 1";
const TIMEOUT: &str = "whole milliseconds from 1 to 604800000, or null for no limit";
const PATH: &str = "a dotted path without empty parts, such as `input.messages`";
const MCP_AUTH: &str = "an object of objects with an optional string `oauth_token`";

/// Request to run an eval.
#[derive(Clone, Debug, PartialEq)]
pub struct EvalRequest {
    pub project_id: Uuid,
    pub data: EvalData,
    pub task: EvalFunction,
    pub scores: Vec<EvalFunction>,
    /// Name of the eval within a sandbox or a remote task.
    pub name: Option<String>,
    /// Values that are passed on to the task.
    pub parameters: Map<String, Value>,
    pub experiment: EvalExperiment,
    pub parent: Option<EvalParent>,
    pub limits: EvalLimits,
    pub options: EvalCallOptions,
    /// Whether the caller requests a stream of events.
    pub is_stream: bool,
    pub stop_token: Option<String>,
}

/// Limits of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvalLimits {
    /// Upper bound of the cases that run at the same time.
    pub max_concurrency: u32,
    pub trial_count: u32,
    /// Time limit of the whole run.
    pub timeout_ms: Option<u64>,
}

/// Options of the calls of the task and of the scorers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EvalCallOptions {
    /// Whether a missing template variable is an error.
    pub is_strict: bool,
    /// Credentials by the URL of an MCP server.
    pub mcp_auth: Map<String, Value>,
    pub extra_messages: Option<MessagePath>,
    /// Name of the only provider secret that may be used.
    pub endpoint_name: Option<String>,
}

impl EvalRequest {
    /// Reads the body of a request. Unknown members are ignored.
    pub fn read(mut body: Map<String, Value>) -> Result<EvalRequest, EvalRequestError> {
        let data = EvalData::read(body.remove("data").filter(|data| !data.is_null()))?;
        let body = Members::new(&body, "");
        Ok(EvalRequest {
            project_id: body.required_uuid("project_id")?,
            data,
            task: EvalFunction::read(&body, "task")?,
            scores: EvalFunction::read_scorers(&body)?,
            name: body.text("name")?,
            parameters: body.object("parameters")?.cloned().unwrap_or_default(),
            experiment: EvalExperiment::read(&body)?,
            parent: EvalParent::read(&body)?,
            limits: EvalLimits::read(&body)?,
            options: EvalCallOptions::read(&body)?,
            is_stream: body.flag("stream")?,
            stop_token: body.text("stop_token")?,
        })
    }
}

impl EvalLimits {
    fn read(body: &Members<'_>) -> Result<EvalLimits, EvalRequestError> {
        let max_concurrency = match body.given("max_concurrency") {
            None => CONCURRENCY_DEFAULT,
            Some(Value::Null) => CONCURRENCY_MAX,
            // The member is an upper bound, so a larger number needs no error.
            Some(_) => body
                .whole("max_concurrency", 1..=u64::MAX, CONCURRENCY)?
                .map_or(CONCURRENCY_MAX, |number| number.min(CONCURRENCY_MAX.into()) as u32),
        };
        let trial_count = body.whole("trial_count", 1..=TRIALS_MAX.into(), TRIALS)?.unwrap_or(1) as u32;
        let timeout_ms = body.whole("timeout", 1..=TIMEOUT_MS_MAX, TIMEOUT)?;
        Ok(EvalLimits { max_concurrency, trial_count, timeout_ms })
    }
}

impl EvalCallOptions {
    fn read(body: &Members<'_>) -> Result<EvalCallOptions, EvalRequestError> {
        let path = body.text("extra_messages")?;
        let path = path.map(|path| MessagePath::parse(&path).ok_or_else(|| body.invalid("extra_messages", PATH)));
        Ok(EvalCallOptions {
            is_strict: body.flag("strict")?,
            mcp_auth: mcp_auth(body)?,
            extra_messages: path.transpose()?,
            endpoint_name: body.text("endpoint_name")?,
        })
    }
}

fn mcp_auth(body: &Members<'_>) -> Result<Map<String, Value>, EvalRequestError> {
    let is_token = |token: &Value| token.is_null() || token.is_string();
    let is_valid = |value: &Value| value.as_object().is_some_and(|auth| auth.get("oauth_token").is_none_or(is_token));
    match body.get("mcp_auth") {
        None => Ok(Map::new()),
        Some(Value::Object(servers)) if servers.values().all(is_valid) => Ok(servers.clone()),
        Some(_) => Err(body.invalid_secret("mcp_auth", MCP_AUTH)),
    }
}
