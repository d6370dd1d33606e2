//! The Python SDK logs, merges, comments and reads back: from one node, and from three, another one at each request. If
//! Python or the package index is unavailable this reports "not covered" and passes, unless ASSAY_REQUIRE=all.

use std::path::Path;

use assay_test_api::dev::NODES;
use assay_test_clients::python::{UrlsGiven, earlier, environment, instruments, run, run_with};
use assay_test_clients::suite::{Job, Served, at_once, covered, on_nodes, on_one_node, service_token};

/// Scripts with their given addresses, the slowest first.
const SCRIPTS: [(&str, UrlsGiven); 14] = [
    ("large_dataset.py", UrlsGiven::AppUrl),
    ("writers.py", UrlsGiven::AppUrl),
    ("tracing.py", UrlsGiven::BothUrls),
    ("evaluation.py", UrlsGiven::AppUrl),
    ("logger.py", UrlsGiven::BothUrls),
    ("prompts.py", UrlsGiven::AppUrl),
    ("feedback.py", UrlsGiven::AppUrl),
    ("spans.py", UrlsGiven::AppUrl),
    ("spans.py", UrlsGiven::BothUrls),
    ("experiment.py", UrlsGiven::AppUrl),
    ("dataset.py", UrlsGiven::AppUrl),
    ("attachments.py", UrlsGiven::AppUrl),
    ("overflow.py", UrlsGiven::AppUrl),
    ("exporter.py", UrlsGiven::AppUrl),
];
/// Scripts that use only features of earlier SDKs.
const OF_BEFORE: [&str; 5] = ["evaluation.py", "logger.py", "feedback.py", "spans.py", "experiment.py"];
/// A node for each process of `writers.py`.
const WRITERS: usize = 4;

fn failures(python: &Path, place: &Served) -> String {
    let (url, key) = (place.url.as_str(), place.key.as_str());
    let job = |(script, told): (&'static str, UrlsGiven)| -> Job<'_> {
        Box::new(move || run(python, script, &format!("{told:?}"), url, key, told))
    };
    let generated = || {
        let token = service_token(&place.data_dir)?;
        run_with(python, "generated.py", "generated", (url, key), &[("ASSAY_SERVICE_TOKEN", &token)])
    };
    let otlp = place.otlp_urls.join(",");
    let over_grpc = || run_with(python, "over_grpc.py", "grpc", (url, key), &[("ASSAY_OTLP_URLS", &otlp)]);
    let mut jobs: Vec<Job<'_>> = vec![Box::new(generated), Box::new(over_grpc)];
    jobs.extend(SCRIPTS.into_iter().map(job));
    at_once(&jobs)
}

#[test]
fn the_python_sdk_reads_back_what_it_logged() {
    let Some(python) = covered("the Python SDK", environment()) else { return };
    on_one_node(|place| failures(python, place));
}

#[test]
fn the_python_sdk_reads_from_any_of_three_nodes_what_it_logged_to_another() {
    let Some(python) = covered("the Python SDK", environment()) else { return };
    on_nodes(NODES, |place| failures(python, place));
}

#[test]
#[ignore = "a cluster more: .ci/run asks for it"]
fn a_python_sdk_of_before_reads_from_any_of_three_nodes_what_it_logged_to_another() {
    let Some(python) = covered("a Python SDK of before", earlier()) else { return };
    on_nodes(NODES, |place| {
        let job = |script: &'static str| -> Job<'_> {
            let python = &python;
            Box::new(move || run(python, script, "before", &place.url, &place.key, UrlsGiven::AppUrl))
        };
        at_once(&OF_BEFORE.map(job))
    });
}

#[test]
#[ignore = "a cluster more: .ci/run asks for it"]
fn writers_at_four_nodes_lose_nothing_in_one_row() {
    let Some(python) = covered("the Python SDK", environment()) else { return };
    on_nodes(WRITERS, |place| {
        let of_its_own = [("ASSAY_URLS", &*place.urls.join(","))];
        let at = (place.url.as_str(), place.key.as_str());
        // Each request to another node; and each process at a node of its own.
        let rounds = [("another", &[][..]), ("own", &of_its_own[..])];
        let each = rounds.map(|(round, environment)| run_with(python, "writers.py", round, at, environment).err());
        each.into_iter().flatten().map(|error| format!("{error:#}")).collect::<Vec<_>>().join("\n\n")
    });
}

#[test]
#[ignore = "packages more: .ci/run asks for it"]
fn three_instrumentations_are_read_alike() {
    let Some(python) = covered("instrumentations of Python", instruments()) else { return };
    on_one_node(|place| {
        let otlp = ("ASSAY_OTLP_URL", place.otlp_urls[0].as_str());
        let ran = run_with(&python, "instruments.py", "three", (&place.url, &place.key), &[otlp]);
        ran.err().map(|error| format!("{error:#}")).unwrap_or_default()
    });
}

/// Number of rounds and seed: ASSAY_ROUNDS and ASSAY_SEED, if set.
#[test]
#[ignore = "minutes: .ci/run asks for it"]
fn clients_that_are_killed_or_cut_off_lose_nothing_that_they_believe_sent() {
    let Some(python) = covered("the Python SDK", environment()) else { return };
    on_nodes(NODES, |place| {
        let said = ["ASSAY_ROUNDS", "ASSAY_SEED"].map(|name| (name, std::env::var(name).unwrap_or_default()));
        let told: Vec<_> =
            said.iter().filter(|(_, value)| !value.is_empty()).map(|(name, value)| (*name, &**value)).collect();
        let ran = run_with(python, "cut.py", "nodes", (&place.url, &place.key), &told);
        ran.err().map(|error| format!("{error:#}")).unwrap_or_default()
    });
}
