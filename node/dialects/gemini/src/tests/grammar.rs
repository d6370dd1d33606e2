//! Random bodies of the dialect, in the spelling in which they are written.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Any JSON, small.
pub(super) fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i32>().prop_map(|number| json!(number)),
        (-4_i16..4).prop_map(|number| json!(f64::from(number) / 4.0)),
        "[a-zA-Z\\{\\}\":ü ]{0,6}".prop_map(Value::String),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::Array),
            vec(("[a-z_.]{1,4}", inner), 0..3).prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn any_object() -> impl Strategy<Value = Value> {
    vec(("[a-z]{1,4}", any_json()), 0..3).prop_map(|fields| Value::Object(fields.into_iter().collect()))
}

fn not_null() -> impl Strategy<Value = Value> {
    any_json().prop_filter("null is absent", |value| !value.is_null())
}

/// The object with some unknown fields.
fn with_unknown(object: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    (object, vec(("x[a-zA-Z]{1,4}", any_json()), 0..2)).prop_map(|(mut object, unknown)| {
        object.as_object_mut().expect("an object").extend(unknown);
        object
    })
}

/// The fields that have a value.
fn object<const N: usize>(fields: [(&str, Option<Value>); N]) -> Value {
    let set = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(set.collect::<Map<_, _>>())
}

fn word() -> impl Strategy<Value = Value> {
    "[a-z]{1,6}".prop_map(Value::String)
}

fn signature() -> impl Strategy<Value = Option<Value>> {
    option::of("[A-Za-z0-9]{4}".prop_map(Value::String))
}

fn media() -> impl Strategy<Value = Value> {
    let types = prop::sample::select(vec!["image/png", "audio/wav", "application/pdf", "video/mp4"]);
    let inline = with_unknown((types.clone(), option::of(word())).prop_map(|(media_type, name)| {
        object([("mimeType", Some(json!(media_type))), ("data", Some(json!("AA=="))), ("displayName", name)])
    }));
    let addresses = prop::sample::select(vec!["gs://a/b.png", "https://a.example/b.png", "files/a"]);
    let file = with_unknown((option::of(types), addresses).prop_map(|(media_type, uri)| {
        object([("mimeType", media_type.map(|one| json!(one))), ("fileUri", Some(json!(uri)))])
    }));
    prop_oneof![
        with_unknown(inline.prop_map(|inline| json!({ "inlineData": inline }))),
        with_unknown(file.prop_map(|file| json!({ "fileData": file }))),
    ]
}

fn text_part() -> impl Strategy<Value = Value> {
    with_unknown((word(), option::of(Just(json!(true))), signature()).prop_map(|(text, thought, signature)| {
        object([("text", Some(text)), ("thought", thought), ("thoughtSignature", signature)])
    }))
}

fn call_part(has_ids: bool) -> impl Strategy<Value = Value> {
    let function = with_unknown((word(), any_object(), word()).prop_map(move |(name, arguments, id)| {
        object([("id", has_ids.then_some(id)), ("name", Some(name)), ("args", Some(arguments))])
    }));
    with_unknown(
        (function, signature()).prop_map(|(function, signature)| {
            object([("functionCall", Some(function)), ("thoughtSignature", signature)])
        }),
    )
}

fn result_part(has_ids: bool) -> impl Strategy<Value = Value> {
    let response = prop_oneof![
        any_object(),
        any_json().prop_map(|output| json!({ "output": output })),
        any_json().prop_map(|error| json!({ "error": error })),
    ];
    let function =
        with_unknown((word(), response, word(), vec(media(), 0..2)).prop_map(move |(name, response, id, media)| {
            object([
                ("id", has_ids.then_some(id)),
                ("name", Some(name)),
                ("response", Some(response)),
                ("parts", (!media.is_empty()).then(|| json!(media))),
            ])
        }));
    with_unknown(function.prop_map(|function| json!({ "functionResponse": function })))
}

fn own_part() -> impl Strategy<Value = Value> {
    with_unknown(any_object().prop_map(|code| json!({ "executableCode": code })))
}

fn content(has_ids: bool) -> impl Strategy<Value = Value> {
    let said = prop_oneof![text_part(), media(), own_part()];
    let answered = prop_oneof![text_part(), call_part(has_ids), media(), own_part()];
    prop_oneof![
        with_unknown(vec(said, 1..3).prop_map(|parts| json!({ "role": "user", "parts": parts }))),
        with_unknown(vec(answered, 1..4).prop_map(|parts| json!({ "role": "model", "parts": parts }))),
        with_unknown(vec(result_part(has_ids), 1..3).prop_map(|parts| json!({ "role": "user", "parts": parts }))),
    ]
}

/// Neighbouring contents that have only results as one.
fn joined_results(contents: Vec<Value>) -> Vec<Value> {
    let has_results = |content: &Value| content["parts"][0].get("functionResponse").is_some();
    let mut joined: Vec<Value> = Vec::new();
    for content in contents {
        let is_known = content.as_object().is_some_and(|fields| fields.len() == 2);
        match joined.last_mut() {
            Some(last) if has_results(last) && has_results(&content) && is_known => {
                let parts = content["parts"].as_array().expect("parts").clone();
                last["parts"].as_array_mut().expect("parts").extend(parts);
            }
            _ => joined.push(content),
        }
    }
    joined
}

pub(super) fn openapi_schema() -> impl Strategy<Value = Value> {
    let leaf = (
        prop::sample::select(vec!["STRING", "integer", "NUMBER", "BOOLEAN"]),
        option::of(any::<bool>()),
        option::of(word()),
    )
        .prop_map(|(kind, nullable, description)| {
            object([("type", Some(json!(kind))), ("nullable", nullable.map(Value::Bool)), ("description", description)])
        });
    with_unknown(leaf).prop_recursive(3, 12, 3, |inner| {
        let properties = vec(("[a-z]{1,4}", inner.clone()), 1..3);
        with_unknown(prop_oneof![
            properties.prop_map(|all| {
                let all: Map<String, Value> = all.into_iter().collect();
                let required: Vec<String> = all.keys().take(1).cloned().collect();
                json!({ "type": "OBJECT", "properties": all, "required": required })
            }),
            inner.clone().prop_map(|items| json!({ "type": "ARRAY", "items": items, "minItems": "1" })),
            vec(inner, 2..3).prop_map(|all| json!({ "anyOf": all })),
        ])
    })
}

fn tools() -> impl Strategy<Value = Option<Value>> {
    let schema = prop_oneof![
        Just(None),
        openapi_schema().prop_map(|schema| Some(("parameters", schema))),
        any_object().prop_map(|schema| Some(("parametersJsonSchema", schema))),
    ];
    let function = with_unknown((word(), option::of(word()), schema).prop_map(|(name, description, schema)| {
        let mut function = object([("name", Some(name)), ("description", description)]);
        if let Some((name, schema)) = schema {
            function[name] = schema;
        }
        function
    }));
    let others = prop::sample::subsequence(vec![json!({ "googleSearch": {} }), json!({ "xNew": [1] })], 0..=2);
    (vec(function, 0..3), others).prop_map(|(functions, others)| {
        let declared = (!functions.is_empty()).then(|| json!({ "functionDeclarations": functions }));
        let tools: Vec<Value> = declared.into_iter().chain(others).collect();
        (!tools.is_empty()).then(|| json!(tools))
    })
}

fn tool_config() -> impl Strategy<Value = Value> {
    let modes = prop::sample::select(vec!["AUTO", "ANY", "NONE", "VALIDATED", "any", "MODE_UNSPECIFIED"]);
    let calling = with_unknown((modes, vec(word(), 0..2)).prop_map(|(mode, names)| {
        object([("mode", Some(json!(mode))), ("allowedFunctionNames", (!names.is_empty()).then(|| json!(names)))])
    }));
    with_unknown(calling.prop_map(|calling| json!({ "functionCallingConfig": calling })))
}

fn format_of_answer() -> impl Strategy<Value = Map<String, Value>> {
    let formats = prop_oneof![
        Just(json!({})),
        Just(json!({ "responseMimeType": "text/plain" })),
        Just(json!({ "responseMimeType": "application/json" })),
        openapi_schema().prop_map(|schema| json!({ "responseMimeType": "application/json", "responseSchema": schema })),
        any_object().prop_map(|schema| json!({ "responseMimeType": "application/json", "responseJsonSchema": schema })),
        Just(json!({ "responseMimeType": "text/x.enum", "responseSchema": { "type": "STRING", "enum": ["a"] } })),
    ];
    formats.prop_map(|format| format.as_object().expect("an object").clone())
}

fn thinking() -> impl Strategy<Value = Value> {
    let levels = prop::sample::select(vec!["low", "HIGH", "medium", "NEW"]);
    let settings = (option::of(-1_i64..9), option::of(levels), option::of(Just(true)));
    with_unknown(settings.prop_map(|(budget, level, include)| {
        object([
            ("thinkingBudget", budget.map(|budget| json!(budget))),
            ("thinkingLevel", level.map(|level| json!(level))),
            ("includeThoughts", include.map(Value::Bool)),
        ])
    }))
    .prop_filter("empty settings are left out", |thinking| thinking != &json!({}))
}

fn generation() -> impl Strategy<Value = Value> {
    let number = || option::of((0_u8..9).prop_map(|number| json!(f64::from(number) / 4.0)));
    let count = || option::of((0_u8..9).prop_map(|number| json!(number)));
    let numbers = (number(), number(), count(), number(), count());
    let counts = (count(), count(), count(), option::of(any::<bool>()), option::of(vec(word(), 1..3)));
    let settings = (numbers, counts, option::of(thinking()), format_of_answer());
    with_unknown(settings.prop_map(
        |((temperature, top_p, top_k, penalty, seed), (candidates, tokens, top, probable, stop), thinking, format)| {
            let mut settings = object([
                ("temperature", temperature),
                ("topP", top_p),
                ("topK", top_k),
                ("presencePenalty", penalty.clone()),
                ("frequencyPenalty", penalty),
                ("seed", seed),
                ("candidateCount", candidates),
                ("maxOutputTokens", tokens),
                ("logprobs", top),
                ("responseLogprobs", probable.map(Value::Bool)),
                ("stopSequences", stop.map(|stop| json!(stop))),
                ("thinkingConfig", thinking),
            ]);
            settings.as_object_mut().expect("an object").extend(format);
            settings
        },
    ))
    .prop_filter("empty settings are left out", |settings| settings != &json!({}))
}

/// A request.
pub(super) fn request() -> impl Strategy<Value = Value> {
    let system = with_unknown(
        (option::of(word()), vec(text_part(), 1..3))
            .prop_map(|(role, parts)| object([("role", role), ("parts", Some(json!(parts)))])),
    );
    let contents = any::<bool>().prop_flat_map(|has_ids| vec(content(has_ids), 0..5)).prop_map(joined_results);
    let settings = (tools(), option::of(tool_config()), option::of(generation()), option::of(not_null()));
    with_unknown((option::of(system), contents, settings).prop_map(
        |(system, contents, (tools, config, generation, safety))| {
            object([
                ("systemInstruction", system),
                ("contents", Some(json!(contents))),
                ("tools", tools),
                ("toolConfig", config),
                ("generationConfig", generation),
                ("safetySettings", safety),
            ])
        },
    ))
}

/// A whole answer.
pub(super) fn answer() -> impl Strategy<Value = Value> {
    let reasons = prop::sample::select(vec!["STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "LANGUAGE", "NEW"]);
    let part = prop_oneof![text_part(), call_part(false), call_part(true), media(), own_part()];
    let candidate = (vec(part, 0..4), option::of(reasons), option::of(not_null()));
    let candidate = with_unknown(candidate.prop_map(|(parts, reason, ratings)| {
        let content = object([("parts", (!parts.is_empty()).then(|| json!(parts))), ("role", Some(json!("model")))]);
        object([("content", Some(content)), ("finishReason", reason.map(|one| json!(one))), ("safetyRatings", ratings)])
    }));
    let candidates = vec(candidate, 0..3).prop_map(|mut candidates| {
        for (index, candidate) in candidates.iter_mut().enumerate() {
            candidate["index"] = json!(index);
        }
        (!candidates.is_empty()).then(|| json!(candidates))
    });
    let usage = with_unknown(
        ((0_u64..9), (0_u64..9), option::of(0_u64..9), option::of(0_u64..9), option::of(0_u64..9)).prop_map(
            |(prompt, candidates, thoughts, cached, tools)| {
                let total = prompt + candidates + thoughts.unwrap_or(0) + tools.unwrap_or(0);
                let count = |count: Option<u64>| count.map(|count| json!(count));
                object([
                    ("promptTokenCount", count(Some(prompt))),
                    ("candidatesTokenCount", count(Some(candidates))),
                    ("totalTokenCount", count(Some(total))),
                    ("thoughtsTokenCount", count(thoughts)),
                    ("cachedContentTokenCount", count(cached)),
                    ("toolUsePromptTokenCount", count(tools)),
                ])
            },
        ),
    );
    let feedback = option::of(Just(json!({ "blockReason": "SAFETY" })));
    let names = (option::of(word()), option::of(word()));
    with_unknown((candidates, option::of(usage), names, feedback).prop_map(
        |(candidates, usage, (id, model), feedback)| {
            let feedback = feedback.filter(|_| candidates.is_none());
            object([
                ("candidates", candidates),
                ("usageMetadata", usage),
                ("responseId", id),
                ("modelVersion", model),
                ("promptFeedback", feedback),
            ])
        },
    ))
}
