//! The JavaScript SDK and OpenTelemetry's exporters log, evaluate, comment and read back: from one node, and from
//! three, another one at each request; and traces across programs of both languages. If node, npm or the package index
//! is unavailable this reports "not covered" and passes, unless ASSAY_REQUIRE=all.

use assay_test_api::dev::NODES;
use assay_test_clients::javascript::{Environment, environment};
use assay_test_clients::python;
use assay_test_clients::suite::{Job, Served, at_once, covered, on_nodes, on_one_node};

/// Scripts; those that take longest first.
const SCRIPTS: [&str; 6] =
    ["dataset.mjs", "logger.mjs", "evaluation.mjs", "prompts.mjs", "feedback.mjs", "attachments.mjs"];

fn failures(javascript: &Environment, place: &Served) -> String {
    let at = (place.url.as_str(), place.key.as_str());
    let mut jobs: Vec<Job<'_>> = Vec::new();
    if let Some(python) = covered("traces through JavaScript and Python", python::environment()) {
        let there = python::folder().join("tracing.py");
        let words = format!("[{:?}, {:?}]", python.display().to_string(), there.display().to_string());
        jobs.push(Box::new(move || javascript.home()?.run("tracing.mjs", "both", at, &[("ASSAY_PYTHON", &words)])));
        jobs.push(Box::new(move || {
            let sibling = javascript.home()?;
            let words = sibling.words("tracing.mjs");
            python::run_with(python, "tracing.py", "both", at, &[("ASSAY_JAVASCRIPT", &words)])
        }));
    }
    // Only where to log in, or both origins.
    let both = [("BRAINTRUST_API_URL", at.0)];
    jobs.extend(
        SCRIPTS.map(|script| -> Job<'_> { Box::new(move || javascript.home()?.run(script, "login", at, &[])) }),
    );
    jobs.push(Box::new(move || javascript.home()?.run("logger.mjs", "both", at, &both)));
    // Below slugs of the fourth version of their form, and of the third.
    for (run, ids) in [("v4", None), ("v3", Some(("BRAINTRUST_LEGACY_IDS", "true")))] {
        let told = Vec::from_iter([("ASSAY_OTLP_URL", place.otlp_urls[0].as_str())].into_iter().chain(ids));
        jobs.push(Box::new(move || javascript.home()?.run("exporter.mjs", run, at, &told)));
    }
    at_once(&jobs)
}

#[test]
#[ignore = "minutes where packages have to be fetched: .ci/run asks for it"]
fn the_javascript_sdk_reads_back_what_it_logged() {
    let Some(javascript) = covered("the JavaScript SDK", environment()) else { return };
    on_one_node(|place| failures(javascript, place));
}

#[test]
#[ignore = "minutes where packages have to be fetched: .ci/run asks for it"]
fn the_javascript_sdk_reads_from_any_of_three_nodes_what_it_logged_to_another() {
    let Some(javascript) = covered("the JavaScript SDK", environment()) else { return };
    on_nodes(NODES, |place| failures(javascript, place));
}
