//! The parts of the guide that are made from the program are what the program has.

use std::process::Command;

use assay_node_btql::functions;
use assay_test_api::process::program;
use assay_test_guide::{functions as function_reference, generated, settings};
use assay_tests_tidy::settings::settings as settings_of;
use assay_tests_tidy::workspace::Workspace;
use toml::Table;

#[test]
fn the_settings_reference_has_every_setting() {
    let workspace = Workspace::this();
    let found = settings_of(&workspace.sources());
    assert!(found.len() > 60, "only {} settings were found", found.len());
    for setting in &found {
        assert!(!setting.about.is_empty(), "`{}` has no doc comment", setting.name);
    }
    let program = program().unwrap_or_else(|error| panic!("{error:#}"));
    let mut command = Command::new(program);
    command.arg("config").env_clear().current_dir(std::env::temp_dir());
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed: Table = String::from_utf8_lossy(&output.stdout).parse().expect("TOML");
    let page = workspace.root.join("node/guide/settings.md");
    let wanted = settings::reference(&found, &printed);
    generated::check(&page, "settings", &wanted).unwrap_or_else(|why| panic!("{why}"));
}

#[test]
fn the_function_reference_has_every_function() {
    let page = Workspace::this().root.join("node/guide/query-language.md");
    generated::check(&page, "functions", &function_reference::reference()).unwrap_or_else(|why| panic!("{why}"));
    let text = std::fs::read_to_string(&page).expect("a page");
    let names: Vec<&str> = functions::all().flat_map(|(_, row)| row.names.iter().copied()).collect();
    assert!(names.len() > 70, "only {} names were found", names.len());
    for name in names {
        assert!(text.contains(&format!("`{name}(")) || text.contains(&format!("`{name}`")), "`{name}` is not there");
    }
}
