//! Comparison of two documents, operation by operation: every difference is a line.

use std::collections::{BTreeMap, BTreeSet};

use assay_test_api::schema::{Document, Operation};
use serde_json::{Value, json};

use crate::form::{Form, Others, Text};

/// Deeper than any schema of either.
const DEPTH_MAX: usize = 40;

/// The contract, and a server's own document.
pub struct Pair<'d> {
    pub contract: &'d Document,
    pub ours: &'d Document,
}

impl<'d> Pair<'d> {
    /// `POST /v1/project request.name: is nullable in the contract only`
    pub fn differences(&self, not_served: &BTreeSet<String>) -> Vec<String> {
        let by_name = |document: &'d Document| -> BTreeMap<String, Operation<'d>> {
            document.operations().into_iter().map(|operation| (operation.name(), operation)).collect()
        };
        let (contract, ours) = (by_name(self.contract), by_name(self.ours));
        let mut found = Vec::new();
        for name in contract.keys().chain(ours.keys()).collect::<BTreeSet<_>>() {
            match (contract.get(name), ours.get(name)) {
                (Some(contract), Some(ours)) => self.operation(name, contract, ours, &mut found),
                // What is not served is listed elsewhere.
                (Some(_), None) if not_served.contains(name) => {}
                (Some(_), None) => found.push(format!("{name}: in the contract only")),
                (None, _) => found.push(format!("{name}: ours only")),
            }
        }
        found
    }

    fn operation(&self, name: &str, contract: &Operation<'d>, ours: &Operation<'d>, out: &mut Vec<String>) {
        let ids = (&contract.said["operationId"], &ours.said["operationId"]);
        if ids.0 != ids.1 {
            out.push(format!("{name}: is called {} in the contract and {} by us", ids.0, ids.1));
        }
        self.parameters(name, contract, ours, out);
        self.bodies(name, contract, ours, out);
        let statuses = |operation: &Operation<'d>| -> BTreeSet<String> {
            operation.said["responses"].as_object().into_iter().flatten().map(|(status, _)| status.clone()).collect()
        };
        let (wanted, found) = (statuses(contract), statuses(ours));
        out.extend(wanted.difference(&found).map(|status| format!("{name} status {status}: in the contract only")));
        out.extend(found.difference(&wanted).map(|status| format!("{name} status {status}: ours only")));
        let content = |document: &'d Document, operation: &Operation<'d>| -> BTreeMap<&'d str, &'d Value> {
            let answer = operation.said.pointer("/responses/200").map(|answer| document.resolved(answer));
            contents(answer.unwrap_or(&Value::Null))
        };
        let (wanted, found) = (content(self.contract, contract), content(self.ours, ours));
        self.contents(&format!("{name} answer"), &wanted, &found, out);
    }

    fn parameters(&self, name: &str, contract: &Operation<'d>, ours: &Operation<'d>, out: &mut Vec<String>) {
        let by_name = |document: &'d Document, operation: &Operation<'d>| -> BTreeMap<String, &'d Value> {
            let named = |one: &&'d Value| {
                format!("{} {}", one["in"].as_str().unwrap_or_default(), one["name"].as_str().unwrap_or_default())
            };
            document.parameters(operation).into_iter().map(|one| (named(&one), one)).collect()
        };
        let (wanted, found) = (by_name(self.contract, contract), by_name(self.ours, ours));
        for parameter in wanted.keys().chain(found.keys()).collect::<BTreeSet<_>>() {
            let place = format!("{name} {parameter}");
            let (Some(contract), Some(ours)) = (wanted.get(parameter), found.get(parameter)) else {
                let whose = if wanted.contains_key(parameter) { "in the contract only" } else { "ours only" };
                out.push(format!("{place}: {whose}"));
                continue;
            };
            required(&place, contract["required"] == true, ours["required"] == true, out);
            self.schemas(&place, &contract["schema"], &ours["schema"], 0, out);
        }
    }

    fn bodies(&self, name: &str, contract: &Operation<'d>, ours: &Operation<'d>, out: &mut Vec<String>) {
        let body = |document: &'d Document, operation: &Operation<'d>| -> &'d Value {
            operation.said.get("requestBody").map_or(&Value::Null, |body| document.resolved(body))
        };
        let (wanted, found) = (body(self.contract, contract), body(self.ours, ours));
        let place = format!("{name} request");
        if wanted.is_null() != found.is_null() {
            let whose = if found.is_null() { "in the contract only" } else { "ours only" };
            return out.push(format!("{place}: {whose}"));
        }
        required(&place, wanted["required"] == true, found["required"] == true, out);
        self.contents(&place, &contents(wanted), &contents(found), out);
    }

    fn contents(
        &self,
        place: &str,
        wanted: &BTreeMap<&str, &'d Value>,
        found: &BTreeMap<&str, &'d Value>,
        out: &mut Vec<String>,
    ) {
        for kind in wanted.keys().chain(found.keys()).collect::<BTreeSet<_>>() {
            match (wanted.get(kind), found.get(kind)) {
                (Some(contract), Some(ours)) => self.schemas(place, contract, ours, 0, out),
                (Some(_), None) => out.push(format!("{place} {kind}: in the contract only")),
                (None, _) => out.push(format!("{place} {kind}: ours only")),
            }
        }
    }

    fn schemas(&self, place: &str, contract: &'d Value, ours: &'d Value, depth: usize, out: &mut Vec<String>) {
        assert!(depth < DEPTH_MAX, "{place} does not end");
        let (wanted, found) = (Form::of(self.contract, contract), Form::of(self.ours, ours));
        if wanted.any || found.any {
            if wanted.any != found.any {
                let shown = |form: &Form<'_>| if form.any { "anything".to_owned() } else { words(form.types()) };
                out.push(format!("{place}: {} in the contract, {} of ours", shown(&wanted), shown(&found)));
            }
            return;
        }
        if wanted.nullable != found.nullable {
            let whose = if wanted.nullable { "in the contract only" } else { "of ours only" };
            out.push(format!("{place}: may be null {whose}"));
        }
        let types = (wanted.types(), found.types());
        if types.0 != types.1 {
            out.push(format!("{place}: {} in the contract, {} of ours", words(types.0), words(types.1)));
        }
        if let (Some(wanted), Some(found)) = (&wanted.text, &found.text) {
            texts(place, wanted, found, out);
        }
        if let (Some(wanted), Some(found)) = (wanted.lists.first(), found.lists.first()) {
            self.schemas(&format!("{place}[]"), wanted, found, depth + 1, out);
        }
        if !wanted.objects.is_empty() && !found.objects.is_empty() {
            self.objects(place, &wanted, &found, depth, out);
        }
    }

    fn objects(&self, place: &str, contract: &Form<'d>, ours: &Form<'d>, depth: usize, out: &mut Vec<String>) {
        let (wanted, found) = (contract.objects_by_tag(), ours.objects_by_tag());
        for tag in wanted.keys().chain(found.keys()).collect::<BTreeSet<_>>() {
            let place = if tag.is_empty() { place.to_owned() } else { format!("{place}<{tag}>") };
            let (Some(contract), Some(ours)) = (wanted.get(tag), found.get(tag)) else {
                let whose = if wanted.contains_key(tag) { "in the contract only" } else { "ours only" };
                out.push(format!("{place}: {whose}"));
                continue;
            };
            for name in contract.properties.keys().chain(ours.properties.keys()).collect::<BTreeSet<_>>() {
                let place = format!("{place}.{name}");
                match (contract.properties.get(name), ours.properties.get(name)) {
                    (Some(wanted), Some(found)) => {
                        required(&place, contract.required.contains(name), ours.required.contains(name), out);
                        self.schemas(&place, wanted, found, depth + 1, out);
                    }
                    (Some(_), None) => out.push(format!("{place}: in the contract only")),
                    (None, _) => out.push(format!("{place}: ours only")),
                }
            }
            match (contract.others, ours.others) {
                (Others::Open, Others::Open) | (Others::None, Others::None) => {}
                (Others::Like(wanted), Others::Like(found)) => {
                    self.schemas(&format!("{place}.*"), wanted, found, depth + 1, out);
                }
                (wanted, found) => {
                    let shown = |others: Others<'_>| match others {
                        Others::Open => "anything",
                        Others::None => "nothing",
                        Others::Like(_) => "what is described",
                    };
                    out.push(format!("{place}.*: {} in the contract, {} of ours", shown(wanted), shown(found)));
                }
            }
        }
    }
}

fn contents(holder: &Value) -> BTreeMap<&str, &Value> {
    let each = holder["content"].as_object().into_iter().flatten();
    each.map(|(kind, content)| (kind.as_str(), &content["schema"])).collect()
}

fn required(place: &str, contract: bool, ours: bool, out: &mut Vec<String>) {
    match (contract, ours) {
        (true, false) => out.push(format!("{place}: has to be there in the contract only")),
        (false, true) => out.push(format!("{place}: has to be there of ours only")),
        _ => {}
    }
}

fn texts(place: &str, contract: &Text, ours: &Text, out: &mut Vec<String>) {
    if contract.formats != ours.formats {
        out.push(format!("{place}: format {:?} in the contract, {:?} of ours", contract.formats, ours.formats));
    }
    match (&contract.words, &ours.words) {
        (Some(wanted), Some(found)) => {
            let missing: Vec<_> = wanted.difference(found).map(String::as_str).collect();
            let more: Vec<_> = found.difference(wanted).map(String::as_str).collect();
            if !missing.is_empty() {
                out.push(format!("{place}: words in the contract only: {}", missing.join(" ")));
            }
            if !more.is_empty() {
                out.push(format!("{place}: words of ours only: {}", more.join(" ")));
            }
        }
        (Some(_), None) => out.push(format!("{place}: words in the contract, any text of ours")),
        (None, Some(_)) => out.push(format!("{place}: any text in the contract, words of ours")),
        (None, None) => {}
    }
}

fn words<'a>(types: impl IntoIterator<Item = &'a str>) -> String {
    types.into_iter().collect::<Vec<_>>().join(" or ")
}

fn differences(contract: Value, ours: Value) -> Vec<String> {
    let document = |schema: Value| {
        let body = json!({"content": {"application/json": {"schema": schema}}});
        Document::new(json!({"paths": {"/a": {"post": {"requestBody": body}}}}))
    };
    let (contract, ours) = (document(contract), document(ours));
    Pair { contract: &contract, ours: &ours }.differences(&BTreeSet::new())
}

#[test]
fn what_means_the_same_is_no_difference() {
    let written_unlike = [
        (json!({"anyOf": [{"type": "string"}, {"type": "null"}]}), json!({"type": "string", "nullable": true})),
        (
            json!({"type": "string", "enum": ["a", null], "nullable": true}),
            json!({"type": "string", "enum": ["a"], "nullable": true}),
        ),
        (json!({"nullable": true}), json!({})),
        (
            json!({"allOf": [{"type": "object", "properties": {"a": {}}}, {}]}),
            json!({"type": "object", "properties": {"a": {}}}),
        ),
        (json!({"type": "object"}), json!({"type": "object", "additionalProperties": {"nullable": true}})),
    ];
    for (contract, ours) in written_unlike {
        assert_eq!(differences(contract.clone(), ours), Vec::<String>::new(), "{contract}");
    }
}

#[test]
fn every_difference_is_named_with_its_place() {
    let object =
        |properties: Value, required: Value| json!({"type": "object", "properties": properties, "required": required});
    let tagged = |tag: &str| object(json!({"type": {"type": "string", "enum": [tag]}}), json!(["type"]));
    for (contract, ours, line) in [
        (
            json!({"type": "string"}),
            json!({"type": "integer"}),
            "POST /a request: string in the contract, integer of ours",
        ),
        (
            json!({"type": "string", "nullable": true}),
            json!({"type": "string"}),
            "POST /a request: may be null in the contract only",
        ),
        (object(json!({"a": {}}), json!([])), object(json!({}), json!([])), "POST /a request.a: in the contract only"),
        (
            object(json!({"a": {}}), json!([])),
            object(json!({"a": {}}), json!(["a"])),
            "POST /a request.a: has to be there of ours only",
        ),
        (
            json!({"type": "string", "enum": ["a", "b"]}),
            json!({"type": "string", "enum": ["a"]}),
            "POST /a request: words in the contract only: b",
        ),
        (
            json!({"type": "array", "items": {"type": "string"}}),
            json!({"type": "array", "items": {}}),
            "POST /a request[]: string in the contract, anything of ours",
        ),
        (
            json!({"oneOf": [tagged("x"), tagged("y")]}),
            json!({"oneOf": [tagged("x"), tagged("z")]}),
            "POST /a request<type=y>: in the contract only",
        ),
    ] {
        let found = differences(contract, ours);
        assert!(found.iter().any(|found| found == line), "{line}: {found:?}");
    }
}
