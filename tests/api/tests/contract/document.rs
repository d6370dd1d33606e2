//! The document of a server: equal to the contract, except for listed differences.

use std::collections::{BTreeMap, BTreeSet};

use assay_test_api::http::{Request, send};
use assay_test_api::schema::Document;
use serde_json::Value;

use crate::compare::Pair;
use crate::listed::{self, contract};

/// Returns the document of `url`, requested without a credential.
pub fn shown_by(url: &str) -> Document {
    let request = Request { method: "GET".into(), target: "/openapi.json".into(), ..Request::default() };
    let answer = send(url, &request).unwrap_or_else(|error| panic!("{error:#}"));
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("content-type").as_deref(), Some("application/json"));
    Document::new(serde_json::from_slice::<Value>(&answer.body).expect("JSON"))
}

pub fn page_is_shown(url: &str) {
    let request = Request { method: "GET".into(), target: "/docs".into(), ..Request::default() };
    let answer = send(url, &request).unwrap_or_else(|error| panic!("{error:#}"));
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(answer.header("content-type").is_some_and(|kind| kind.starts_with("text/html")));
    assert!(answer.header("content-security-policy").is_some_and(|policy| policy.starts_with("default-src 'none'")));
    assert!(answer.text().contains("openapi.json"));
}

/// Each page that the guide's list links to is served, and so is the page of each error code.
pub fn guide_is_shown(url: &str) {
    let page = |path: &str| {
        let request = Request { method: "GET".into(), target: path.into(), ..Request::default() };
        let answer = send(url, &request).unwrap_or_else(|error| panic!("{error:#}"));
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        assert!(
            answer.header("content-security-policy").is_some_and(|policy| policy.starts_with("default-src 'none'"))
        );
        answer.text()
    };
    let first = page("/docs/guide");
    let links = |text: &str| {
        let all = text.split("href=\"").skip(1).filter_map(|rest| rest.split(['"', '#']).next());
        all.filter(|link| link.starts_with("/docs/guide/")).map(str::to_owned).collect::<BTreeSet<_>>()
    };
    let pages = links(&first);
    assert!(pages.len() > 10, "{pages:?}");
    let errors: BTreeSet<String> =
        pages.iter().flat_map(|path| links(&page(path))).filter(|link| link.contains("/errors/")).collect();
    assert!(errors.len() > 10, "{errors:?}");
    errors.iter().for_each(|path| drop(page(path)));
}

/// Returns unlisted differences between the document and the contract.
pub fn complaints(ours: &Document) -> Vec<String> {
    let contract = contract();
    let not_served: BTreeMap<String, String> = listed::read("not_served.json");
    let not_served: BTreeSet<String> = not_served.into_keys().collect();
    let pair = Pair { contract: &contract, ours };
    let found = pair.differences(&not_served);
    if let Ok(path) = std::env::var("ASSAY_TEST_DIFFERENCES") {
        std::fs::write(path, found.join("\n")).expect("a file for the differences");
    }
    let mut complaints = listed::complaints("differences.json", &found);
    let names: BTreeSet<String> = ours.operations().iter().map(|operation| operation.name()).collect();
    complaints
        .extend(not_served.intersection(&names).map(|name| format!("{name} is described and listed as not served")));
    complaints
}
