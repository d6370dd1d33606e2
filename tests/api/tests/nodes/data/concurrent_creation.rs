//! Concurrent creation of the same object on three nodes: one is made, and all get the same response.

use std::collections::BTreeSet;
use std::sync::Barrier;

use anyhow::{Context, Result, ensure};
use assay_test_api::dev::Dev;
use assay_test_api::rows::call;
use serde_json::{Value, json};

const MAKERS: usize = 10;
const CLIENTS: usize = 48;
const GROUPS_OF_EACH: usize = 10;

/// Paths with what is sent to them.
fn things(project: &str, org: &str, role: &str, user: &str) -> Vec<(&'static str, Value)> {
    let part = |more: Value| {
        let mut body = json!({"project_id": project, "name": "at once"});
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        body
    };
    let code = json!({"type": "code", "data": {
        "type": "inline", "runtime_context": {"runtime": "node", "version": "20"}, "code": "1"}});
    vec![
        ("/v1/project", json!({"name": "at once"})),
        ("/v1/experiment", part(json!({}))),
        ("/v1/dataset", part(json!({}))),
        ("/v1/prompt", part(json!({"slug": "prompt"}))),
        ("/v1/function", part(json!({"slug": "function", "function_data": code}))),
        ("/v1/project_tag", part(json!({}))),
        ("/v1/project_score", part(json!({"score_type": "slider"}))),
        ("/v1/span_iframe", part(json!({"url": "https://example.com"}))),
        ("/v1/group", json!({"name": "at once"})),
        ("/v1/role", json!({"name": "at once"})),
        ("/v1/view", json!({"object_type": "project", "object_id": project, "view_type": "logs", "name": "at once"})),
        ("/v1/acl", json!({"object_type": "organization", "object_id": org, "user_id": user, "role_id": role})),
    ]
}

fn one_is_made(dev: &Dev, path: &str, body: &Value) -> Result<()> {
    let answers: Vec<Result<Value>> = std::thread::scope(|scope| {
        let makers: Vec<_> = (0..MAKERS)
            .map(|maker| {
                let url = &dev.urls[maker % dev.urls.len()];
                let mut body = body.clone();
                // Whose it is shows which of them was made.
                body["description"] = format!("of maker {maker}").into();
                scope.spawn(move || call(url, "POST", path, &body))
            })
            .collect();
        makers.into_iter().map(|maker| maker.join().expect("a maker ends")).collect()
    });
    let mut different = BTreeSet::new();
    for answer in answers {
        different.insert(answer?.to_string());
    }
    ensure!(different.len() == 1, "{path}: {} different answers: {different:?}", different.len());
    Ok(())
}

/// Checks that all changes of access form one chain, whichever nodes were used.
fn is_one_chain(dev: &Dev, org: &str, more_than: usize) -> Result<()> {
    let query = format!("SELECT sequence, previous_hash, hash FROM org_audit_logs('{org}') ORDER BY sequence");
    let answer = call(&dev.urls[1], "POST", "/btql", &json!({"query": query, "fmt": "json"}))?;
    let entries = answer["data"].as_array().context("rows")?;
    ensure!(entries.len() > more_than, "only {} entries", entries.len());
    for (place, entry) in entries.iter().enumerate() {
        ensure!(entry["sequence"] == place + 1, "where {} should be is {entry}", place + 1);
        ensure!(place == 0 || entry["previous_hash"] == entries[place - 1]["hash"], "{entry} does not go on");
    }
    Ok(())
}

/// Groups, each another: every node has many that wait to be put on record, and each gets its turn.
fn many_are_put_on_record(dev: &Dev) -> Result<()> {
    let began = Barrier::new(CLIENTS);
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let (url, began) = (&dev.urls[client % dev.urls.len()], &began);
                scope.spawn(move || -> Result<()> {
                    began.wait();
                    for nth in 0..GROUPS_OF_EACH {
                        call(url, "POST", "/v1/group", &json!({"name": format!("group {nth} of {client}")}))?;
                    }
                    Ok(())
                })
            })
            .collect();
        clients.into_iter().try_for_each(|client| client.join().expect("a client ends"))
    })
}

#[test]
fn what_many_make_at_once_is_made_once() {
    let dir = tempfile::tempdir().expect("a directory");
    let dev = Dev::start(&dir.path().join("data")).unwrap_or_else(|error| panic!("{error:#}"));
    let run = || -> Result<()> {
        let ask = |path: &str, body: Value| call(&dev.urls[0], "POST", path, &body);
        let me = ask("/api/self/me", json!({}))?;
        let text = |value: &Value| value.as_str().map(str::to_owned).context("a text");
        let (user, org) = (text(&me["id"])?, text(&me["organizations"][0]["id"])?);
        let project = text(&ask("/v1/project", json!({"name": "of what is made"}))?["id"])?;
        let role = text(&ask("/v1/role", json!({"name": "granted"}))?["id"])?;
        for (path, body) in things(&project, &org, &role, &user) {
            one_is_made(&dev, path, &body)?;
        }
        is_one_chain(&dev, &org, MAKERS)?;
        many_are_put_on_record(&dev)?;
        is_one_chain(&dev, &org, CLIENTS * GROUPS_OF_EACH)
    };
    run().unwrap_or_else(|error| panic!("{error:#}\n{}", dev.log()));
}
