//! Bodies of the operations on rows, preceded by the digit by which the target `body` selects each operation.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use assay_test_api::case::{Case, Step};
use assay_test_api::corpus::Corpus;
use assay_test_api::template::{self, Variables};
use serde_json::Value;

const IDS: [&str; 5] = ["project", "experiment", "dataset", "id", "other"];

/// The steps of every case.
pub fn steps(cases: &Path) -> Result<Vec<Step>> {
    let mut paths: Vec<_> = fs::read_dir(cases)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    paths.sort();
    let mut steps = Vec::new();
    for path in paths {
        let case: Case =
            serde_json::from_str(&fs::read_to_string(&path)?).with_context(|| path.display().to_string())?;
        steps.extend(case.steps);
    }
    Ok(steps)
}

pub fn seeds(steps: &[Step], corpus: &Path) -> Result<Vec<Vec<u8>>> {
    let mut seeds = Vec::new();
    let mut put = |path: &str, body: &[u8]| {
        if let Some(digit) = operation(path) {
            seeds.push([&[digit], body].concat());
        }
    };
    for step in steps {
        // A body with holes that only a running server fills stays as it is written.
        if let Some(body) = &step.body {
            let body = template::filled(body, &variables()).unwrap_or_else(|_| body.clone());
            put(&step.path, body.to_string().as_bytes());
        }
        if let Some(raw) = &step.raw {
            put(&step.path, raw.as_bytes());
        }
        if !step.query.is_empty() {
            let pairs = step.query.iter().map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or("1")));
            put("query", pairs.collect::<Vec<_>>().join("&").as_bytes());
        }
    }
    let corpus = Corpus::read(corpus)?;
    for request in corpus.unbroken(&variables())?.into_iter().chain(corpus.malformed(&variables())?) {
        put(&request.request.target, request.request.body.as_deref().unwrap_or_default());
    }
    Ok(seeds)
}

/// Returns the first byte of an input for an operation; none for operations on other objects than rows.
fn operation(path: &str) -> Option<u8> {
    let kind = ["/v1/project_logs", "/v1/experiment", "/v1/dataset"].iter().position(|kind| path.starts_with(kind));
    let digit = match path {
        "query" => 9,
        "/v1/insert" => 6,
        "/logs3" => 7,
        _ if path.contains("/fetch") => 8,
        _ if path.ends_with("/insert") => kind?,
        _ if path.ends_with("/feedback") => 3 + kind?,
        _ => return None,
    };
    u8::try_from(digit).ok().map(|digit| b'0' + digit)
}

fn variables() -> Variables {
    let mut variables: Variables = IDS
        .iter()
        .zip(1..)
        .map(|(name, number)| ((*name).to_owned(), Value::from(uuid::Uuid::from_u128(number).to_string())))
        .collect();
    for name in ["run", "key", "url"] {
        variables.insert(name.to_owned(), Value::from(name));
    }
    variables
}
