//! Checks of `docker/` on this repository.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use assay_tests_tidy::chart;
use assay_tests_tidy::compose::{STOP_GRACE, compose};
use assay_tests_tidy::packaging::{dockerfile, instructions, unit};
use assay_tests_tidy::readme::broken_links;
use assay_tests_tidy::settings::variables;
use assay_tests_tidy::workspace::Workspace;

#[track_caller]
fn none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

/// Environment variables of the program.
static KNOWN: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    let sources = Workspace::this().sources().into_iter().filter(|source| source.path.starts_with("node/"));
    variables(&sources.collect::<Vec<_>>())
});

#[test]
fn the_image_is_fit_to_ship() {
    let workspace = Workspace::this();
    let toolchain: toml::Table = workspace.read_text("rust-toolchain.toml").parse().expect("TOML");
    let rust = toolchain["toolchain"]["channel"].as_str().expect("a channel");
    none(&dockerfile(&workspace.read_text("docker/Dockerfile"), rust));
}

#[test]
fn the_build_gets_every_member_of_the_workspace_and_its_settings() {
    let workspace = Workspace::this();
    let ignore = workspace.read_text("docker/Dockerfile.dockerignore");
    let members = workspace.crates.iter().map(|member| member.folder.split('/').next().unwrap_or_default());
    for top in members.chain([".cargo", "Cargo.toml", "Cargo.lock"]) {
        assert!(ignore.lines().any(|line| line == format!("!{top}")), "{top} is kept from the build");
    }
}

#[test]
fn the_unit_and_the_compose_files_are_fit_to_ship() {
    let workspace = Workspace::this();
    let service = workspace.read_text("docker/assay.service");
    none(&unit(&service));
    let stop = format!("TimeoutStopSec={}", STOP_GRACE.trim_end_matches('s'));
    assert!(service.lines().any(|line| line == stop), "the unit gives a stop another time than {STOP_GRACE}");
    for file in ["docker/compose.yaml", "docker/compose.cluster.yaml"] {
        none(&compose(&workspace.read_text(file), &KNOWN));
    }
}

#[test]
fn the_chart_agrees_with_the_program_and_its_image() {
    let workspace = Workspace::this();
    let read = |name: &str| workspace.read_text(&format!("docker/chart/{name}"));
    let manifest: toml::Table = workspace.read_text("Cargo.toml").parse().expect("TOML");
    let version = manifest["workspace"]["package"]["version"].as_str().expect("a version");
    none(&chart::versions(&read("Chart.yaml"), version));
    none(&chart::values(&read("values.yaml"), &read("values.schema.json"), &KNOWN));
    let (stateful, helpers) = (read("templates/statefulset.yaml"), read("templates/_helpers.tpl"));
    for text in [&stateful, &helpers, &workspace.read_text("docker/packages/debian/environment")] {
        none(&chart::unknown_variables(text, &KNOWN));
    }
    none(&chart::differences(&stateful, &helpers, &workspace.read_text("docker/Dockerfile")));
    let stop = format!("terminationGracePeriodSeconds: {}", STOP_GRACE.trim_end_matches('s'));
    assert!(read("values.yaml").lines().any(|line| line == stop), "pods have another time to stop than {STOP_GRACE}");
}

#[test]
fn the_data_is_at_one_place_in_all_of_them() {
    let workspace = Workspace::this();
    let image = instructions(&workspace.read_text("docker/Dockerfile"));
    assert!(image.contains(&("VOLUME".into(), "/var/lib/assay".into())));
    assert!(workspace.read_text("docker/compose.yaml").contains(":/var/lib/assay\n"));
    assert!(workspace.read_text("docker/assay.service").contains("ASSAY_STORE_DATA_DIR=/var/lib/assay"));
}

#[test]
fn the_page_of_docker_names_what_is_there() {
    let workspace = Workspace::this();
    none(&broken_links(&workspace.root.join("docker"), &workspace.read_text("docker/README.md")));
}
