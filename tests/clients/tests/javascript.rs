//! JavaScript's SDK logs, evaluates, keeps files and reads back: from one node, and from three, another one at each request.
//! Where node or the package index is out of reach this says "not covered" and passes, unless ASSAY_REQUIRE=all.

use std::path::Path;

use assay_test_clients::installed::not_covered;
use assay_test_clients::javascript::{environment, run};
use assay_test_clients::sides::{on_one_node, on_three_nodes_in_turn};

const SCRIPTS: [&str; 4] = ["logger.mjs", "dataset.mjs", "evaluation.mjs", "attachments.mjs"];

fn failures(packages: &Path, url: &str, key: &str) -> String {
    let each = SCRIPTS.iter().filter_map(|script| run(packages, script, "run", url, key).err());
    each.map(|error| format!("{error:#}")).collect::<Vec<_>>().join("\n\n")
}

fn packages() -> Option<&'static Path> {
    match environment() {
        Ok(packages) => Some(packages),
        Err(problem) => {
            not_covered("JavaScript's SDK", &problem);
            None
        }
    }
}

#[test]
#[ignore = "needs node and a hundred packages; .ci/run runs it"]
fn the_javascript_sdk_reads_back_what_it_logged() {
    let Some(packages) = packages() else { return };
    on_one_node(|url, key, _| failures(packages, url, key));
}

#[test]
#[ignore = "needs node and a hundred packages; .ci/run runs it"]
fn the_javascript_sdk_reads_from_any_of_three_nodes_what_it_logged_to_another() {
    let Some(packages) = packages() else { return };
    on_three_nodes_in_turn(|url, key, _| failures(packages, url, key));
}
