//! Results of other forms: classifications, facets and tags, and judges that read a trace.

use assay_test_providers::ProviderServer;
use serde_json::json;

use super::fixture::{EGRESS, ScoringNode, ScoringProject, online, row, send_to};

#[test]
fn results_go_where_their_form_belongs() {
    let node = ScoringNode::start(&[&format!("egress.allow={EGRESS}"), "gateway.facet_model=scripted"]);
    let provider = ProviderServer::start().unwrap_or_else(|error| panic!("{error:#}"));
    node.provider(&provider.origin(), 0.0);
    facets(&node.another("facets"));
    classes_and_tags(&node.another("classes"));
}

#[test]
fn a_facet_without_a_model_is_refused() {
    let node = ScoringNode::start(&[]);
    let trace = json!({"object_type": "project_logs", "object_id": node.project.id, "root_span_id": "r"});
    let body = json!({"global_function": "Task", "function_type": "facet", "input": {"trace_ref": trace}});
    let answer = send_to(&node.project.url, "POST", "/function/invoke", &body);
    assert_eq!(answer.status, 400, "{}", answer.text());
    assert!(answer.text().contains("gateway.facet_model"), "{}", answer.text());
}

fn facets(project: &ScoringProject) {
    let global = json!({"type": "global", "name": "Task", "function_type": "facet"});
    let data = json!({"type": "facet", "prompt": "echo", "no_match_pattern": "^echo"});
    let stored = project.function("Quiet", "facet", data, json!(null));
    let scope = json!({"scope": {"type": "trace", "idle_seconds": 1}});
    project.rule("traces", online(json!([global, stored]), scope));
    project.insert(json!([row("r", "the answer", "x")]));
    let rows =
        project.wait("both facets", |rows| rows["r"]["facets"].as_object().is_some_and(|found| found.len() == 2));
    let facets = &rows["r"]["facets"];
    assert_eq!(facets["Quiet"], "no_match", "{facets}");
    assert!(facets["Task"].as_str().is_some_and(|text| text.contains("the answer")), "{facets}");
    let spans = project.spans_below("r");
    assert!(spans.len() == 2 && spans.iter().all(|span| span["span_attributes"]["type"] == "facet"), "{spans:?}");
}

fn classes_and_tags(project: &ScoringProject) {
    let schema = |properties: serde_json::Value| {
        let schema = json!({"type": "object", "properties": properties});
        json!({"response_format": {"type": "json_schema", "json_schema": {"name": "class", "schema": schema}}})
    };
    let class = schema(json!({"id": {"type": "string", "enum": ["refund", "other"]}}));
    let of_prompt = |name: &str, kind: &str| {
        let prompt = json!({"prompt": {"type": "chat", "messages": [{"role": "user", "content": "{{output}}"}]},
            "options": {"model": "scripted", "params": class}});
        project.function(name, kind, json!({"type": "prompt"}), prompt)
    };
    let (classifier, tag) = (of_prompt("Kind", "classifier"), of_prompt("Label", "tag"));
    project.rule("classes", online(json!([classifier, tag]), json!({})));
    let mut logged = row("r", "[choose other]", "x");
    logged["tags"] = json!(["own"]);
    project.insert(json!([logged]));
    let rows = project.wait("class and tag", |rows| {
        !rows["r"]["classifications"].is_null() && rows["r"]["tags"].as_array().is_some_and(|tags| tags.len() == 2)
    });
    let class = &rows["r"]["classifications"]["Kind"];
    assert_eq!(class, &json!([{"id": "other", "label": "other"}]));
    assert_eq!(rows["r"]["tags"], json!(["own", "other"]));
    assert!(rows["r"]["scores"].is_null());
    let spans = project.spans_below("r");
    assert!(spans.len() == 2 && spans.iter().all(|span| span["span_attributes"]["type"] == "classifier"), "{spans:?}");
}
