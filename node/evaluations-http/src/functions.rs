//! Functions of an evaluation: its task and its scorers, each resolved once and pinned to a version.

use assay_node_evaluations::{EvalFunction, EvalFunctionForm, EvalRequest, EvalScorer, EvalScorerKind};
use assay_node_http::requests::caller::Caller;
use assay_node_http::responses::refusal::Refusal;
use assay_node_invocations::{FunctionKind, InvokeRequest, InvokedFunction};
use assay_node_invocations_http::invocations::function_calls::{refusal_of, resolve_function};
use assay_node_prompts::Prompt;
use serde_json::{Map, Value};

use crate::{remote, sandbox};

/// Functions of an evaluation.
#[derive(Clone, Debug)]
pub struct EvalFunctions {
    pub task: InvokedFunction,
    /// Functions of the scorers, in the order of the plan.
    pub scorers: Vec<InvokedFunction>,
    pub plan: Vec<EvalScorer>,
}

impl EvalFunctions {
    /// Resolves all functions of a request. The caller may read each of them.
    pub async fn resolve(caller: &Caller, request: &EvalRequest) -> Result<EvalFunctions, Refusal> {
        let task = resolved(caller, request, &request.task).await.map_err(|why| named("task", why))?;
        let (task, own) = match sandbox::evaluator_of(&task, request.name.as_deref()) {
            Some(found) => found.map_err(|why| named("task", why))?,
            None => (task, Vec::new()),
        };
        if !remote::is_remote(&task) {
            check_can_run(&task).map_err(|why| named("task", why))?;
        }
        let (mut scorers, mut plan) = (Vec::new(), Vec::new());
        for (index, reference) in request.scores.iter().enumerate() {
            let member = format!("scores.{index}");
            let function = resolved(caller, request, reference).await.map_err(|why| named(&member, why))?;
            let (function, scorer) = scoring(function).map_err(|why| named(&member, why))?;
            scorers.push(function);
            plan.push(scorer);
        }
        for function in own {
            let (function, scorer) = scoring(function).map_err(|why| named("task", why))?;
            scorers.push(function);
            plan.push(scorer);
        }
        Ok(EvalFunctions { task, scorers, plan })
    }

    /// Replaces the references of a body by those to the resolved versions. The scorers of a sandbox follow from its task.
    pub fn pin(&self, request: &EvalRequest, body: &mut Map<String, Value>) {
        body.insert("task".to_owned(), pinned(&self.task, &request.task));
        let scores = self.scorers.iter().zip(&request.scores).map(|(function, reference)| pinned(function, reference));
        body.insert("scores".to_owned(), scores.collect());
    }
}

/// Returns an error with the member of the request that it is about.
fn named(member: &str, why: Refusal) -> Refusal {
    Refusal { message: format!("`{member}`: {}", why.message), ..why }
}

async fn resolved(
    caller: &Caller,
    request: &EvalRequest,
    reference: &EvalFunction,
) -> Result<InvokedFunction, Refusal> {
    let named = InvokeRequest::read(reference.reference.clone(), None).map_err(refusal_of)?;
    let found = resolve_function(caller, Some(request.project_id), (&named.function, &named.version)).await;
    found.map_err(refusal_of)
}

fn check_can_run(function: &InvokedFunction) -> Result<FunctionKind, Refusal> {
    function.kind().map_err(refusal_of)
}

/// Returns a function in its use as a scorer. Functions without a type score.
fn scoring(function: InvokedFunction) -> Result<(InvokedFunction, EvalScorer), Refusal> {
    let kind = EvalScorerKind::of_function_type(function.function_type.as_deref()).ok_or_else(|| {
        let found = function.function_type.as_deref().unwrap_or_default();
        let name = &function.name;
        Refusal::bad(format!("`{name}` is a function of the type {found}; valid are scorer, classifier and tag"))
    })?;
    let running = check_can_run(&function)?;
    let reads_trace = reads_trace(&function, &running);
    let function_type = match kind {
        EvalScorerKind::Scorer => Some("scorer".to_owned()),
        EvalScorerKind::Classifier | EvalScorerKind::Tag => function.function_type.clone(),
    };
    let function = InvokedFunction { function_type, ..function };
    let scorer = EvalScorer { name: function.name.clone(), kind, reads_trace };
    Ok((function, scorer))
}

/// Returns whether a scorer may read the spans of its case.
///
/// Code names the argument that gives access to them. The text of a bundle is unknown here.
fn reads_trace(function: &InvokedFunction, kind: &FunctionKind) -> bool {
    match kind {
        FunctionKind::Prompt => Prompt::read(&function.prompt_data).is_ok_and(|prompt| prompt.mentions_thread()),
        FunctionKind::Global { .. } | FunctionKind::Facet => false,
        FunctionKind::Code => {
            let code = function.function_data["data"]["code"].as_str();
            code.is_none_or(|code| code.contains("trace"))
        }
    }
}

/// Returns the reference to the resolved version of a function.
fn pinned(function: &InvokedFunction, reference: &EvalFunction) -> Value {
    let mut members = match (&function.id, reference.form) {
        (Some(id), _) => Map::from_iter([("function_id".to_owned(), id.as_str().into())]),
        // The row of a playground has versions too.
        (None, EvalFunctionForm::PromptSession) => reference.reference.clone(),
        (None, _) => return Value::Object(reference.reference.clone()),
    };
    if let Some(version) = &function.version {
        members.insert("version".to_owned(), version.as_str().into());
    }
    Value::Object(members)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn function(function_type: Option<&str>, function_data: Value) -> InvokedFunction {
        let function_type = function_type.map(str::to_owned);
        InvokedFunction { name: "f".into(), function_type, function_data, ..InvokedFunction::default() }
    }

    #[test]
    fn a_function_scores_by_its_type() {
        let prompt = || json!({"type": "prompt"});
        for (function_type, used_as) in
            [(None, Some("scorer")), (Some("llm"), Some("scorer")), (Some("tag"), Some("tag")), (Some("tool"), None)]
        {
            let found = scoring(function(function_type, prompt())).ok();
            let found = found.map(|(function, _)| function.function_type.unwrap_or_default());
            assert_eq!(found.as_deref(), used_as, "{function_type:?}");
        }
    }

    #[test]
    fn code_without_the_word_reads_no_trace() {
        let code = |data: Value| {
            let function = function(Some("scorer"), json!({"type": "code", "data": data}));
            scoring(function).expect("a scorer").1.reads_trace
        };
        assert!(!code(json!({"type": "inline", "code": "function handler({output}) { return 1 }"})));
        assert!(code(json!({"type": "inline", "code": "async ({trace}) => trace.getSpans()"})));
        assert!(code(json!({"type": "bundle", "bundle_id": "b"})));
    }

    #[test]
    fn functions_with_versions_are_pinned_and_others_stay() {
        let reference = |form, value: Value| {
            let Value::Object(reference) = value else { panic!("an object") };
            EvalFunction { form, reference }
        };
        let newest = || InvokedFunction { version: Some("7".into()), ..function(None, json!({})) };
        let stored = InvokedFunction { id: Some("i".into()), ..newest() };
        let slug = json!({"project_name": "p", "slug": "s", "environment": "e"});
        let slug = reference(EvalFunctionForm::ProjectSlug, slug);
        assert_eq!(pinned(&stored, &slug), json!({"function_id": "i", "version": "7"}));
        let row = json!({"prompt_session_id": "p", "prompt_session_function_id": "f"});
        let row = reference(EvalFunctionForm::PromptSession, row);
        let expected = json!({"prompt_session_id": "p", "prompt_session_function_id": "f", "version": "7"});
        assert_eq!(pinned(&newest(), &row), expected);
        let global = json!({"global_function": "Levenshtein"});
        let found = pinned(&function(None, json!({})), &reference(EvalFunctionForm::Global, global.clone()));
        assert_eq!(found, global);
    }
}
