//! References to functions in a request (functions.md 2.2), which stay JSON for the resolution.

use serde_json::{Map, Value};

use super::members::{EvalRequestError, Members, kind};

/// Upper bound of the scorers of one eval.
pub const EVAL_SCORERS_MAX: usize = 256;

const REFERENCE: &str = "a function: `function_id`, `project_name` or `project_id` with `slug`, `global_function`, \
     `prompt_session_id` with `prompt_session_function_id`, `inline_context` with `code`, `inline_function` or \
     `inline_prompt`";
const SCORERS: &str = "an array of at most 256 functions";
const CONTEXT: &str = "an object with `runtime` and `version`";
const RUNTIME: &str = "node, python, browser or quickjs";
const CODE: &str = "a string with the code";
const INLINE: &str = "an object";
const FUNCTION_TYPE: &str =
    "llm, scorer, task, tool, custom_view, preprocessor, facet, classifier, tag, parameters or sandbox";
const ONE_VERSION: &str = "absent beside `environment`";

const RUNTIMES: [&str; 4] = ["node", "python", "browser", "quickjs"];
const FUNCTION_TYPES: [&str; 11] = [
    "llm",
    "scorer",
    "task",
    "tool",
    "custom_view",
    "preprocessor",
    "facet",
    "classifier",
    "tag",
    "parameters",
    "sandbox",
];

/// Form in which a request names a function. The first form that applies counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvalFunctionForm {
    Id,
    ProjectSlug,
    Global,
    PromptSession,
    InlineCode,
    InlineFunction,
    InlinePrompt,
}

/// Checked reference to a function, with all of its members as sent.
#[derive(Clone, Debug, PartialEq)]
pub struct EvalFunction {
    pub form: EvalFunctionForm,
    pub reference: Map<String, Value>,
}

impl EvalFunction {
    pub(crate) fn read(body: &Members<'_>, name: &str) -> Result<EvalFunction, EvalRequestError> {
        let value = body.get(name).ok_or_else(|| body.invalid(name, REFERENCE))?;
        EvalFunction::of_value(value, &body.path(name))
    }

    pub(crate) fn read_scorers(body: &Members<'_>) -> Result<Vec<EvalFunction>, EvalRequestError> {
        match body.get("scores") {
            Some(Value::Array(listed)) if listed.len() <= EVAL_SCORERS_MAX => {
                let listed = listed.iter().enumerate();
                listed.map(|(index, value)| EvalFunction::of_value(value, &format!("scores.{index}"))).collect()
            }
            _ => Err(body.invalid("scores", SCORERS)),
        }
    }

    fn of_value(value: &Value, path: &str) -> Result<EvalFunction, EvalRequestError> {
        let invalid = |found: &str| EvalRequestError { member: path.into(), found: found.into(), valid: REFERENCE };
        let reference = value.as_object().ok_or_else(|| invalid(kind(value)))?;
        let members = Members::new(reference, path);
        if members.text("version")?.is_some() && members.text("environment")?.is_some() {
            return Err(members.invalid("version", ONE_VERSION));
        }
        if let Some(function_type) = members.text("function_type")?
            && !FUNCTION_TYPES.contains(&function_type.as_str())
        {
            return Err(members.invalid("function_type", FUNCTION_TYPE));
        }
        members.text("name")?;
        let form = form(&members)?.ok_or_else(|| invalid("an object that names no function"))?;
        Ok(EvalFunction { form, reference: reference.clone() })
    }
}

fn form(members: &Members<'_>) -> Result<Option<EvalFunctionForm>, EvalRequestError> {
    let has = |name: &str| members.text(name).map(|text| text.is_some());
    if has("function_id")? {
        return Ok(Some(EvalFunctionForm::Id));
    }
    if has("slug")? && (has("project_name")? || has("project_id")?) {
        return Ok(Some(EvalFunctionForm::ProjectSlug));
    }
    if has("global_function")? {
        return Ok(Some(EvalFunctionForm::Global));
    }
    if has("prompt_session_id")? && has("prompt_session_function_id")? {
        return Ok(Some(EvalFunctionForm::PromptSession));
    }
    inline_form(members)
}

fn inline_form(members: &Members<'_>) -> Result<Option<EvalFunctionForm>, EvalRequestError> {
    if let Some(context) = members.get("inline_context") {
        let context = context.as_object().ok_or_else(|| members.invalid("inline_context", CONTEXT))?;
        let path = members.path("inline_context");
        let context = Members::new(context, &path);
        if !context.text("runtime")?.is_some_and(|runtime| RUNTIMES.contains(&runtime.as_str())) {
            return Err(context.invalid("runtime", RUNTIME));
        }
        if context.text("version")?.is_none() {
            return Err(context.invalid("version", "a string, such as `22`"));
        }
        return match members.get("code") {
            Some(Value::String(_)) => Ok(Some(EvalFunctionForm::InlineCode)),
            _ => Err(members.invalid("code", CODE)),
        };
    }
    let mut found = None;
    for (name, form) in
        [("inline_prompt", EvalFunctionForm::InlinePrompt), ("inline_function", EvalFunctionForm::InlineFunction)]
    {
        match members.get(name) {
            None => {}
            Some(Value::Object(_)) => found = Some(form),
            Some(_) => return Err(members.invalid(name, INLINE)),
        }
    }
    Ok(found)
}
