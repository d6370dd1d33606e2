//! Tests of the settings: checks, passed paths, and forwarded headers.

use super::*;

const BODIES: usize = 64 << 20;

fn settings(text: &str) -> GatewaySettings {
    toml::from_str(text).expect("settings of a test")
}

fn refusal(text: &str) -> String {
    settings(text).check(BODIES).expect_err(text).to_string()
}

#[test]
fn the_defaults_are_valid_and_give_nothing_away() {
    let default = settings("");
    assert_eq!(default.check(BODIES), Ok(()));
    assert!(default.enabled && !default.retry_uncertain);
    assert!(default.forward_headers.is_empty());
    assert_eq!(default.retry_budget(), Duration::from_secs(45));
}

#[test]
fn settings_are_written_as_they_are_read() {
    let changed = settings("catalog_file = \"/models.json\"\nforward_headers = [\"x-team\"]\ncache = false");
    for wanted in [GatewaySettings::default(), changed] {
        let text = toml::to_string(&wanted).expect("TOML");
        assert_eq!(settings(&text), wanted);
    }
}

#[test]
fn mistaken_settings_are_refused_with_their_place() {
    for (text, says) in [
        ("retry_budget_seconds = 601", "gateway.retry_budget_seconds is 601; set it to 0 to 600"),
        ("scorer_model = \" \"", "gateway.scorer_model is empty; set it to the name of a model"),
        ("call_seconds_max = 0", "gateway.call_seconds_max is 0; set it to 1 to 86400"),
        ("calls_max = 0", "gateway.calls_max is 0; set it to 1 to 1048576"),
        ("calls_bytes_max = 0", "gateway.calls_bytes_max is 0; set it to 1 to"),
        ("request_bytes_max = 0", "gateway.request_bytes_max is 0"),
        ("request_bytes_max = 67108865", "above http.bodies_bytes_max, which is 67108864"),
        ("cache_bytes_max = 1", "gateway.cache_organization_bytes_max is above gateway.cache_bytes_max"),
        ("forward_headers = [\"x-a\", \"\"]", "gateway.forward_headers[1]: `` is no header name"),
        ("forward_headers = [\"a b\"]", "`a b` is no header name"),
        ("forward_headers = [\"X-Forwarded-For\"]", "it says who the client is"),
        ("forward_headers = [\"Cookie\"]", "it says who the client is"),
        ("forward_headers = [\"Authorization\"]", "it has a credential of this server"),
        ("forward_headers = [\"transfer-encoding\"]", "it is about the connection of the client"),
        ("forward_headers = [\"x-bt-parent\"]", "it is for this server"),
    ] {
        let why = refusal(text);
        assert!(why.contains(says), "{text}: {why}");
    }
    for pattern in ["", "/rerank", "rerank/", "a//b", "**/a", "a/**/b", "a/../b", "a*", "a%2fb", "a?b"] {
        let why = refusal(&format!("passthrough_paths = [\"score\", \"{pattern}\"]"));
        assert!(why.contains("gateway.passthrough_paths[1]"), "{pattern}: {why}");
    }
    let many = format!("forward_headers = [{}]", "\"x-a\",".repeat(FORWARD_HEADERS_MAX + 1));
    assert!(refusal(&many).contains("has 65 entries, at most 64 are allowed"));
    assert!(toml::from_str::<GatewaySettings>("retries = 1").is_err());
}

#[test]
fn a_gateway_that_is_off_needs_no_memory_for_bodies() {
    let off = settings("enabled = false");
    assert_eq!(off.check(1), Ok(()));
    assert!(GatewaySettings::default().check(1).is_err());
}

#[test]
fn a_path_passes_where_a_pattern_matches_all_its_parts() {
    let passes = |pattern: &str, path: &str| {
        let settings = settings(&format!("passthrough_paths = [\"{pattern}\"]"));
        assert_eq!(settings.check(BODIES), Ok(()), "{pattern}");
        settings.passes_through(path)
    };
    for (pattern, path, is_passed) in [
        ("rerank", "rerank", true),
        ("rerank", "reranks", false),
        ("rerank", "rerank/more", false),
        ("images/**", "images/generations", true),
        ("images/**", "images/edits/more", true),
        ("images/**", "images", false),
        ("images/**", "imagesx/a", false),
        ("a/*/b", "a/x/b", true),
        ("a/*/b", "a/x/y/b", false),
        ("a/*", "a", false),
        ("**", "score", true),
    ] {
        assert_eq!(passes(pattern, path), is_passed, "{pattern} and {path}");
    }
}

#[test]
fn a_path_that_could_lead_elsewhere_never_passes() {
    let all = settings("passthrough_paths = [\"**\"]");
    for path in [
        "",
        "/",
        "/score",
        "images/../files",
        "images/./x",
        "images//x",
        "images/%2e%2e/files",
        "a\\..\\b",
        "a?b",
        "a#b",
    ] {
        assert!(!all.passes_through(path), "{path}");
    }
    let default = GatewaySettings::default();
    assert!(default.passes_through("audio/speech") && default.passes_through("tokenize"));
    for path in ["files", "files/x", "batches", "fine_tuning/jobs", "assistants", "images"] {
        assert!(!default.passes_through(path), "{path}");
    }
}

#[test]
fn headers_are_sent_on_where_a_setting_names_them() {
    let named = settings("forward_headers = [\"X-Team\"]");
    assert!(named.forwards_header("x-team") && !named.forwards_header("x-other"));
    assert!(!named.forwards_header("traceparent"));
    let traced = settings("forward_trace_headers = true");
    assert!(["traceparent", "Tracestate", "baggage"].into_iter().all(|name| traced.forwards_header(name)));
    assert!(!traced.forwards_header("x-team"));
}
