//! Tests of nunjucks templates: the language, and what is refused.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::checks::{ELIFS_MAX, NAMED_ADDITIONS_MAX, TAG_TOKENS_MAX};
use crate::error::PromptError;
use crate::template::{TemplateFormat, TextRenderer};

fn render(template: &str, variables: &Value, is_strict: bool) -> Result<String, PromptError> {
    TextRenderer::new(TemplateFormat::Nunjucks, variables, is_strict).render("t", template)
}

fn variables() -> Value {
    json!({
        "name": "<Ann>", "o": {"b": 1, "a": [1, null, "x"]}, "list": ["p", "q"], "n": 2, "f": 1.0, "yes": true, "null": null,
        "a": [0, 1, {"b": "deep"}], "users": [{"name": "x", "age": 3}, {"name": "y", "age": 2}], "void": {}, "none": [],
    })
}

#[test]
fn the_language_that_both_share_is_rendered() {
    let cases = [
        ("{{ name }}", "<Ann>"),
        ("{{ name | upper }} {{ name | lower | capitalize }}", "<ANN> <ann>"),
        ("{{ o }} {{ o.a }} {{ o.a[2] }}", "{\"b\":1,\"a\":[1,null,\"x\"]} [1,null,\"x\"] x"),
        ("{{ a[2].b }} {{ a[2]['b'] }} {{ list.length }} {{ list | length }}", "deep deep 2 2"),
        ("{{ yes }} {{ n }} {{ f }} {{ n / 4 }} {{ n * 3 + 1 }}", "true 2 1 0.5 7"),
        ("[{{ null }}][{{ missing }}][{{ missing.deep.er }}][{{ null.deep }}]", "[][][][]"),
        ("{% for x in list %}{{ loop.index }}{{ x }}{% if not loop.last %},{% endif %}{% endfor %}", "1p,2q"),
        ("{% for x in missing %}x{% else %}none{% endfor %}", "none"),
        ("{% for x in null %}x{% else %}none{% endfor %}", "none"),
        ("{% if n == 2 and name %}a{% elif n %}b{% else %}c{% endif %}", "a"),
        ("{% if void %}true{% endif %}{% if none %}true{% endif %}", "true"),
        ("{{ 'p' in list }} {{ 'yes' if n > 1 else 'no' }}", "true yes"),
        ("{% set x = n + 1 %}{{ x }}{# comment #}{% raw %}{{ raw }}{% endraw %}", "3{{ raw }}"),
        ("{{ list | join(', ') }} {{ users | join('-', 'name') }} {{ list | first }}{{ list | last }}", "p, q x-y pq"),
        ("{{ missing | default('d') }} {{ o | dump }} {{ name | dump }}", "d {\"b\":1,\"a\":[1,null,\"x\"]} \"<Ann>\""),
        ("{{ list | dump(1) }}", "[\n \"p\",\n \"q\"\n]"),
        ("{{ name | safe }} {{ name | escape }}", "<Ann> &lt;Ann&gt;"),
        ("{{ missing | upper }}{{ n | upper }}{{ o.a | upper }}", "2[1,NULL,\"X\"]"),
        ("{{ 'a b' | replace('a', 'c') }} {{ 'a\nb' | indent(2) }} {{ ' x ' | trim }}", "c b a\n  b x"),
        (
            "{{ 'hello world' | truncate(7) }} {{ 'hello' | truncate(2, true, '') }} {{ 'a b c' | wordcount }}",
            "hello... he 3",
        ),
        (
            "{{ users | sort(attribute='age') | join('', 'name') }} {% for k, v in o | items %}{{ k }}={{ v }};{% endfor %}",
            "yx b=1;a=[1,null,\"x\"];",
        ),
        ("{% for x in ['a', 'b'] %}{{ x }}{% endfor %}{{ [1, 2] }}{{ {'k': 1} }}", "ab[1,2]{\"k\":1}"),
        ("{% set x %}{{ o.b }}!{% endset %}{{ x }}", "1!"),
        ("a\n{%- if yes -%}\nb{% endif %}\n", "ab\n"),
        ("trailing newline\n", "trailing newline\n"),
    ];
    for (template, expected) in cases {
        assert_eq!(render(template, &variables(), false).as_deref(), Ok(expected), "{template}");
    }
}

#[test]
fn strict_refuses_to_print_what_is_missing() {
    for template in ["{{ missing }}", "{{ o.missing }}", "{{ missing.deep }}"] {
        let why = render(template, &variables(), true).expect_err(template).to_string();
        assert!(why.starts_with("t: line 1: undefined value: the value does not exist"), "{why}");
    }
    for template in [
        "{{ null }}",
        "{% for x in missing %}{% endfor %}",
        "{% if missing %}{% endif %}",
        "{{ missing | default('') }}",
    ] {
        assert_eq!(render(template, &variables(), true).as_deref(), Ok(""), "{template}");
    }
}

#[test]
fn what_only_nunjucks_has_is_refused() {
    let templates = [
        "{% if n === 2 %}{% endif %}",
        "{{ name.toUpperCase() }}",
        "{% asyncEach x in list %}{% endeach %}",
        "{{ unclosed",
        "{% for x in list %}",
        "{% include 'x' %}",
        "{% macro m() %}{% endmacro %}",
        "{{ x | nosuch }}",
        "{{ r/a/g }}",
    ];
    for template in templates {
        let why = render(template, &variables(), false).expect_err(template);
        assert!(
            matches!(&why, PromptError::Template { path, why } if path == "t" && why.starts_with("line 1: ")),
            "{why}"
        );
    }
}

#[test]
fn what_cannot_be_bounded_is_refused() {
    let templates = [
        "{{ name ~ name }}",
        "{% set x = [list, list] %}",
        "{% set x = {'a': list} %}",
        "{% for x in (list, list) %}{% endfor %}",
        "{% set x = list | zip(list) %}",
        "{% set x = namespace() %}",
        "{{ dict(a=1) }}",
        "{% set x = [1] | map('default', n) %}",
        "{% for x in [[list]] %}{% endfor %}",
        "{% for x in list recursive %}{{ loop(x) }}{% endfor %}",
        "{{ list | join(['a', list]) }}",
        "{% set a, b = list, list %}",
    ];
    for template in templates {
        assert!(render(template, &variables(), false).is_err(), "{template}");
    }
}

#[test]
fn expensive_templates_end_soon() {
    let doubled = |start: &str, step: &str, end: &str| format!("{start}{}{end}", step.repeat(60));
    let chain = |link: &str, links: usize| format!("{{{{ n{} }}}}", link.repeat(links));
    let elifs = format!("{{% if n == 1 %}}{}{{% endif %}}", "{% elif n == 1 %}".repeat(ELIFS_MAX + 1));
    let nested = format!("{}{}", "{% if n %}".repeat(5000), "{% endif %}".repeat(5000));
    let templates = [
        "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}".to_owned(),
        "{% for a in range(100000) %}{{ o }}{{ o }}{{ o }}{{ o }}{{ o }}{{ o }}{{ o }}{{ o }}{{ o }}{{ o }}{% endfor %}".to_owned(),
        "{{ 'x' * 100000000 }}".to_owned(),
        "{{ ([1] * 100000000) }}".to_owned(),
        "{{ ([1] * 100000000) | upper }}".to_owned(),
        "{{ ([1] * 100000000) | join }}".to_owned(),
        "{{ ([1] * 100000000) | sort | length }}".to_owned(),
        "{{ ['x'] * 100000000 == ['x'] * 100000000 }}".to_owned(),
        "{{ 'aaaaaaaaaaaaaaaa' | replace('', 'x' * 10000000) }}".to_owned(),
        "{{ 'a' | indent(10000000000, true) }}".to_owned(),
        "{{ 2 ** 100000000 }}".to_owned(),
        doubled("{% set a = 'x' %}", "{% set a = a + a %}", "{{ a }}"),
        doubled("{% set a = list %}", "{% set a = a + a %}", "{{ a }}"),
        doubled("{% set a = list %}", "{% set a = a * 2 %}", "{{ a }}"),
        doubled("{% set a = 'x' %}", "{% set a = a | replace('x', 'xx') %}", "{{ a }}"),
        doubled("{% set a = 'x' %}", "{% set a %}{{ a }}{{ a }}{% endset %}", "{{ a }}"),
        chain(" + n", 200_000),
        chain(".a", 200_000),
        chain(" | abs", 200_000),
        chain(" and n", 200_000),
        chain("(n)", 200_000),
        elifs,
        nested,
        "{{ ".to_owned() + &"(".repeat(100_000),
        "{{ ".to_owned() + &"[".repeat(200) + &"]".repeat(200) + "}}",
    ];
    for template in templates {
        let begun = processor_time();
        let shown: String = template.chars().take(80).collect();
        assert!(render(&template, &variables(), false).is_err(), "{shown}");
        let took = processor_time() - begun;
        assert!(took < Duration::from_secs(5), "{shown}: {took:?}");
    }
}

/// Processor time of this thread, which does not grow while a busy machine lets it wait.
fn processor_time() -> Duration {
    /// Fields of `/proc/thread-self/stat` behind the name of the program: times in user and in kernel mode.
    const TIMES: std::ops::Range<usize> = 11..13;
    /// Length of one unit of these times: Linux has 100 a second.
    const TICK: Duration = Duration::from_millis(10);

    let stat = std::fs::read_to_string("/proc/thread-self/stat").expect("the state of this thread");
    let (_, fields) = stat.rsplit_once(") ").expect("a name in parentheses");
    let fields: Vec<&str> = fields.split(' ').collect();
    let ticks: u32 = fields[TIMES].iter().map(|ticks| ticks.parse::<u32>().expect("a number of ticks")).sum();
    TICK * ticks
}

/// Stack of a thread of the server.
const STACK_BYTES: usize = 2 << 20;

#[test]
fn the_deepest_templates_are_rendered_on_a_small_stack() {
    let sum = format!("{{{{ n{} }}}}", " + n".repeat(TAG_TOKENS_MAX / 2 - 1));
    let elifs = format!("{{% if n == 1 %}}{}{{% else %}}x{{% endif %}}", "{% elif n == 1 %}".repeat(ELIFS_MAX));
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
        // whether the engine still takes these depends on its limits; neither may end the program
        for depth in [20, 40, 70, 140, 160] {
            let _ = render(&format!("{{{{ {}n{} }}}}", "(".repeat(depth), ")".repeat(depth)), &variables(), false);
            let _ = render(&format!("{{{{ {}n }}}}", "not ".repeat(depth)), &variables(), false);
            let _ =
                render(&format!("{}{}", "{% if n %}".repeat(depth), "{% endif %}".repeat(depth)), &variables(), false);
            let loops = format!("{}{}", "{% for i in [1] %}".repeat(depth), "{% endfor %}".repeat(depth));
            let _ = render(&loops, &variables(), false);
        }
        let deep = (0..120).fold(json!(1), |inner, _| json!([{"k": inner}]));
        let printed = render("{{ deep }}", &json!({"deep": deep}), false).map(|text| text.len());
        (render(&sum, &variables(), false), render(&elifs, &variables(), false), printed)
    });
    let (sum, elifs, printed) = thread.expect("a thread").join().expect("no overflow");
    assert_eq!((sum.as_deref(), elifs.as_deref()), (Ok("256"), Ok("x")));
    assert!(printed.is_err(), "deeper than what is printed");
}

#[test]
fn lists_that_were_added_are_counted_soon() {
    for end in [
        "{{ a | length }}",
        "{{ a[5] }}",
        "{{ a == a + a }}",
        "{{ 'z' in a }}",
        "{{ a | last }}",
        "{% if a %}{% endif %}",
    ] {
        let template = |additions| format!("{{% set a = list %}}{}{end}", "{% set a = a + a %}".repeat(additions));
        let begun = processor_time();
        assert!(render(&template(NAMED_ADDITIONS_MAX), &variables(), false).is_ok());
        assert!(render(&template(NAMED_ADDITIONS_MAX + 1), &variables(), false).is_err());
        let took = processor_time() - begun;
        assert!(took < Duration::from_secs(5), "{end}: {took:?}");
    }
}

proptest! {
    #[test]
    fn a_template_without_tags_is_itself(text in "[^{]{0,80}") {
        let expected = text.replace("\r\n", "\n");
        prop_assume!(expected == text);
        prop_assert_eq!(render(&text, &variables(), true), Ok(text));
    }

    #[test]
    fn values_print_as_in_mustache(value in json_values()) {
        let variables = json!({"v": value});
        let mustache = TextRenderer::new(TemplateFormat::Mustache, &variables, false).render("t", "{{v}}");
        prop_assert_eq!(render("{{ v }}", &variables, false), mustache);
    }

    #[test]
    fn no_text_makes_the_engine_panic(text in "[{}%# a-c|.()'\\[\\]\n=+*-]{0,40}") {
        let _ = render(&text, &variables(), true);
    }
}

fn json_values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e6..1e6).prop_map(|float: f64| json!(float)),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec(("[a-z]{1,3}", inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}
