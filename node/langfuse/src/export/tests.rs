//! Tests of exports as rows.

use assay_node_otel::{Encoding, Limits, decode};

use super::*;

const TRACE_ID: &str = "0af7651916cd43dd8448eb211c80319c";
const ROOT: &str = "b7ad6b7169203331";
const CHILD: &str = "00f067aa0ba902b7";

fn attribute(name: &str, value: Value) -> Value {
    let value = match value {
        Value::Bool(is) => json!({"boolValue": is}),
        Value::Array(items) => {
            let values: Vec<_> = items.into_iter().map(|item| json!({"stringValue": item})).collect();
            json!({"arrayValue": {"values": values}})
        }
        other => json!({"stringValue": other}),
    };
    json!({"key": name, "value": value})
}

fn span(id: &str, parent: Option<&str>, attributes: &[(&str, Value)]) -> Value {
    let attributes: Vec<_> = attributes.iter().map(|(name, value)| attribute(name, value.clone())).collect();
    json!({
        "traceId": TRACE_ID, "spanId": id, "parentSpanId": parent.unwrap_or_default(), "name": "step",
        "startTimeUnixNano": "1767225600000000000", "endTimeUnixNano": "1767225602000000000", "attributes": attributes,
    })
}

fn rows(spans: &[Value], sdk: SdkVersion) -> Vec<Mapped> {
    let export = json!({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).to_string();
    let export = decode(export.as_bytes(), Encoding::Json, Limits::default()).expect("an export");
    let rows = rows_of_export(export, Uuid::nil(), sdk);
    assert_eq!(rows.rejected, Vec::new());
    rows.taken
}

fn row<'a>(rows: &'a [Mapped], id: &str) -> &'a Value {
    rows.iter().map(|one| &one.row).find(|row| row["id"] == id).unwrap_or_else(|| panic!("{id} is not in {rows:?}"))
}

#[test]
fn a_trace_is_the_root_of_its_spans() {
    let spans = [
        span(
            ROOT,
            None,
            &[
                ("langfuse.observation.type", json!("span")),
                ("langfuse.observation.input", json!("{\"q\":1}")),
                ("langfuse.trace.name", json!("chat")),
                ("user.id", json!("u")),
                ("session.id", json!("s")),
                ("langfuse.trace.tags", json!(["a", "b"])),
                ("langfuse.trace.public", json!(true)),
                ("langfuse.trace.metadata.tier", json!("gold")),
                ("langfuse.environment", json!("staging")),
            ],
        ),
        span(CHILD, Some(ROOT), &[("langfuse.observation.type", json!("generation"))]),
    ];
    let rows = rows(&spans, SdkVersion::default());
    assert_eq!(rows.len(), 3);
    let trace = row(&rows, TRACE_ID);
    assert_eq!((&trace["span_parents"], &trace["span_attributes"]["name"]), (&Value::Null, &json!("chat")));
    assert_eq!((&trace["metadata"]["user_id"], &trace["metadata"]["session_id"]), (&json!("u"), &json!("s")));
    assert_eq!((&trace["tags"], &trace["metadata"]["tier"]), (&json!(["a", "b"]), &json!("gold")));
    let own = &trace["metadata"]["langfuse"];
    assert_eq!((&own["public"], &own["environment"]), (&json!(true), &json!("staging")));
    assert_eq!((&trace["input"], &trace["metrics"]["start"]), (&json!({"q": 1}), &json!(1_767_225_600.0)));
    let root = row(&rows, &format!("{TRACE_ID}-{ROOT}"));
    assert_eq!((&root["span_parents"], root.get("tags")), (&json!([TRACE_ID]), None));
    assert_eq!(root["metadata"].get("user.id"), None, "names of attributes are not repeated");
    let child = row(&rows, &format!("{TRACE_ID}-{CHILD}"));
    assert_eq!((&child["span_parents"], &child["_is_merge"]), (&json!([ROOT]), &json!(true)));
    assert_eq!(child["metadata"]["langfuse"]["type"], "GENERATION");
}

#[test]
fn a_generation_keeps_its_details_beside_its_metrics() {
    let spans = [span(
        ROOT,
        None,
        &[
            ("langfuse.observation.type", json!("generation")),
            ("langfuse.observation.model.name", json!("m")),
            ("langfuse.observation.model.parameters", json!("{\"temperature\":0.5}")),
            ("langfuse.observation.usage_details", json!("{\"input\":3,\"output\":4}")),
            ("langfuse.observation.cost_details", json!("{\"total\":0.5}")),
            ("langfuse.observation.completion_start_time", json!("\"2026-01-01T00:00:00.500000Z\"")),
            ("langfuse.observation.level", json!("ERROR")),
            ("langfuse.observation.status_message", json!("late")),
        ],
    )];
    let rows = rows(&spans, SdkVersion::default());
    let one = row(&rows, &format!("{TRACE_ID}-{ROOT}"));
    assert_eq!((&one["metadata"]["model"], &one["metadata"]["temperature"]), (&json!("m"), &json!(0.5)));
    assert_eq!((&one["metrics"]["tokens"], &one["metrics"]["estimated_cost"]), (&json!(7), &json!(0.5)));
    assert_eq!((&one["metrics"]["time_to_first_token"], &one["error"]), (&json!(0.5), &json!("late")));
    assert_eq!(one["metadata"]["langfuse"]["usage_details"], json!({"input": 3, "output": 4}));
}

#[test]
fn metadata_is_decoded_as_its_sdk_encodes_it() {
    let values = [
        ("langfuse.observation.metadata.text", json!("\"123\"")),
        ("langfuse.observation.metadata.number", json!("123")),
        ("langfuse.observation.metadata.model", json!("\"mine\"")),
        ("langfuse.observation.metadata.map", json!("{\"a\":[1]}")),
    ];
    let newer = SdkVersion::of(Some("python"), Some("5.0.4"));
    let one = rows(&[span(ROOT, None, &values)], newer);
    let one = row(&one, &format!("{TRACE_ID}-{ROOT}"));
    let sent = json!({"map": {"a": [1]}, "model": "mine", "number": 123, "text": "123"});
    assert_eq!(metadata::read(one), sent);
    let older = rows(&[span(ROOT, None, &values)], SdkVersion::of(Some("javascript"), Some("5.11.1")));
    let older = metadata::read(row(&older, &format!("{TRACE_ID}-{ROOT}")));
    assert_eq!((&older["number"], &older["map"]), (&json!("123"), &json!({"a": [1]})));
}

#[test]
fn a_span_that_its_sdk_calls_a_root_is_below_the_trace() {
    for name in ["langfuse.internal.as_root", "langfuse.internal.is_app_root"] {
        let rows = rows(&[span(CHILD, Some(ROOT), &[(name, json!(true))])], SdkVersion::default());
        assert_eq!(row(&rows, &format!("{TRACE_ID}-{CHILD}"))["span_parents"], json!([TRACE_ID]));
        assert_eq!(row(&rows, TRACE_ID)["span_attributes"]["name"], "step");
    }
}

#[test]
fn the_root_of_an_item_is_a_row_of_its_experiment() {
    let dataset = Uuid::from_u128(7);
    let attributes = [
        ("langfuse.observation.output", json!("out")),
        ("langfuse.experiment.id", json!("made-up")),
        ("langfuse.experiment.name", json!("run 1")),
        ("langfuse.experiment.dataset.id", json!(dataset.to_string())),
        ("langfuse.experiment.item.id", json!("item")),
        ("langfuse.experiment.item.expected_output", json!("\"want\"")),
        ("langfuse.experiment.item.root_observation_id", json!(ROOT)),
    ];
    let rows = rows(&[span(ROOT, None, &attributes), span(CHILD, Some(ROOT), &attributes)], SdkVersion::default());
    let object = ParentObject::ExperimentNamed { project: Uuid::nil(), name: "run 1".into(), dataset: Some(dataset) };
    let of_experiment: Vec<_> =
        rows.iter().filter(|one| one.parent.as_ref().is_some_and(|parent| parent.object == object)).collect();
    assert_eq!(of_experiment.len(), 1, "only the root of the item is a row");
    let found = &of_experiment[0].row;
    assert_eq!((&found["id"], &found["span_parents"]), (&json!(TRACE_ID), &Value::Null));
    assert_eq!(
        (&found["output"], &found["expected"], &found["origin"]["id"]),
        (&json!("out"), &json!("want"), &json!("item"))
    );
}
