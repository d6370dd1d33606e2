//! Tests of a configuration on recent rows. The functions run with the rights of the caller, and nothing is written.

use assay_node_http::requests::caller::Call;
use assay_node_http::responses::refusal::Refusal;
use assay_node_objects::RowHome;
use assay_node_online_scoring::{
    FinishedRun, InputDigest, OnlineFunction, OpenTrigger, RuleScope, RuleTestRequest, ScoringTarget, TriggerPlace,
    TriggerProgress, TriggerScope, TriggerSource, scorer_input,
};
use assay_storage_model::ObjectKey;
use futures::StreamExt;
use serde_json::{Map, Value, json};

use super::row_search::RowSearch;
use crate::inputs::RunInput;
use crate::run::{FunctionCall, now_ms};

/// Functions that a test runs at the same time.
const AT_ONCE_MAX: usize = 4;

/// Returns one result for each row and function.
pub(super) async fn results(call: &Call, object: ObjectKey, request: &RuleTestRequest) -> Result<Vec<Value>, Refusal> {
    let search =
        RowSearch { object, config: &request.config, filter: None, from_ms: None, to_ms: None, limit: request.limit };
    let ids = search.ids(call).await?;
    let home = RowHome { object, org: object.org, project_id: object.id };
    let rows = call.objects().rows(&home, ids, None).await?;
    let mut runs = Vec::new();
    for row in rows {
        let row: Map<String, Value> = serde_json::from_slice(&row).map_err(Refusal::internal)?;
        let Some(target) = ScoringTarget::of_row(&row) else { continue };
        let scope = scope_of(&request.config.scope, &row);
        for function in &request.config.functions {
            let input = RunInput {
                arguments: scorer_input(&row),
                digest: InputDigest::of_row(&row),
                root_span_ids: vec![target.root_span_id.clone()],
                target: target.clone(),
                other_targets: Vec::new(),
                token: None,
                earlier: None,
            };
            runs.push(result(call, object, (function, scope.clone()), input));
        }
    }
    Ok(futures::stream::iter(runs).buffered(AT_ONCE_MAX).collect().await)
}

fn scope_of(scope: &RuleScope, row: &Map<String, Value>) -> TriggerScope {
    match scope {
        RuleScope::Span(_) => TriggerScope::Span,
        RuleScope::Trace { .. } => TriggerScope::Trace,
        RuleScope::Group(group) => TriggerScope::Group {
            key: group.group_by.text().to_owned(),
            value: group.group_by.value(row).unwrap_or_default(),
        },
    }
}

/// Runs one function, and returns what it would write.
async fn result(
    call: &Call,
    object: ObjectKey,
    (function, scope): (&OnlineFunction, TriggerScope),
    input: RunInput,
) -> Value {
    let started_ms = now_ms();
    let called = FunctionCall { object, function, scope: &scope, input: &input }.run(call, None).await;
    let place = TriggerPlace { row_id: input.target.row_id.clone(), key: function.key() };
    let trigger = OpenTrigger {
        place,
        function: function.clone(),
        scope,
        run_key: None,
        triggered_xact: 0,
        digest: Some(input.digest),
        rules: Vec::new(),
        source: TriggerSource::Manual,
        requested_by: None,
        skips_logging: false,
        progress: TriggerProgress::pending(0, 0),
        seen_xact: 0,
    };
    let run = FinishedRun {
        trigger: &trigger,
        digest: input.digest,
        function_name: &called.function_name,
        form: called.form,
        input: &input.arguments,
        target: &input.target,
        other_targets: &[],
        token: None,
        started_ms,
        ended_ms: now_ms(),
        result: called.result,
    };
    let effects = run.effects();
    let span = effects.span.unwrap_or_default();
    let merge = effects.merges.first().cloned().unwrap_or_default();
    json!({
        "row_id": input.target.row_id, "root_span_id": input.target.root_span_id, "function": function.to_json(),
        "name": called.function_name, "output": span["output"], "error": span["error"],
        "scores": merge["scores"], "classifications": merge["classifications"], "facets": merge["facets"],
        "tags": merge["tags"],
    })
}
