//! Secrets at rest: confidential values are in none of a node's files, log lines and metrics; and their master key is
//! changed while it runs.

use std::io::Read;
use std::path::Path;

use assay_test_api::http::{Request, send};
use assay_test_api::process::run;
use assay_test_api::search::Texts;
use assay_test_api::server::{Options, Server};
use serde_json::{Value, json};

/// Each kind of secret, together ten.
const AI_SECRETS: usize = 3;
const ENV_VARS: usize = 3;
const API_KEYS: usize = 4;
/// Public value that has to be found, which proves that the search works.
const MARK: &str = "a-name-that-may-be-read";

fn start(options: &Options) -> Server {
    Server::start(options).unwrap_or_else(|error| panic!("{error:#}"))
}

fn answer(server: &Server, method: &str, target: &str, body: Option<&Value>) -> (u16, String) {
    let request = Request {
        method: method.into(),
        target: target.into(),
        headers: vec![("authorization".into(), format!("Bearer {}", server.key))],
        body: body.map(|body| body.to_string().into_bytes()),
        declared_length: None,
    };
    let answer = send(&server.url, &request).unwrap_or_else(|error| panic!("{error:#}"));
    (answer.status, answer.text())
}

fn call(server: &Server, method: &str, target: &str, body: Option<&Value>) -> Value {
    let (status, text) = answer(server, method, target, body);
    assert_eq!(status, 200, "{method} {target}: {text}");
    serde_json::from_str(&text).expect("JSON")
}

fn id_of(object: &Value) -> &str {
    object["id"].as_str().expect("an id")
}

/// Returns an incompressible secret.
fn new_secret() -> String {
    let mut random = [0; 32];
    let mut source = std::fs::File::open("/dev/urandom").expect("the system's randomness");
    source.read_exact(&mut random).expect("random bytes");
    random.iter().fold("sk-".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}

/// Makes them all, and changes those that can be changed: every text that was ever a secret.
fn make_all(server: &Server) -> Vec<String> {
    let project = call(server, "POST", "/v1/project", Some(&json!({"name": MARK})));
    let org = project["org_id"].clone();
    let mut texts = Vec::new();
    for number in 0..AI_SECRETS {
        let (first, second) = (new_secret(), new_secret());
        let sent = json!({"name": format!("{MARK} {number}"), "type": "openai", "secret": first});
        let made = call(server, "POST", "/v1/ai_secret", Some(&sent));
        call(server, "PATCH", &format!("/v1/ai_secret/{}", id_of(&made)), Some(&json!({"secret": second})));
        texts.extend([first, second]);
    }
    for number in 0..ENV_VARS {
        let (first, second) = (new_secret(), new_secret());
        let (object, id) = if number == 0 { ("organization", &org) } else { ("project", &project["id"]) };
        let sent =
            |value: &str| json!({"object_type": object, "object_id": id, "name": format!("V{number}"), "value": value});
        call(server, "POST", "/v1/env_var", Some(&sent(&first)));
        call(server, "PUT", "/v1/env_var", Some(&sent(&second)));
        texts.extend([first, second]);
    }
    for number in 0..API_KEYS {
        let made = call(server, "POST", "/v1/api_key", Some(&json!({"name": format!("{MARK} {number}")})));
        texts.push(made["key"].as_str().expect("is shown once").to_owned());
    }
    texts
}

/// Looks through the log, and through every file of a node that was stopped.
fn nowhere(options: &Options, texts: &[String]) {
    // No part of it either that nobody could guess the rest from.
    let parts = texts.iter().flat_map(|text| [text.as_str(), &text[3..35], &text[text.len() - 32..]]);
    let sought = Texts::new(parts.chain([MARK]));
    let log = std::fs::read(options.data_dir.with_extension("log")).expect("the log");
    let mut found = sought.below(&options.data_dir);
    found.extend(sought.within(&log).into_iter().map(|text| format!("the log: {text}")));
    let (marked, secret): (Vec<_>, Vec<_>) = found.into_iter().partition(|place| place.ends_with(MARK));
    assert!(secret.is_empty(), "{secret:#?}");
    assert!(!marked.is_empty(), "not even what is no secret was found");
}

#[test]
fn what_a_node_was_told_in_confidence_is_in_none_of_its_files() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut options = Options::new(&dir.path().join("data"));
    // All that there is to be said.
    options.settings = vec!["log.filter=debug".into()];
    let server = start(&options);
    let texts = make_all(&server);
    assert_eq!(texts.len(), 2 * (AI_SECRETS + ENV_VARS) + API_KEYS);
    let (status, metrics) = answer(&server, "GET", "/metrics", None);
    assert_eq!(status, 200, "{metrics}");
    let refused = answer(&server, "POST", "/v1/ai_secret", Some(&json!({"name": 1, "secret": texts[0]})));
    assert_eq!(refused.0, 400, "{}", refused.1);
    for text in &texts {
        assert!(!metrics.contains(text) && !refused.1.contains(text), "{text}");
    }
    let listed = call(&server, "GET", "/v1/ai_secret", None);
    assert!(server.stop().expect("stops").success());
    nowhere(&options, &texts);

    let server = start(&options);
    assert_eq!(call(&server, "GET", "/v1/ai_secret", None), listed, "with the key that the first start made");
    server.kill().expect("is killed");
    nowhere(&options, &texts);
}

fn write_key(file: &Path, byte: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(file, byte.repeat(32)).expect("writes");
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).expect("is its owner's");
}

#[test]
fn a_master_key_is_changed_and_a_node_without_it_says_so() {
    let dir = tempfile::tempdir().expect("a directory");
    let (old, new) = (dir.path().join("old.key"), dir.path().join("new.key"));
    write_key(&old, "ab");
    write_key(&new, "cd");
    let mut options = Options::new(&dir.path().join("data"));
    let data = options.data_dir.to_str().expect("a path that is text").to_owned();
    let rotate = ["admin", "rotate-master-key", "--data-dir", &data];
    let current = |file: &Path| format!("secrets.master_key_file={}", file.display());
    let sent = json!({"name": "s", "secret": new_secret()});

    options.settings = vec![current(&old)];
    let server = start(&options);
    call(&server, "POST", "/v1/ai_secret", Some(&sent));
    assert!(!options.data_dir.join("master.key").exists(), "one that is given is not made");
    assert!(server.stop().expect("stops").success());
    let why = run(&rotate, &[], "").expect("runs").errors;
    assert!(why.contains("no node runs on"), "{why}");

    options.settings = vec![current(&new), format!("secrets.old_master_key_files=[\"{}\"]", old.display())];
    let server = start(&options);
    for again in [1, 0] {
        let said = run(&rotate, &[], "").expect("runs").json().expect("is done");
        assert_eq!((&said["wrapped_again"], &said["data_keys"]), (&json!(again), &json!(1)), "{said}");
    }
    assert!(server.stop().expect("stops").success());

    options.settings = vec![current(&new)];
    let server = start(&options);
    call(&server, "PUT", "/v1/ai_secret", Some(&sent));
    assert!(server.stop().expect("stops").success());

    options.settings = vec![current(&old)];
    let server = start(&options);
    let (status, why) = answer(&server, "PUT", "/v1/ai_secret", Some(&sent));
    assert!(status == 503 && why.contains("secrets.master_key_file"), "{status}: {why}");
    assert_eq!(call(&server, "GET", "/v1/ai_secret", None)["objects"][0]["name"], "s", "it serves what needs no key");
    assert!(server.log().contains("does not have the master key"), "{}", server.log());
}
