//! Templates and their texts as mustache.js 4.2 renders them, without escaping and with JSON for what is no text. Those
//! without a text it refuses.

use assay_node_prompts::{TemplateFormat, TextRenderer};
use serde_json::Value;

#[test]
fn texts_are_those_of_mustache_js() {
    let recorded: Value = serde_json::from_str(include_str!("mustache_js.json")).expect("JSON");
    let cases = recorded["cases"].as_array().expect("a list");
    assert!(cases.len() > 300);
    for case in cases {
        let template = case[0].as_str().expect("a template");
        let rendered = TextRenderer::new(TemplateFormat::Mustache, &recorded["variables"], false).render("t", template);
        assert_eq!(rendered.ok().as_deref(), case[1].as_str(), "{template:?}");
    }
}
