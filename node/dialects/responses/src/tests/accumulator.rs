//! Rebuilding of a response from its events, as strict as the accumulators of the official SDKs.

use serde_json::{Value, json};

use super::data;
use assay_node_dialects::SseEvent;

/// Rebuilds the output, and returns it with the last response. Checks the numbers and ids of all events.
pub fn accumulate(events: &[SseEvent]) -> (Value, Value) {
    let mut output: Vec<Value> = Vec::new();
    let mut last = Value::Null;
    for (number, event) in events.iter().enumerate() {
        let event_data = data(event);
        let named = event_data["type"].as_str().expect("has a type");
        assert_eq!(event.event.as_deref(), Some(named));
        assert_eq!(event_data["sequence_number"], json!(number));
        assert_eq!(named == "response.created", number == 0, "{named} at {number}");
        if let Some(response) = event_data.get("response") {
            last = response.clone();
            continue;
        }
        let index = event_data["output_index"].as_u64().expect("has an index") as usize;
        match named {
            "response.output_item.added" => {
                assert_eq!(index, output.len(), "items are announced in their order");
                output.push(event_data["item"].clone());
            }
            "response.output_item.done" => {
                let rebuilt = without_end(&output[index]);
                assert_eq!(rebuilt, without_end(&event_data["item"]), "deltas add up to the item");
                output[index] = event_data["item"].clone();
            }
            named => {
                assert_eq!(event_data["item_id"], output[index]["id"], "{named}");
                apply(named, &mut output[index], &event_data);
            }
        }
    }
    (output.into(), last)
}

/// An item without what only its end tells.
fn without_end(item: &Value) -> Value {
    let mut item = item.clone();
    if let Some(fields) = item.as_object_mut() {
        let is_call = fields["type"] == "function_call";
        for name in ["status", "encrypted_content", "signature", "result"] {
            fields.remove(name);
        }
        if is_call {
            fields.retain(|name, _| ["id", "call_id", "name", "arguments", "type"].contains(&name.as_str()));
        }
        if fields["type"] == "reasoning" {
            fields.retain(|name, _| ["id", "summary", "type"].contains(&name.as_str()));
            // parts of a summary are streamed as one
            let texts = fields["summary"].as_array().expect("is a list").iter().map(|part| part["text"].as_str());
            let joined = texts.collect::<Option<Vec<_>>>().expect("are texts").join("\n\n");
            fields.insert("summary".into(), joined.into());
        }
    }
    item
}

fn apply(named: &str, item: &mut Value, event: &Value) {
    let at = |name: &str| event[name].as_u64().expect("has an index") as usize;
    let append = |text: &mut Value, delta: &Value| {
        *text = format!("{}{}", text.as_str().expect("is a text"), delta.as_str().expect("is a text")).into();
    };
    match named {
        "response.content_part.added" => {
            let content = item["content"].as_array_mut().expect("is a message");
            assert_eq!(at("content_index"), content.len());
            content.push(event["part"].clone());
        }
        "response.content_part.done" => item["content"][at("content_index")] = event["part"].clone(),
        "response.output_text.delta" => append(&mut item["content"][at("content_index")]["text"], &event["delta"]),
        "response.output_text.done" => {
            assert_eq!(item["content"][at("content_index")]["type"], "output_text");
            assert_eq!(item["content"][at("content_index")]["text"], event["text"]);
        }
        "response.refusal.delta" => append(&mut item["content"][at("content_index")]["refusal"], &event["delta"]),
        "response.refusal.done" => assert_eq!(item["content"][at("content_index")]["refusal"], event["refusal"]),
        "response.function_call_arguments.delta" => append(&mut item["arguments"], &event["delta"]),
        "response.function_call_arguments.done" => {
            assert_eq!(item["arguments"], event["arguments"]);
            assert_eq!(item["name"], event["name"]);
        }
        "response.reasoning_summary_part.added" => {
            let summary = item["summary"].as_array_mut().expect("is reasoning");
            assert_eq!(at("summary_index"), summary.len());
            summary.push(event["part"].clone());
        }
        "response.reasoning_summary_text.delta" => {
            append(&mut item["summary"][at("summary_index")]["text"], &event["delta"]);
        }
        "response.reasoning_summary_text.done" => {
            assert_eq!(item["summary"][at("summary_index")]["text"], event["text"]);
        }
        "response.reasoning_summary_part.done" => {
            assert_eq!(item["summary"][at("summary_index")], event["part"]);
        }
        other => panic!("{other} is unknown"),
    }
}
