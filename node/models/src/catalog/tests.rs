//! Tests of the catalog: files, overlays, look-ups, prices and reservations.

use serde_json::json;

use super::*;
use crate::calendar::parse_date;

const NOW: u64 = 1_795_737_600_000;

fn with_models(text: &str) -> Result<Catalog, CatalogError> {
    Catalog::new(CatalogSources { operator_models: Some(text), ..CatalogSources::default() })
}

fn day(text: &str) -> u64 {
    u64::try_from(parse_date(text).expect("a date")).expect("after 1970")
}

#[test]
fn the_built_in_files_are_valid_and_have_a_spec_for_each_price() {
    let catalog = Catalog::new(CatalogSources::default()).expect("the built-in files are valid");
    let table: Value = serde_json::from_str(BUILT_IN_PRICES).expect("JSON");
    for name in table["models"].as_object().expect("an object").keys() {
        assert!(catalog.exact(name).is_some(), "data/models.json has no `{name}`, which has a price");
    }
    assert!(catalog.names().count() > 300);
}

#[test]
fn a_price_has_one_source() {
    let table: Value = serde_json::from_str(BUILT_IN_PRICES).expect("JSON");
    for (name, spec) in &Catalog::built_in().models {
        let in_table = table["models"].get(name).is_some();
        let own = spec.members.keys().find(|member| PriceFields::is_price_member(member));
        let adds = own.is_none_or(|member| member == "input_cache_write_1h_cost_per_mil_tokens");
        assert!(!in_table || adds, "`{name}` has a price in both files");
        assert!(spec.prices.is_empty() || !adds || in_table || spec.prices.price_at(NOW).is_some(), "`{name}`");
    }
}

#[test]
fn each_built_in_entry_says_its_format_and_flavor_and_links_to_models_that_are_there() {
    let catalog = Catalog::built_in();
    for (name, spec) in &catalog.models {
        assert!(spec.members.contains_key("format") && spec.members.contains_key("flavor"), "{name}");
        let listed = spec.members.get("available_providers").and_then(Value::as_array).map_or(0, Vec::len);
        assert_eq!(spec.available_providers.as_ref().map_or(0, Vec::len), listed, "{name}: an unknown provider");
        for other in &spec.fallback_models {
            assert!(catalog.exact(other).is_some(), "{name}: no model `{other}`");
            assert!(catalog.equivalents(other).contains(name), "{other} is no other name of {name}");
        }
    }
}

#[test]
fn an_unknown_name_is_looked_up_in_lower_case_without_its_endings() {
    let catalog = with_models(r#"{"m-high": {"max_output_tokens": 1}, "m": {"max_output_tokens": 2}}"#).expect("valid");
    let found = |name: &str| catalog.find(name).and_then(|spec| spec.max_output_tokens);
    for (name, expected) in [
        ("m", Some(2)),
        ("M", Some(2)),
        ("m-high", Some(1)),
        ("M-HIGH", Some(1)),
        ("m-low", Some(2)),
        ("m-xhigh-thinking", Some(2)),
        ("m-high-max", Some(1)),
        ("m-new", None),
        ("-low", None),
        ("", None),
    ] {
        assert_eq!(found(name), expected, "{name}");
    }
    assert!(catalog.exact("M").is_none());
    let many = format!("m{}", "-low".repeat(CUTS_MAX + 1));
    assert_eq!(found(&many), None, "only so many endings are cut");
}

#[test]
fn the_price_is_the_one_that_is_valid_at_the_time() {
    let text = json!({"m": {
        "input_cost_per_mil_tokens": 9, "output_cost_per_mil_tokens": 90,
        "prices": [
            {"valid_from": "2026-06-01", "input_cost_per_mil_tokens": 2, "output_cost_per_mil_tokens": 20},
            {"valid_from": "2026-01-01", "input_cost_per_mil_tokens": 5, "output_cost_per_mil_tokens": 50,
                "input_cache_read_cost_per_mil_tokens": 1}]}});
    let catalog = with_models(&text.to_string()).expect("valid");
    let price = |now| catalog.price_at("m", now).expect("a price");
    assert_eq!(price(day("2026-01-01") - 1).input, 9.0);
    assert_eq!((price(day("2026-01-01")).input, price(day("2026-05-31")).cache_read), (5.0, Some(1.0)));
    assert_eq!(
        (price(day("2026-06-01")).input, price(u64::MAX).cache_read),
        (2.0, None),
        "a price replaces all of another"
    );
    assert_eq!(catalog.to_json(day("2026-06-01"))["m"]["input_cost_per_mil_tokens"], json!(2.0));
    assert!(catalog.to_json(0)["m"].get("prices").is_none());
}

#[test]
fn a_model_with_future_prices_only_has_none_yet() {
    let text = r#"{"m": {"prices": [{"valid_from": "2030-01-01", "input_cost_per_mil_tokens": 1,
        "output_cost_per_mil_tokens": 1}]}}"#;
    let catalog = with_models(text).expect("valid");
    assert_eq!(catalog.price_at("m", NOW), None);
    assert!(catalog.price_at("m", day("2030-01-01")).is_some());
}

#[test]
fn operators_change_add_and_remove_models() {
    let text = r#"{"gpt-4o": {"max_output_tokens": 7}, "own": {"format": "anthropic", "note": [1]}, "o3": null}"#;
    let catalog = with_models(text).expect("valid");
    let changed = catalog.exact("gpt-4o").expect("a model");
    assert_eq!((changed.max_output_tokens, changed.max_input_tokens), (Some(7), Some(128_000)));
    assert_eq!(catalog.price_at("gpt-4o", NOW), Catalog::built_in().price_at("gpt-4o", NOW), "its price is kept");
    assert!(catalog.exact("o3").is_none() && catalog.price_at("o3", NOW).is_none());
    let own = catalog.exact("own").expect("a model");
    assert_eq!((own.format, own.members["note"].clone()), (WireFormat::Anthropic, json!([1])));
}

#[test]
fn prices_of_operators_are_above_built_in_ones() {
    let prices = r#"{"models": {"gpt-4o": {"input": 1, "output": 2, "also": ["own"]}, "o3": null}}"#;
    let models = r#"{"gpt-4o-mini": {"input_cost_per_mil_tokens": 3, "output_cost_per_mil_tokens": 4}}"#;
    let sources = CatalogSources { operator_prices: Some(prices), operator_models: Some(models) };
    let catalog = Catalog::new(sources).expect("valid");
    let price = |name: &str| catalog.price_at(name, NOW).map(|price| (price.input, price.output, price.cache_read));
    assert_eq!((price("gpt-4o"), price("own")), (Some((1.0, 2.0, None)), Some((1.0, 2.0, None))));
    assert_eq!(price("o3"), None);
    assert_eq!(price("gpt-4o-mini"), Some((3.0, 4.0, None)), "nothing is left of the price below");
}

#[test]
fn an_overlay_of_an_embedding_model_needs_no_output_price() {
    let text = r#"{"text-embedding-3-small": {"input_cost_per_mil_tokens": 7}, "text-embedding-3-large": {"note": 1},
        "m": {"input_cost_per_mil_tokens": 1}}"#;
    let catalog = with_models(text).expect("valid");
    let price = |name: &str| catalog.price_at(name, NOW).map(|price| (price.input, price.output));
    assert_eq!(price("text-embedding-3-small"), Some((7.0, 0.0)), "the flavor comes from the entry below");
    let built_in = Catalog::built_in().price_at("text-embedding-3-large", NOW);
    assert_eq!(catalog.price_at("text-embedding-3-large", NOW), built_in, "an overlay without a price changes none");
    assert_eq!(price("m"), None, "answers of a chat model are not free");
    let turned = with_models(r#"{"m": {"input_cost_per_mil_tokens": 1, "flavor": "embedding"}}"#).expect("valid");
    assert_eq!(turned.price_at("m", NOW).map(|price| price.output), Some(0.0));
}

#[test]
fn a_price_of_a_longer_cache_is_added_to_the_table() {
    let price = Catalog::built_in().price_at("claude-sonnet-4-5", NOW).expect("a price");
    assert_eq!((price.input, price.cache_write, price.cache_write_1h), (3.0, Some(3.75), Some(6.0)));
}

#[test]
fn a_model_may_have_the_price_of_another() {
    let catalog = with_models(r#"{"m": {"price_as": "gpt-4o"}, "n": {"price_as": "gone"}}"#).expect("valid");
    assert_eq!(catalog.price_at("m", NOW), catalog.price_at("gpt-4o", NOW));
    assert_eq!(catalog.price_at("n", NOW), None);
    let price = catalog.price_at("us.anthropic.claude-sonnet-4-5-20250929-v1:0", NOW).expect("a price");
    assert_eq!((price.input, price.cache_write_1h), (3.0, Some(6.0)));
    assert!(catalog.to_json(NOW)["m"].get("price_as").is_none());
}

#[test]
fn old_members_are_per_token() {
    let text = r#"{"m": {"input_cost_per_token": 0.000002, "output_cost_per_token": 0.00001}}"#;
    let price = with_models(text).expect("valid").price_at("m", NOW).expect("a price");
    assert!((price.input - 2.0).abs() < 1e-9 && (price.output - 10.0).abs() < 1e-9);
}

#[test]
fn errors_say_where_and_what_is_valid() {
    for (text, expected) in [
        ("[]", "an object with a member"),
        ("{", "no JSON"),
        (r#"{"m": 1}"#, "model `m`: an object, or null"),
        (r#"{"m": {"format": "new"}}"#, "m.format: `openai`, `anthropic`"),
        (r#"{"m": {"flavor": 1}}"#, "m.flavor: a string was expected"),
        (r#"{"m": {"max_output_tokens": -1}}"#, "m.max_output_tokens: a whole number"),
        (r#"{"m": {"input_cost_per_mil_tokens": -1}}"#, "m.input_cost_per_mil_tokens: a number from 0"),
        (r#"{"m": {"prices": [{"valid_from": "2026-13-01"}]}}"#, "m.prices[0]: an object with `valid_from`"),
        (
            r#"{"m": {"prices": [{"valid_from": "2026-01-01", "output_cost_per_mil_tokens": "1"}]}}"#,
            "m.prices[0].output_cost_per_mil_tokens: a number",
        ),
        (r#"{"m": {"prices": [{"valid_from": "2026-01-01"}, {"valid_from": "2026-01-01"}]}}"#, "m.prices[1]: an other"),
        (r#"{"m": {"available_providers": ["openai", 1]}}"#, "m.available_providers[1]: a string"),
    ] {
        let error = with_models(text).expect_err(text).to_string();
        assert!(error.starts_with("the operator's models: ") && error.contains(expected), "{error}");
    }
    let prices = CatalogSources {
        operator_prices: Some(r#"{"models": {"m": {"input": -1, "output": 1}}}"#),
        operator_models: None,
    };
    assert!(Catalog::new(prices).expect_err("negative").to_string().contains("model `m`"));
}

#[test]
fn names_of_one_model_lead_to_each_other_over_several_steps() {
    let text = r#"{"a": {"fallback_models": ["b"]}, "b": {"fallback_models": ["c", "gone", "b"]}, "c": {}, "d": {}}"#;
    let catalog = with_models(text).expect("valid");
    assert_eq!(catalog.equivalents("a"), ["b", "c"]);
    assert_eq!(catalog.equivalents("b"), ["a", "c"]);
    assert_eq!(catalog.equivalents("c"), ["b", "a"], "nearest first");
    assert!(catalog.equivalents("d").is_empty() && catalog.equivalents("gone").is_empty());
}

#[test]
fn the_cost_follows_the_formula() {
    let price = ModelPrice {
        input: 2.0,
        output: 10.0,
        cache_read: Some(0.5),
        cache_write: Some(3.0),
        cache_write_5m: None,
        cache_write_1h: Some(4.0),
    };
    let bare = ModelPrice { cache_read: None, cache_write: None, cache_write_1h: None, ..price };
    let usage = TokenUsage { prompt: 1_000_000, ..TokenUsage::default() };
    for (usage, expected, expected_bare) in [
        (TokenUsage::default(), 0.0, 0.0),
        (TokenUsage { completion: 500_000, ..usage }, 7.0, 7.0),
        (TokenUsage { cache_read: 400_000, cache_write: 100_000, ..usage }, 1.0 + 0.2 + 0.3, 2.0),
        // Of the written tokens, 100 000 are not split.
        (
            TokenUsage { cache_write: 300_000, cache_write_5m: 100_000, cache_write_1h: 100_000, ..usage },
            1.4 + 0.3 + 0.3 + 0.4,
            2.0,
        ),
        // The parts alone determine the number of written tokens.
        (TokenUsage { cache_write_1h: 500_000, ..usage }, 1.0 + 2.0, 2.0),
    ] {
        let costs = (price.cost(&usage), bare.cost(&usage));
        assert!((costs.0 - expected).abs() < 1e-9 && (costs.1 - expected_bare).abs() < 1e-9, "{usage:?} {costs:?}");
    }
    let odd = TokenUsage { prompt: 1, cache_read: 5, ..TokenUsage::default() };
    assert!(price.cost(&odd) >= 0.0, "no cost is negative");
}

#[test]
fn calls_cost_what_queries_say() {
    // The values are the fixture of `node/engine/src/price.rs`.
    for (model, prompt, completion, cache_read, expected) in [
        ("gpt-4o", 100, 50, 0, 0.00075),
        ("gpt-4o-mini", 200, 20, 0, 0.000042),
        ("gpt-4o", 1000, 300, 400, 0.005),
        ("gpt-4o-mini", 10, 5, 0, 0.0000045),
    ] {
        let usage = TokenUsage { prompt, completion, cache_read, ..TokenUsage::default() };
        let cost = Catalog::built_in().price_at(model, NOW).expect("a price").cost(&usage);
        assert!((cost - expected).abs() < 1e-12, "{model} {cost}");
    }
}

#[test]
fn a_custom_model_has_its_own_price_only() {
    let members = json!({"input_cost_per_mil_tokens": 1, "output_cost_per_mil_tokens": 1});
    let (priced, _) = ModelSpec::parse("m", members.as_object().expect("an object"));
    let catalog = Catalog::built_in();
    let price = |custom| catalog.call_price(custom, "gpt-4o", NOW).map(|price| price.input);
    assert_eq!((price(None), price(Some(&priced))), (Some(2.5), Some(1.0)));
    assert_eq!(price(Some(&ModelSpec::default())), None);
}

#[test]
fn a_reservation_has_the_most_that_a_call_may_cost() {
    let catalog = Catalog::built_in();
    let spec = |name: &str| catalog.exact(name).expect("a model");
    let price = catalog.price_at("claude-sonnet-4-5", NOW).expect("a price");
    let claude = spec("claude-sonnet-4-5");
    let reserved = reserve(Some(claude), Some(&price), 1_000_000, Some(1000), 1);
    assert_eq!((reserved.output_tokens, reserved.usd), (1000, Some(6.0 + 0.015)), "all of the input may be cached");
    assert_eq!(reserve(Some(claude), None, 1, Some(u64::MAX), 1).output_tokens, 64_000, "no more than the model can");
    assert_eq!(reserve(Some(claude), None, 1, None, 2).output_tokens, 2 * OUTPUT_TOKENS_DEFAULT);
    assert_eq!(reserve(None, None, 1, Some(u64::MAX), u64::MAX).output_tokens, OUTPUT_TOKENS_MAX);
    let embedding = reserve(Some(spec("text-embedding-3-small")), None, 8, Some(5), 1);
    assert_eq!(embedding, CallReservation { input_tokens: 8, output_tokens: 0, usd: None });
    assert_eq!((estimate_tokens(0), estimate_tokens(1), estimate_tokens(8)), (0, 1, 2));
}
