//! Tests of slugs of all versions, as clients write them, and of invalid bytes.

use assay_node_otel::{ObjectType, Parent, ParentObject, Slug, SlugObject, SpanIds};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const PROJECT: &str = "11111111-2222-4333-8444-555555555555";

fn slug(object_type: ObjectType, object: SlugObject) -> Slug {
    Slug { object_type, object, span: None, propagated_event: None }
}

fn map(value: Value) -> Map<String, Value> {
    value.as_object().cloned().expect("an object")
}

#[track_caller]
fn check(text: &str, version: u8, expected: &Slug) {
    assert_eq!(Slug::decode(text).as_ref(), Ok(expected));
    let written = if version == 3 { expected.encode_v3() } else { expected.encode_v4() };
    assert_eq!(written.as_deref(), Ok(text));
}

#[test]
fn known_slugs_are_read_and_written_byte_for_byte() {
    let project = slug(ObjectType::ProjectLogs, SlugObject::Id(PROJECT.to_owned()));
    check("AwIBAREREREiIkMzhERVVVVVVVU=", 3, &project);
    let text = "BAIAeyJvYmplY3RfaWQiOiIxMTExMTExMS0yMjIyLTQzMzMtODQ0NC01NTU1NTU1NTU1NTUifQ==";
    check(text, 4, &project);
    let named = slug(ObjectType::ProjectLogs, SlugObject::Args(map(json!({"project_name": "demo"}))));
    check("BAIAeyJjb21wdXRlX29iamVjdF9tZXRhZGF0YV9hcmdzIjp7InByb2plY3RfbmFtZSI6ImRlbW8ifX0=", 4, &named);
    let span = SpanIds {
        row_id: "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee".to_owned(),
        span_id: "00f067aa0ba902b7".to_owned(),
        root_span_id: "4bf92f3577b34da6a3ce929d0e0e4736".to_owned(),
    };
    let experiment = Slug { span: Some(span), ..slug(ObjectType::Experiment, SlugObject::Id(PROJECT.to_owned())) };
    let text = "BAECAwDwZ6oLqQK3BEv5LzV3s02mo86SnQ4ORzZ7Im9iamVjdF9pZCI6IjExMTExMTExLTIyMjItNDMzMy04NDQ0LTU1\
                NTU1NTU1NTU1NSIsInJvd19pZCI6ImFhYWFhYWFhLWJiYmItNGNjYy04ZGRkLWVlZWVlZWVlZWVlZSJ9";
    check(text, 4, &experiment);
    assert_eq!(Slug::decode(text.trim_end_matches('=')).as_ref(), Ok(&experiment), "padding is forgotten by some");
}

/// Tests slugs from the public Python client, on whose readers these are modelled.
#[test]
fn slugs_of_the_first_two_versions_are_read() {
    for (text, expected) in OLD {
        let read = Slug::decode(text).expect(text);
        let object = match read.object {
            SlugObject::Id(id) => Value::from(id),
            SlugObject::Args(args) => Value::Object(args),
        };
        let span = read.span.map(|span| json!([span.row_id, span.span_id, span.root_span_id]));
        let read = json!([format!("{:?}", read.object_type), object, span]);
        assert_eq!(read, serde_json::from_str::<Value>(expected).expect("JSON"));
    }
}

const OLD: [(&str, &str); 6] = [
    ("AQIAABEREREiIkMzhERVVVVVVVU=", r#"["ProjectLogs", "11111111-2222-4333-8444-555555555555", null]"#),
    (
        "AQEBAREREREiIkMzhERVVVVVVVWqqqqqu7tMzI3d7u7u7u7hqqqqqru7TMyN3e7u7u7u4qqqqqq7u0zMjd3u7u7u7uA=",
        r#"["Experiment", "11111111-2222-4333-8444-555555555555", ["aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeee0",
            "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeee1", "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeee2"]]"#,
    ),
    (
        "AQEBABEREREiIkMzhERVVVVVVVWqqqqqu7tMzI3d7u7u7u7hqqqqqru7TMyN3e7u7u7u4m15IHJvdw==",
        r#"["Experiment", "11111111-2222-4333-8444-555555555555", ["my row",
            "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeee1", "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeee2"]]"#,
    ),
    ("AgIAAQAAAAAAGHsicHJvamVjdF9uYW1lIjogImRlbW8ifQ==", r#"["ProjectLogs", {"project_name": "demo"}, null]"#),
    (
        "AgIAAQEBAAAAGHsicHJvamVjdF9uYW1lIjogImRlbW8ifaqqqqq7u0zMjd3u7u7u7uGqqqqqu7tMzI3d7u7u7u7iqqqqqru7TMyN3e7u7u7u4A==",
        r#"["ProjectLogs", {"project_name": "demo"}, ["aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeee0",
            "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeee1", "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeee2"]]"#,
    ),
    (
        "AgEBAAEAERERESIiQzOERFVVVVVVVaqqqqq7u0zMjd3u7u7u7uGqqqqqu7tMzI3d7u7u7u7ibXkgcm93",
        r#"["Experiment", "11111111-2222-4333-8444-555555555555", ["my row",
            "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeee1", "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeee2"]]"#,
    ),
];

#[test]
fn a_slug_is_a_parent() {
    let span = SpanIds { row_id: "r".to_owned(), span_id: "s".to_owned(), root_span_id: "t".to_owned() };
    let event = map(json!({"span_attributes": {"purpose": "scorer"}}));
    let slug = Slug {
        object_type: ObjectType::PlaygroundLogs,
        object: SlugObject::Id("x".to_owned()),
        span: Some(span.clone()),
        propagated_event: Some(event.clone()),
    };
    for text in [slug.encode_v3(), slug.encode_v4()] {
        let parent = Parent::parse(&text.expect("writes")).expect("parses");
        assert_eq!(parent.object, ParentObject::Playground("x".to_owned()));
        assert_eq!((parent.span, parent.propagated_event), (Some(span.clone()), Some(event.clone())));
    }
}

#[test]
fn what_is_wrong_with_a_slug_is_said() {
    let check = |bytes: &[u8], why: &str| {
        use base64::Engine as _;
        let text = base64::engine::general_purpose::STANDARD.encode(bytes);
        let refused = Slug::decode(&text).expect_err(why).to_string();
        assert!(refused.contains(why), "{refused}");
    };
    check(&[], "truncated");
    check(&[9, 1, 0], "version 9");
    check(&[4, 7, 0], "object type 7");
    check(&[4, 2, 1, 9], "field 9 at byte 3");
    check(&[4, 2, 1, 3, 1], "8 bytes are missing");
    check(&[4, 2, 0], "neither object_id");
    check(b"\x04\x02\x00[]", "not a JSON object");
    check(b"\x04\x02\x00{\"object_id\": 1}", "object_id that is not text");
    check(b"\x04\x02\x00{\"object_id\": \"a\", \"row_id\": \"b\"}", "all of them or none");
    check(b"\x04\x02\x00{\"object_id\": \"a\", \"compute_object_metadata_args\": {\"b\": 1}}", "both");
    check(&[1, 1, 2, 0], "has 2 at byte 2");
    check(&[2, 2, 0, 1, 0, 0, 0xff, 0xff, 0xff, 0xff], "bytes are missing");
    assert!(Slug::decode("no base64!").expect_err("no base64").to_string().contains("base64"));
}

fn ids() -> impl Strategy<Value = String> {
    prop_oneof![
        "[0-9a-f]{16}",
        "[0-9a-f]{32}",
        "[0-9A-Fa-f]{32}",
        "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        "[0-9A-F]{8}-[0-9A-F]{4}-[0-9A-F]{4}-[0-9A-F]{4}-[0-9A-F]{12}",
        "\\PC{1,40}",
    ]
}

fn slugs() -> impl Strategy<Value = Slug> {
    let object_type =
        prop_oneof![Just(ObjectType::Experiment), Just(ObjectType::ProjectLogs), Just(ObjectType::PlaygroundLogs)];
    let map = || {
        prop::collection::btree_map("\\PC{0,8}", "\\PC{0,8}", 1..3)
            .prop_map(|pairs| pairs.into_iter().map(|(key, value)| (key, Value::from(value))).collect::<Map<_, _>>())
    };
    let object = prop_oneof![ids().prop_map(SlugObject::Id), map().prop_map(SlugObject::Args)];
    let span = prop::option::of((ids(), ids(), ids()).prop_map(|(row_id, span_id, root_span_id)| SpanIds {
        row_id,
        span_id,
        root_span_id,
    }));
    (object_type, object, span, prop::option::of(map()))
        .prop_map(|(object_type, object, span, propagated_event)| Slug { object_type, object, span, propagated_event })
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(slug in slugs()) {
        for text in [slug.encode_v3(), slug.encode_v4()] {
            prop_assert_eq!(Slug::decode(&text.expect("writes")), Ok(slug.clone()));
        }
    }

    #[test]
    fn bytes_of_any_kind_are_a_slug_or_an_error(version in 0_u8..6, bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        use base64::Engine as _;
        let mut bytes = bytes;
        if let Some(first) = bytes.first_mut() {
            *first = version;
        }
        let text = base64::engine::general_purpose::STANDARD.encode(&bytes);
        if let Ok(slug) = Slug::decode(&text) {
            let written = slug.encode_v4().expect("what is read can be written");
            prop_assert_eq!(Slug::decode(&written), Ok(slug));
        }
    }

    #[test]
    fn text_of_any_kind_is_a_parent_or_an_error(text in "\\PC{0,80}") {
        let _ = Parent::parse(&text);
    }

    #[test]
    fn a_slug_with_a_byte_changed_is_a_slug_or_an_error(slug in slugs(), place in any::<prop::sample::Index>(), byte in any::<u8>()) {
        use base64::Engine as _;
        let engine = base64::engine::general_purpose::STANDARD;
        let mut bytes = engine.decode(slug.encode_v4().expect("writes")).expect("base64");
        let place = place.index(bytes.len());
        bytes[place] = byte;
        let _ = Slug::decode(&engine.encode(&bytes));
    }
}
