//! What `docker/` ships, on this repository.

use assay_tests_tidy::compose::{STOP_GRACE, compose};
use assay_tests_tidy::house::House;
use assay_tests_tidy::packaging::{dockerfile, instructions, unit};
use assay_tests_tidy::readme::broken_links;
use assay_tests_tidy::settings::variables;

#[track_caller]
fn none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[test]
fn the_image_is_fit_to_ship() {
    let house = House::this();
    let toolchain: toml::Table = house.read_text("rust-toolchain.toml").parse().expect("TOML");
    let rust = toolchain["toolchain"]["channel"].as_str().expect("a channel");
    none(&dockerfile(&house.read_text("docker/Dockerfile"), rust));
}

#[test]
fn the_build_gets_every_member_of_the_workspace_and_its_settings() {
    let house = House::this();
    let ignore = house.read_text("docker/Dockerfile.dockerignore");
    let members = house.crates.iter().map(|member| member.folder.split('/').next().unwrap_or_default());
    for top in members.chain([".cargo", "Cargo.toml", "Cargo.lock"]) {
        assert!(ignore.lines().any(|line| line == format!("!{top}")), "{top} is kept from the build");
    }
}

#[test]
fn the_unit_and_the_compose_files_are_fit_to_ship() {
    let house = House::this();
    let service = house.read_text("docker/assay.service");
    none(&unit(&service));
    let stop = format!("TimeoutStopSec={}", STOP_GRACE.trim_end_matches('s'));
    assert!(service.lines().any(|line| line == stop), "the unit gives a stop another time than {STOP_GRACE}");
    let known =
        variables(&house.sources().into_iter().filter(|source| source.path.starts_with("node/")).collect::<Vec<_>>());
    for file in ["docker/compose.yaml", "docker/compose.cluster.yaml"] {
        none(&compose(&house.read_text(file), &known));
    }
}

#[test]
fn the_data_is_at_one_place_in_all_of_them() {
    let house = House::this();
    let image = instructions(&house.read_text("docker/Dockerfile"));
    assert!(image.contains(&("VOLUME".into(), "/var/lib/assay".into())));
    assert!(house.read_text("docker/compose.yaml").contains(":/var/lib/assay\n"));
    assert!(house.read_text("docker/assay.service").contains("ASSAY_STORE_DATA_DIR=/var/lib/assay"));
}

#[test]
fn the_page_of_docker_names_what_is_there() {
    let house = House::this();
    none(&broken_links(&house.root.join("docker"), &house.read_text("docker/README.md")));
}
