//! Servers of prompts: what is read, and what errors say.

use serde_json::json;

use super::*;

const ID: &str = "00000000-0000-0000-0000-000000000007";

fn records() -> HashMap<Uuid, McpServerRecord> {
    HashMap::from([(ID.parse().unwrap(), McpServerRecord { url: "https://stored.example/mcp".to_owned() })])
}

fn specs(mcp: Value, mcp_auth: Value) -> Result<Vec<McpServerSpec>, McpServersError> {
    server_specs(&mcp, &records(), &mcp_auth, Uuid::nil())
}

#[test]
fn servers_are_named_by_url_and_by_record() {
    let mcp = json!({
        "docs": {"type": "url", "url": "https://docs.example/mcp?key=1", "enabled_tools": ["search"]},
        "stored": {"type": "id", "id": ID, "enabled_tools": null},
        "off": {"type": "id", "id": "no id", "is_disabled": true},
    });
    assert_eq!(record_ids(&mcp), Ok(vec![ID.parse().unwrap()]));
    let specs = specs(mcp, Value::Null).unwrap();
    let told: Vec<_> = specs.iter().map(|spec| (&*spec.name, spec.url.to_text(), spec.enabled_tools.clone())).collect();
    let expected = [
        ("docs", "https://docs.example/mcp?key=1".to_owned(), Some(vec!["search".to_owned()])),
        ("stored", "https://stored.example/mcp".to_owned(), None),
    ];
    assert_eq!(told, expected);
    assert!(specs[0].is_enabled("search") && !specs[0].is_enabled("write") && specs[1].is_enabled("write"));
}

#[test]
fn null_and_an_empty_object_mean_no_servers() {
    for mcp in [json!(null), json!({})] {
        assert_eq!(record_ids(&mcp), Ok(vec![]));
        assert!(specs(mcp, json!({})).unwrap().is_empty());
    }
}

#[test]
fn a_token_belongs_to_the_url_it_is_given_for() {
    let cases = [
        ("https://docs.example/mcp", true),
        // the same URL in another spelling
        ("HTTPS://Docs.Example:443/mcp", true),
        ("https://docs.example/other", false),
        ("https://docs.example/mcp?x=1", false),
        ("http://docs.example/mcp", false),
        ("https://docs.example:8443/mcp", false),
        ("https://docs.example.evil.example/mcp", false),
    ];
    for (url, is_given) in cases {
        let mcp = json!({"docs": {"type": "url", "url": "https://docs.example/mcp"}});
        let specs = specs(mcp, json!({url: {"oauth_token": "s3cret"}})).unwrap();
        assert_eq!(specs[0].bearer.is_some(), is_given, "{url}");
    }
}

#[test]
fn entries_without_a_token_are_left_out() {
    for entry in [json!({}), json!({"oauth_token": null}), json!({"oauth_token": ""})] {
        let mcp = json!({"docs": {"type": "url", "url": "https://docs.example/mcp"}});
        assert!(specs(mcp, json!({"https://docs.example/mcp": entry})).unwrap()[0].bearer.is_none());
    }
}

#[test]
fn errors_say_where_and_what_is_valid_and_show_no_secret() {
    let many: Map<String, Value> =
        (0..=SERVERS_MAX).map(|n| (format!("s{n}"), json!({"type": "url", "url": "https://a.example"}))).collect();
    let one = json!({"a": {"type": "url", "url": "https://a.example/s3cret"}});
    let cases = [
        (json!([]), json!(null), "prompt_data.mcp: must be an object of servers by name"),
        (json!({"a": 1}), json!(null), "prompt_data.mcp.a: must be an object with `type`"),
        (json!({"": {}}), json!(null), "prompt_data.mcp: names of servers have 1 to 255 bytes"),
        (json!({"a": {"type": "x"}}), json!(null), "prompt_data.mcp.a.type: must be `id` or `url`"),
        (json!({"a": {"type": "url"}}), json!(null), "prompt_data.mcp.a.url: must be a text"),
        (
            json!({"a": {"type": "url", "url": "ftp://s3cret"}}),
            json!(null),
            "prompt_data.mcp.a.url: the URL begins neither with https:// nor with http://",
        ),
        (
            json!({"a": {"type": "id", "id": "7"}}),
            json!(null),
            "prompt_data.mcp.a.id: must be the UUID of an MCP server",
        ),
        (
            json!({"a": {"type": "id", "id": Uuid::max()}}),
            json!(null),
            "prompt_data.mcp.a.id: there is no such MCP server in the project, or you may not read it",
        ),
        (
            json!({"a": {"type": "id", "id": ID, "is_disabled": 1}}),
            json!(null),
            "prompt_data.mcp.a.is_disabled: must be true or false",
        ),
        (
            json!({"a": {"type": "id", "id": ID, "enabled_tools": [1]}}),
            json!(null),
            "prompt_data.mcp.a.enabled_tools: must be a list of at most 1000 names, or null for all",
        ),
        (Value::Object(many), json!(null), "prompt_data.mcp: has more than 20 servers that are not disabled"),
        (one.clone(), json!(1), "mcp_auth: must be an object of at most 1000 URLs with `oauth_token`"),
        (
            one.clone(),
            json!({"https://a.example/s3cret": "s3cret"}),
            "mcp_auth[0]: must be an object such as {\"oauth_token\": \"...\"}",
        ),
        (
            one.clone(),
            json!({"https://a.example/s3cret": {"oauth_token": 1}}),
            "mcp_auth[0].oauth_token: must be a text",
        ),
        (
            one.clone(),
            json!({"https://a.example/s3cret": {"oauth_token": "s3cret\r\n"}}),
            "mcp_auth[0].oauth_token: the token is empty, larger than 16384 bytes, or has characters other than visible \
             ASCII",
        ),
        (
            one,
            json!({"s3cret": {"oauth_token": "s3cret"}}),
            "mcp_auth[0]: its key is no valid URL: the URL begins neither with https:// nor with http://",
        ),
    ];
    for (mcp, mcp_auth, expected) in cases {
        let error = specs(mcp, mcp_auth).expect_err(expected).to_string();
        assert_eq!(error, expected);
        assert!(!error.contains("s3cret"));
    }
}
