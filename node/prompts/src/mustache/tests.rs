//! Tests of mustache templates, by the behaviour of mustache.js.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::error::PromptError;
use crate::template::{TemplateFormat, TextRenderer};

fn rendered(template: &str, variables: &Value) -> String {
    TextRenderer::new(TemplateFormat::Mustache, variables, false).render("t", template).expect(template)
}

fn refused(template: &str, variables: &Value, is_strict: bool) -> Option<PromptError> {
    TextRenderer::new(TemplateFormat::Mustache, variables, is_strict).render("t", template).err()
}

fn check(variables: Value, cases: &[(&str, &str)]) {
    for (template, expected) in cases {
        assert_eq!(rendered(template, &variables), *expected, "{template}");
    }
}

#[test]
fn values_are_printed_without_escaping_and_objects_as_json() {
    check(
        json!({"t": "<a & \"b\">", "o": {"b": 1, "a": [1, null]}, "l": [1, null], "y": true, "n": 42, "f": 1.0, "z": null}),
        &[
            ("{{t}} {{{t}}} {{&t}}", "<a & \"b\"> <a & \"b\"> <a & \"b\">"),
            ("{{o}}", "{\"b\":1,\"a\":[1,null]}"),
            ("{{{o}}}|{{& o }}", "{\"b\":1,\"a\":[1,null]}|{\"b\":1,\"a\":[1,null]}"),
            ("{{l}} {{y}} {{n}} {{f}}", "[1,null] true 42 1"),
            ("[{{z}}][{{missing}}][{{o.missing}}][{{missing.deep}}]", "[][][][]"),
            ("{{ t\n}}", "<a & \"b\">"),
            ("{{t}}}", "<a & \"b\">}"),
            ("{ {{n}} }", "{ 42 }"),
            ("{{! a\ncomment }}x", "x"),
            ("a{{>partial}}b", "ab"),
        ],
    );
}

#[test]
fn names_are_tried_whole_in_each_context() {
    check(
        json!({
            "a": {"b": 1, "length": 7}, "items": [{"name": "x", "a": {"c": 2}}, {"name": "y"}], "text": "añ𝄞", "": 5,
            "p q": 6, "01": 8,
        }),
        &[
            ("{{a.b}}", "1"),
            ("{{items.0.name}}{{items.1.name}}{{items.2.name}}", "xy"),
            ("{{items.length}} {{text.length}} {{a.length}}", "2 4 7"),
            ("{{text.1}}", "ñ"),
            ("{{items.00.name}}{{items.01}}{{items.-1}}", ""),
            ("{{p q}}", "6"),
            // the Mustache specification would stop at the inner `a`
            ("{{#items}}{{a.b}}{{/items}}", "11"),
            ("{{#items}}{{a.c}};{{/items}}", "2;;"),
            ("{{#text}}[{{length}}][{{text.length}}]{{/text}}", "[][4]"),
            ("{{#items}}{{name}}{{/items}}", "xy"),
        ],
    );
}

#[test]
fn sections_repeat_push_and_disappear() {
    check(
        json!({
            "list": [1, "b", null, [2, 3], {"k": 4}], "empty": [], "object": {"k": 5}, "void": {}, "yes": true, "no": false,
            "null": null, "text": "t", "blank": "", "zero": 0, "minus": -0.0, "one": 1, "k": "outer", "nested": [[1, 2], [3]],
        }),
        &[
            ("{{#list}}<{{.}}>{{/list}}", "<1><b><><[2,3]><{\"k\":4}>"),
            ("{{#list}}{{k}},{{/list}}", "outer,outer,outer,outer,4,"),
            ("{{#object}}{{k}}{{/object}}", "5"),
            ("{{#void}}{{k}}{{/void}}", "outer"),
            ("{{#yes}}{{k}}{{/yes}}", "outer"),
            ("{{#text}}{{.}}{{/text}}{{#one}}{{.}}{{/one}}", "t1"),
            ("{{#nested}}({{#.}}{{.}}{{/.}}){{/nested}}", "(12)(3)"),
            ("{{#empty}}x{{/empty}}{{#no}}x{{/no}}{{#null}}x{{/null}}{{#blank}}x{{/blank}}{{#zero}}x{{/zero}}", ""),
            (
                "{{^empty}}1{{/empty}}{{^no}}2{{/no}}{{^null}}3{{/null}}{{^blank}}4{{/blank}}{{^zero}}5{{/zero}}",
                "12345",
            ),
            ("{{^minus}}1{{/minus}}{{^missing}}2{{/missing}}", "12"),
            ("{{^list}}x{{/list}}{{^object}}x{{/object}}{{^void}}x{{/void}}{{^text}}x{{/text}}", ""),
            ("{{#list.length}}{{.}}{{/list.length}}", "5"),
            ("{{# object }}{{k}}{{/ object }}", "5"),
        ],
    );
}

#[test]
fn a_line_that_holds_only_a_section_or_a_comment_disappears() {
    check(
        json!({"s": [1, 2], "o": {"x": "v"}}),
        &[
            ("a\n{{#s}}\n- {{.}}\n{{/s}}\nb", "a\n- 1\n- 2\nb"),
            ("a\n  {{#s}}  \r\n{{.}};\n\t{{/s}}\r\nb", "a\n1;\n2;\nb"),
            ("a\n {{! comment }} \nb", "a\nb"),
            ("a\n{{=<% %>=}}\n<%o.x%>\n<%={{ }}=%>\n{{o.x}}", "a\nv\nv"),
            ("{{#o}}{{x}}\n{{/o}}\n", "v\n"),
            ("x {{#o}}\ny{{/o}}\n", "x \ny\n"),
            ("{{#o}}\n{{/o}}", ""),
            ("  {{x}}\n", "  \n"),
            ("{{#o}} {{/o}}\nb", "b"),
            ("a\n{{>p}}\nb", "a\nb"),
            ("\n\n{{#o}}\n\n{{/o}}\n\n", "\n\n\n\n"),
        ],
    );
}

#[test]
fn delimiters_change_for_the_rest() {
    check(
        json!({"a": 1}),
        &[
            ("{{=<% %>=}}<%a%> {{a}} <%={{ }}=%>{{a}}", "1 {{a}} 1"),
            ("{{= | | =}}|a|", "1"),
            ("{{=[[ ]]=}}[[{a}]]", "1"),
        ],
    );
}

#[test]
fn broken_templates_are_refused_with_their_position() {
    let cases = [
        ("{{a", "line 1, column 1: unclosed tag"),
        ("x\n {{{a}}", "line 2, column 2: unclosed tag"),
        ("{{=a", "line 1, column 1: unclosed tag"),
        ("{{=a=}}", "line 1, column 1: invalid delimiters \"a\""),
        ("{{#a}}{{#b}}{{/a}}", "line 1, column 13: unclosed section \"b\""),
        ("ü{{#a}}", "line 1, column 2: unclosed section \"a\""),
        ("{{/a}}", "line 1, column 1: unopened section \"a\""),
    ];
    for (template, expected) in cases {
        let why = refused(template, &json!({}), false).expect(template).to_string();
        assert!(why.starts_with(&format!("t: {expected}")), "{template}: {why}");
    }
}

#[test]
fn strict_tests_tags_outside_of_sections_and_takes_null() {
    let variables = json!({"null": null, "a": {"b": [{"c": 1}], "s": "x"}, "none": []});
    let there = [
        "{{null}}",
        "{{a.b.7.c}}",
        "{{a.s.deep}}",
        "{{null.deep}}",
        "{{#missing}}x{{/missing}}",
        "{{.}}",
        "{{a.b.length}}",
        "{{#a}}{{missing}}{{/a}}",
        "{{^missing}}{{other}}{{/missing}}",
    ];
    for template in there {
        assert_eq!(refused(template, &variables, true), None, "{template}");
    }
    let missing = ["missing", "a.missing", "a.b.0.missing", "none.0", "missing.deep"];
    for name in missing {
        for template in [format!("{{{{{name}}}}}"), format!("{{{{&{name}}}}}"), format!("{{{{{{{name}}}}}}}")] {
            let why = refused(&template, &variables, true).expect(&template);
            assert_eq!(why.to_string(), format!("Variable '{name}' does not exist."));
            assert_eq!(refused(&template, &variables, false), None);
        }
    }
}

#[test]
fn messages_are_a_transcript_for_judges_only() {
    let variables = json!({"m": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]});
    let text = |renderer: TextRenderer<'_>| {
        let mut renderer = renderer;
        renderer.render("t", "{{m}}|{{m.0}}").expect("a template")
    };
    let plain = TextRenderer::new(TemplateFormat::Mustache, &variables, false);
    assert!(text(plain).starts_with("[{\"role\":\"user\""));
    let judge = TextRenderer::new(TemplateFormat::Mustache, &variables, false).with_transcripts();
    assert_eq!(text(judge), "User:\n  a\n\nAssistant:\n  b|user: a");
}

#[test]
fn limits_hold() {
    let deep = format!("{}{}", "{{#a}}".repeat(SECTION_DEPTH_MAX + 1), "{{/a}}".repeat(SECTION_DEPTH_MAX + 1));
    let fits = format!("{}{}", "{{#a}}".repeat(SECTION_DEPTH_MAX), "{{/a}}".repeat(SECTION_DEPTH_MAX));
    let long_name = format!("{{{{{}}}}}", "n".repeat(TAG_NAME_BYTES_MAX + 1));
    let items = vec![1; 1000];
    let big = "x".repeat(1 << 20);
    let variables = json!({"a": {}, "i": items, "big": big});
    let cases = [
        (deep.as_str(), "sections nest deeper than 64"),
        (&long_name, "longer than 1024 bytes"),
        ("{{#i}}{{#i}}{{#i}}{{/i}}{{/i}}{{/i}}", "more than 4000000 steps"),
        ("{{#i}}{{big}}{{/i}}", "more than 16777216 bytes of text"),
        ("{{#i}}{{#i}}{{big.length}}{{/i}}{{/i}}", "more than 4000000 steps"),
    ];
    for (template, expected) in cases {
        let why = refused(template, &variables, false).map(|why| why.to_string()).unwrap_or_default();
        assert!(why.contains(expected), "{why}");
    }
    assert_eq!(rendered(&fits, &variables), "");
    let long = "x".repeat(crate::template::TEMPLATE_BYTES_MAX + 1);
    assert!(matches!(refused(&long, &variables, false), Some(PromptError::TooMany { .. })));
}

fn scalars() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[ -~]{0,6}".prop_map(Value::from),
    ]
}

/// Templates that are made of the signs of the language.
fn scraps() -> impl Strategy<Value = String> {
    let scrap = prop_oneof![
        Just("{{"),
        Just("}}"),
        Just("{{{"),
        Just("}}}"),
        Just("#"),
        Just("/"),
        Just("^"),
        Just("="),
        Just("!"),
        Just("a"),
        Just("."),
        Just(" "),
        Just("\n"),
        Just("ü"),
        Just("<% %>"),
        Just("{{#a}}"),
        Just("{{/a}}"),
        Just("&"),
    ];
    proptest::collection::vec(scrap, 0..24).prop_map(|scraps| scraps.concat())
}

proptest! {
    #[test]
    fn a_template_without_tags_is_itself(text in "[^{]{0,80}") {
        prop_assert_eq!(rendered(&text, &json!({"a": 1})), text);
    }

    #[test]
    fn a_section_is_the_concatenation_of_its_items(items in proptest::collection::vec(scalars(), 0..8)) {
        let expected: String = items.iter().map(|item| rendered("<{{.}}>", item)).collect();
        let variables = json!({"items": items});
        prop_assert_eq!(rendered("{{#items}}<{{.}}>{{/items}}", &variables), expected);
    }

    #[test]
    fn a_section_and_its_inverse_are_complements(value in scalars()) {
        let variables = json!({"v": value});
        prop_assert_eq!(rendered("{{#v}}1{{/v}}{{^v}}0{{/v}}", &variables).len(), 1);
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in scraps(), arbitrary in any::<String>()) {
        let variables = json!({"a": [1, {"a": "x"}]});
        for template in [text, arbitrary] {
            let _ = refused(&template, &variables, true);
            let _ = refused(&template, &variables, false);
        }
    }
}
