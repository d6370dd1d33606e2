//! Shared cases of the SDKs of all languages, read back from one node. ASSAY_CASES is their folder: `test/llm_span` of
//! the public repository braintrustdata/braintrust-spec, which `.ci/cases` fetches.

use assay_test_clients::python::{instruments, run_with};
use assay_test_clients::suite::{covered, on_one_node};

#[test]
#[ignore = "needs the cases: .ci/run asks for it"]
fn spans_are_as_the_cases_of_all_sdks_say() {
    let cases = std::env::var("ASSAY_CASES").expect("ASSAY_CASES, the folder of the cases");
    let Some(python) = covered("the cases of all SDKs", instruments()) else { return };
    on_one_node(|place| {
        let told = [("ASSAY_CASES", cases.as_str())];
        let ran = run_with(&python, "cases_of_all.py", "all", (&place.url, &place.key), &told);
        ran.err().map(|error| format!("{error:#}")).unwrap_or_default()
    });
}
