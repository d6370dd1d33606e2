//! Evaluators of uploaded bundles: their lists, their tasks with hooks, their scorers, and whole sandboxes.

use assay_test_api::http::{Request, send};
use serde_json::{Value, json};

use super::fixture::{EvalProject, id_of, of_type, with};

const BUNDLE: &str = r#"
const { Eval } = require("braintrust");
Eval("first", {
  data: () => [],
  task: async (input, hooks) => {
    hooks.meta({ seen: hooks.expected });
    hooks.tags.push("new");
    return [input, hooks.parameters.word ?? null, hooks.trialIndex];
  },
  scores: [
    function close({ output, metadata, tags }) { return { score: metadata.seen === 2 ? 1 : 0, metadata: { tags } }; },
    function late() { throw new Error("broken"); },
  ],
  classifiers: [function kind({ output }) { return { id: "k" + output.length }; }],
});
Eval("second", { data: () => [], task: (input) => input, scores: [] });
"#;

/// Runs everything of the module.
pub fn check(project: &EvalProject) {
    let bundle = upload(project);
    list(project, &bundle);
    functions(project, &bundle);
    sandbox(project, &bundle);
}

/// Uploads the bundle as the clients do, and returns its id.
fn upload(project: &EvalProject) -> String {
    let slot = project.api("POST", "/function/code", &json!({"runtime_context": context()}));
    let url = slot["url"].as_str().expect("an address");
    let target = url.strip_prefix(&project.url).unwrap_or_else(|| panic!("{url} is not at {}", project.url));
    let request = Request {
        method: "PUT".into(),
        target: target.to_owned(),
        headers: vec![("content-encoding".into(), "gzip".into())],
        body: Some(gzip(BUNDLE.as_bytes())),
        declared_length: None,
    };
    let answer = send(&project.url, &request).expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.text());
    slot["bundleId"].as_str().expect("an id").to_owned()
}

fn context() -> Value {
    json!({"runtime": "node", "version": "20"})
}

/// Packs bytes without compression.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).expect("one block");
    let mut packed = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    packed.extend(length.to_le_bytes());
    packed.extend((!length).to_le_bytes());
    packed.extend_from_slice(bytes);
    let mut checksum = u32::MAX;
    for byte in bytes {
        checksum ^= u32::from(*byte);
        for _ in 0..8 {
            checksum = (checksum >> 1) ^ (0xedb8_8320 & (checksum & 1).wrapping_neg());
        }
    }
    packed.extend((!checksum).to_le_bytes());
    packed.extend(u32::from(length).to_le_bytes());
    packed
}

fn list(project: &EvalProject, bundle: &str) {
    let listed = |spec: Value| {
        let body = json!({"sandbox_spec": spec, "runtime_context": context(), "project_id": project.id});
        let answer = project.send("/function/sandbox-list", &body);
        (answer.status, serde_json::from_slice::<Value>(&answer.body).unwrap_or_default())
    };
    let (status, evaluators) = listed(json!({"provider": "lambda", "snapshot_ref": bundle}));
    assert_eq!(status, 200, "{evaluators}");
    assert_eq!(evaluators["first"]["scores"], json!([{"name": "close"}, {"name": "late"}]));
    assert_eq!(evaluators["first"]["classifiers"], json!([{"name": "kind"}]));
    assert_eq!(evaluators["second"], json!({"parameters": null, "scores": [], "classifiers": []}));
    for spec in [json!({"provider": "modal", "snapshot_ref": "x"}), json!({"provider": "lambda"}), json!({})] {
        assert_eq!(listed(spec.clone()).0, 400, "{spec}");
    }
}

fn stored(project: &EvalProject, slug: &str, function_type: &str, bundle: &str, location: &Value) -> Value {
    let data = json!({"type": "bundle", "runtime_context": context(), "bundle_id": bundle, "location": location});
    project.api(
        "POST",
        "/v1/function",
        &json!({"project_id": project.id, "name": slug, "slug": slug,
        "function_type": function_type, "function_data": {"type": "code", "data": data}}),
    )
}

fn roots_of(project: &EvalProject, task: &Value, scores: Value, more: &Value) -> Vec<Value> {
    let data = json!([{"input": "i", "expected": 2, "tags": ["t"]}]);
    let body = json!({"project_id": project.id, "data": {"data": data}, "task": task, "scores": scores});
    let summary = project.run(&with(&body, more));
    let rows = project.rows(&project.experiment(summary["experiment_name"].as_str().expect("a name")));
    of_type(&rows, "eval").into_iter().cloned().collect()
}

/// Task and scorer of an evaluator, each stored as a function, as `braintrust eval --push` stores them.
fn functions(project: &EvalProject, bundle: &str) {
    let at = |position: Value| json!({"type": "experiment", "eval_name": "first", "position": position});
    let task = stored(project, "bundled-task", "task", bundle, &at(json!({"type": "task"})));
    let close = stored(project, "close", "scorer", bundle, &at(json!({"type": "scorer", "index": 0})));
    let kind = stored(project, "kind", "classifier", bundle, &at(json!({"type": "classifier", "index": 0})));
    let scores = json!([{"function_id": id_of(&close)}, {"function_id": id_of(&kind)}]);
    let task = json!({"function_id": id_of(&task)});
    let roots = roots_of(project, &task, scores, &json!({"parameters": {"word": "w"}, "trial_count": 2}));
    assert_eq!(roots.len(), 2);
    for root in &roots {
        let trial = root["output"][2].as_u64().expect("a trial");
        assert!(trial < 2 && root["output"] == json!(["i", "w", trial]), "{root}");
        // What the task left in its hooks is in the row, and its scorers had it.
        assert_eq!((&root["metadata"], &root["tags"]), (&json!({"seen": 2}), &json!(["t", "new"])));
        assert_eq!(root["scores"], json!({"close": 1.0}), "{root}");
        assert_eq!(root["classifications"]["kind"][0]["id"], "k3");
    }
}

/// A sandbox runs the evaluator of its name, with its scorers.
fn sandbox(project: &EvalProject, bundle: &str) {
    let definition = json!({"parameters": null, "scores": [{"name": "close"}, {"name": "late"}], "classifiers": []});
    let location = |provider: &str| {
        json!({"type": "sandbox", "sandbox_spec": {"provider": provider}, "entrypoints": ["first.eval.ts"],
            "eval_name": "first", "evaluator_definition": definition})
    };
    let function = stored(project, "whole", "sandbox", bundle, &location("lambda"));
    let task = json!({"function_id": id_of(&function)});
    let root = &roots_of(project, &task, json!([]), &json!({}))[0];
    assert_eq!((&root["output"], &root["scores"]), (&json!(["i", null, 0]), &json!({"close": 1.0})));
    assert!(root["metadata"]["scorer_errors"]["late"].as_str().is_some_and(|why| why.contains("broken")), "{root}");
    let other = stored(project, "elsewhere", "sandbox", bundle, &location("modal"));
    let body =
        json!({"project_id": project.id, "data": {"data": [1]}, "task": {"function_id": id_of(&other)}, "scores": []});
    let (status, why) = project.refusal(&body);
    assert!(status == 400 && why.contains("`modal`"), "{status}: {why}");
}
