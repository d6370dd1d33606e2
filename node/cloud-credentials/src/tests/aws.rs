//! Signatures are those of botocore, and roles are assumed as STS documents it.

use assay_node_models::provider::HiddenText;
use serde_json::{Value, json};

use super::provider;
use crate::CredentialError;
use crate::aws::{
    AwsCredentials, AwsRequest, SigningScope, assume_role_request, aws_credentials, aws_region, parse_assumed_role,
    signature_headers,
};

const NOW_MS: i64 = 1_440_938_160_000;

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().expect("a text")
}

#[test]
fn signatures_are_those_of_botocore() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("../golden/signatures.json")).expect("a list of cases");
    assert!(cases.len() >= 50);
    for case in &cases {
        let headers: Vec<(String, String)> = serde_json::from_value(case["headers"].clone()).expect("pairs");
        let request = AwsRequest {
            method: text(case, "method"),
            url: text(case, "url"),
            headers: &headers,
            body: text(case, "body").as_bytes(),
        };
        let credentials = AwsCredentials {
            access_key_id: text(case, "access_key_id").to_owned(),
            secret_access_key: HiddenText::new(text(case, "secret_access_key")),
            session_token: case["session_token"].as_str().map(HiddenText::new),
        };
        let scope = SigningScope { region: text(case, "region"), service: text(case, "service") };
        let now_ms = case["now_ms"].as_i64().expect("a time");
        let added = signature_headers(&request, &credentials, &scope, now_ms).expect("a signature");
        let authorization = added.iter().find(|(name, _)| name == "authorization").map(|(_, value)| value.as_str());
        assert_eq!(authorization, case["authorization"].as_str(), "{case}");
        assert_eq!(added.len(), if case["session_token"].is_null() { 2 } else { 3 });
    }
}

/// The case `get-vanilla` of the test suite that AWS published.
#[test]
fn the_published_signature_is_made() {
    let credentials = AwsCredentials {
        access_key_id: "AKIDEXAMPLE".to_owned(),
        secret_access_key: HiddenText::new("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
        session_token: None,
    };
    let request = AwsRequest { method: "GET", url: "https://example.amazonaws.com/", headers: &[], body: b"" };
    let scope = SigningScope { region: "us-east-1", service: "service" };
    let added = signature_headers(&request, &credentials, &scope, NOW_MS).expect("a signature");
    let expected = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, \
        SignedHeaders=host;x-amz-date, Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31";
    assert_eq!(added[0], ("x-amz-date".to_owned(), "20150830T123600Z".to_owned()));
    assert_eq!(added[1], ("authorization".to_owned(), expected.to_owned()));
}

#[test]
fn what_cannot_be_signed_is_an_error() {
    let credentials = aws_credentials(&provider("bedrock", &json!({"access_key": "AKID"})), "key").expect("a key");
    let scope = SigningScope { region: "r", service: "s" };
    let sign = |url, now_ms| {
        signature_headers(&AwsRequest { method: "GET", url, headers: &[], body: b"" }, &credentials, &scope, now_ms)
    };
    for (url, now_ms) in [("no address", NOW_MS), ("https://", NOW_MS), ("https://u@h/", NOW_MS), ("https://h/", -1)] {
        assert!(matches!(sign(url, now_ms), Err(CredentialError::Signature { .. })), "{url} {now_ms}");
    }
}

#[test]
fn keys_come_from_the_secret_and_its_metadata() {
    let parts = |found: AwsCredentials| {
        let token = found.session_token.as_ref().map(|token| token.reveal().to_owned());
        (found.access_key_id, found.secret_access_key.reveal().to_owned(), token)
    };
    for (metadata, secret, id, token) in [
        (json!({"access_key": "AKID"}), " k \n", "AKID", None),
        (json!({"access_key": "AKID", "session_token": "t"}), "k", "AKID", Some("t")),
        (json!({}), r#"{"access_key_id": "JSON", "secret_access_key": "k"}"#, "JSON", None),
        (json!({}), r#"{"access_key": "JSON", "secret_key": "k", "session_token": "t"}"#, "JSON", Some("t")),
        (json!({"access_key": "AKID"}), r#"{"access_key_id": "JSON", "secret_access_key": "k"}"#, "AKID", None),
    ] {
        let found = aws_credentials(&provider("bedrock", &metadata), secret).expect("a key");
        assert_eq!(parts(found), (id.to_owned(), "k".to_owned(), token.map(str::to_owned)), "{metadata} {secret}");
    }
    for (metadata, secret, expected) in [
        (json!({}), "hidden-key", "metadata.access_key"),
        (json!({"access_key": "A/B"}), "hidden-key", "the id of the access key"),
        (json!({"access_key": "AKID"}), "hidden-key x", "the secret access key"),
        (json!({"access_key": "AKID"}), "", "the secret access key"),
        (json!({"access_key": "AKID", "session_token": "a\nb"}), "hidden-key", "the session token"),
        (json!({}), r#"{"access_key_id": "JSON"}"#, "`secret_access_key`"),
        (json!({}), r#"{"secret_access_key": "hidden-key"}"#, "`access_key_id`"),
        (json!({}), "{hidden-key", "no JSON object"),
    ] {
        let why = aws_credentials(&provider("bedrock", &metadata), secret).expect_err("no key");
        assert!(why.to_string().contains(expected) && !format!("{why} {why:?}").contains("hidden"), "{why}");
        assert!(why.blames_secret());
    }
    assert_eq!(aws_region(&provider("bedrock", &json!({}))), Ok("us-east-1"));
    assert!(aws_region(&provider("bedrock", &json!({"region": "x.evil/"}))).is_err());
}

fn role(extra: &Value) -> Value {
    let mut metadata = json!({"access_key": "AKID", "role_arn": "arn:aws:iam::1:role/r", "region": "eu-central-1"});
    let fields = metadata.as_object_mut().expect("an object");
    fields.extend(extra.as_object().expect("an object").clone());
    metadata
}

#[test]
fn a_role_is_assumed_at_the_region_of_the_secret() {
    let common = "Action=AssumeRole&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr\
        &RoleSessionName=assay-gateway&DurationSeconds=3600";
    for (extra, url, end) in [
        (json!({}), "https://sts.eu-central-1.amazonaws.com/", ""),
        (json!({"external_id": "e 1"}), "https://sts.eu-central-1.amazonaws.com/", "&ExternalId=e%201"),
        (json!({"region": "cn-north-1"}), "https://sts.cn-north-1.amazonaws.com.cn/", ""),
        (json!({"token_url": "https://vpce-1.sts.example/"}), "https://vpce-1.sts.example/", ""),
    ] {
        let request = assume_role_request(&provider("bedrock", &role(&extra)), "k", NOW_MS).expect("a request");
        assert_eq!((request.method, request.url.as_str()), ("POST", url));
        assert_eq!(request.body, format!("{common}{end}"));
        let names: Vec<_> = request.headers.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["content-type", "x-amz-date", "authorization"]);
        let signed = "SignedHeaders=content-type;host;x-amz-date";
        assert!(request.headers[2].1.contains(signed), "{}", request.headers[2].1);
    }
    let without = json!({"access_key": "AKID"});
    let why = assume_role_request(&provider("bedrock", &without), "k", NOW_MS).expect_err("no role");
    assert!(why.to_string().contains("metadata.role_arn"));
}

#[test]
fn the_answer_of_sts_has_temporary_credentials() {
    let body = r#"<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult>
        <AssumedRoleUser><Arn>arn:aws:sts::1:assumed-role/r/s</Arn></AssumedRoleUser>
        <Credentials><AccessKeyId>ASIA1</AccessKeyId><SecretAccessKey>a/b&amp;lt;c</SecretAccessKey>
        <SessionToken>tok+en==</SessionToken><Expiration>2015-08-30T13:36:00Z</Expiration></Credentials>
        </AssumeRoleResult></AssumeRoleResponse>"#;
    let (credentials, expires) = parse_assumed_role(200, body.as_bytes()).expect("credentials");
    assert_eq!(expires, NOW_MS + 3_600_000);
    assert_eq!(credentials.access_key_id, "ASIA1");
    assert_eq!(credentials.secret_access_key.reveal(), "a/b&lt;c");
    assert_eq!(credentials.session_token.as_ref().map(HiddenText::reveal), Some("tok+en=="));
    assert!(!format!("{credentials:?}").contains("tok+en"));
    for (from, to) in [("Credentials>", "x>"), ("<SessionToken>", "<"), ("2015-08-30T", ""), ("ASIA1", " ")] {
        let why = parse_assumed_role(200, body.replace(from, to).as_bytes()).expect_err("no credentials");
        assert!(matches!(why, CredentialError::Answer { .. }) && !why.blames_secret(), "{why}");
    }
    let refused = b"<ErrorResponse><Error><Code>AccessDenied</Code><Message>User x</Message></Error></ErrorResponse>";
    let why = parse_assumed_role(403, refused).expect_err("a refusal");
    assert_eq!(why, CredentialError::Refused { status: 403, code: "AccessDenied".to_owned() });
    assert_eq!(parse_assumed_role(503, b"x"), Err(CredentialError::Failed { status: 503 }));
}
