//! Tests of embeddings.

use super::*;

#[test]
fn a_request_keeps_its_body() {
    let body = json!({ "model": "m", "input": ["a", "b"], "dimensions": 8, "encoding_format": "base64", "x": 1 });
    let request = EmbeddingRequest::read(&body).expect("reads");
    assert_eq!((request.model.as_str(), request.input.inputs, request.dimensions), ("m", 2, Some(8)));
    let mut expected = body.clone();
    expected["model"] = json!("other");
    assert_eq!(request.body_for("other"), expected);
}

#[test]
fn a_bad_request_is_refused_with_its_path() {
    let table = [
        (json!({ "input": "a" }), "model: expected a text"),
        (json!({ "model": "m" }), "input: expected a text, a list of tokens, or a list of either"),
        (
            json!({ "model": "m", "input": "a", "dimensions": -1 }),
            "dimensions: expected a whole number that is not negative",
        ),
    ];
    for (body, expected) in table {
        assert_eq!(EmbeddingRequest::read(&body).expect_err("is bad").to_string(), expected);
    }
}

#[test]
fn the_length_of_vectors_is_known_in_both_encodings() {
    let table = [
        (json!([{ "embedding": [0.1, 0.2, 0.3] }, { "embedding": [1, 2, 3] }]), 2, 3),
        // three floats are 12 bytes
        (json!([{ "embedding": "AAAAAAAAAAAAAAAA" }]), 1, 3),
        // two are 8, with padding
        (json!([{ "embedding": "AAAAAAAAAAA=" }]), 1, 2),
        (json!([]), 0, 0),
    ];
    for (data, vectors, embedding_length) in table {
        let body =
            json!({ "object": "list", "model": "m", "data": data, "usage": { "prompt_tokens": 4, "total_tokens": 4 } });
        let response = EmbeddingResponse::read(&body).expect("reads");
        assert_eq!((response.vectors, response.embedding_length), (vectors, embedding_length), "{data}");
        assert_eq!(response.usage.map(|usage| (usage.input, usage.output)), Some((4, 0)));
    }
    assert!(EmbeddingResponse::read(&json!({ "data": [{ "embedding": 1 }] })).is_err());
    assert!(EmbeddingResponse::read(&json!({})).is_err());
}
