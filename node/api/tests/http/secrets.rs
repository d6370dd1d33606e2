//! AI secrets and environment variables: taken, never given back.

use serde_json::{Value, json};

use crate::fixture::Fixture;

const SECRET: &str = "sk-of-a-provider-0123456789";

fn send(fixture: &Fixture, method: &str, path: &str, body: &Value) -> crate::client::ClientResponse {
    fixture.call(method, path, &[("Content-Type", "application/json")], body.to_string().as_bytes())
}

fn id_of(object: &Value) -> &str {
    object["id"].as_str().expect("an id")
}

#[test]
fn no_answer_shows_a_secret() {
    let fixture = Fixture::open();
    let project = fixture.project("p");
    let on =
        json!({"object_type": "project", "object_id": project, "name": "TOKEN", "value": SECRET, "metadata": {"a": 1}});
    let secret = json!({"name": "s", "type": "openai", "secret": SECRET});
    for (path, sent, changed) in [
        ("/v1/ai_secret", &secret, json!({"secret": SECRET, "name": "s"})),
        ("/v1/env_var", &on, json!({"value": SECRET, "name": "TOKEN"})),
    ] {
        let answers =
            [send(&fixture, "POST", path, sent), send(&fixture, "POST", path, sent), send(&fixture, "PUT", path, sent)];
        let made = answers.map(|answer| answer.ok());
        let one = format!("{path}/{}", id_of(&made[0]));
        let rest =
            [fixture.get(path), fixture.get(&one), send(&fixture, "PATCH", &one, &changed)].map(|answer| answer.ok());
        for answer in made.iter().chain(&rest) {
            let text = answer.to_string();
            assert!(!text.contains(SECRET) && text.contains("sk-***6789"), "{path}: {text}");
            assert!(!text.contains("sealed"), "{path}: {text}");
        }
        let gone = fixture.call("DELETE", &one, &[], b"").ok();
        assert!(!gone.to_string().contains(SECRET) && gone["id"] == made[0]["id"]);
        fixture.get(&one).refused(404);
    }
    let refused = fixture.post("/v1/ai_secret", &json!({"name": "s", "secret": [SECRET]})).refused(400);
    assert!(refused.contains("`secret`") && !refused.contains(SECRET), "{refused}");
}

#[test]
fn a_secret_is_listed_for_clients_and_deleted_by_its_name() {
    let fixture = Fixture::open();
    let made = fixture.post("/v1/ai_secret", &json!({"name": "s", "secret": SECRET})).ok();
    let listed = fixture.post("/api/ai_secret/get", &json!({"org_id": made["org_id"]})).ok();
    assert_eq!(listed, json!([made]));
    assert_eq!(fixture.post("/api/ai_secret/get", &json!({})).ok(), json!([made]));
    fixture.post("/api/ai_secret/get", &json!({"org_id": "11111111-2222-4333-8444-555555555555"})).refused(404);
    let named = fixture.get("/v1/ai_secret?ai_secret_name=s&ai_secret_type=openai").ok();
    assert_eq!(named["objects"], json!([]), "of another type");
    send(&fixture, "DELETE", "/v1/ai_secret", &json!({"name": "t"})).refused(404);
    assert_eq!(send(&fixture, "DELETE", "/v1/ai_secret", &json!({"name": "s"})).ok()["id"], made["id"]);
    assert_eq!(fixture.get("/v1/ai_secret").ok()["objects"], json!([]));
    fixture.knock("POST", "/api/ai_secret/get").refused(401);
}
