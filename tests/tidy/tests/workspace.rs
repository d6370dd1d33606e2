//! Every check on this repository.

use std::fs;
use std::path::Path;
use std::process::Command;

use assay_tests_tidy::features::{complaints as feature_complaints, parse_tree};
use assay_tests_tidy::readme::{TEST_COMMAND, broken_links, commands, parse_run, variant_of};
use assay_tests_tidy::workspace::Workspace;
use assay_tests_tidy::{
    areas, crate_sizes, formats, fuzz_lock, imports, libraries, prose, sizes, sources, type_names, usual_names,
};

/// Crates that are built alone, day in, day out, and pull in what is large.
const BUILT_ALONE: [&str; 3] = ["assay-storage-segments", "assay-storage-log", "assay-storage-shard"];

#[track_caller]
fn none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[test]
fn imports_run_downwards() {
    none(&imports::complaints(&Workspace::this().crates));
}

#[test]
fn every_outside_library_stays_in_its_crate() {
    none(&libraries::misplaced(&Workspace::this().crates));
}

#[test]
fn versions_features_and_lints_are_said_once() {
    let workspace = Workspace::this();
    none(&libraries::said_twice(&workspace.crates));
    none(&libraries::at_the_top(&workspace.manifest));
}

#[test]
fn every_file_says_what_it_is_and_holds_no_stub() {
    none(&sources::complaints(&Workspace::this().sources()));
}

#[test]
fn every_type_has_a_name_of_its_own() {
    let workspace = Workspace::this();
    none(&type_names::complaints(&workspace.crates, &workspace.sources()));
}

#[test]
fn doc_comments_begin_with_a_noun_or_a_verb() {
    none(&prose::doc_comments(&Workspace::this().sources()));
}

#[test]
fn usual_names_lead_to_files_of_that_name() {
    let workspace = Workspace::this();
    let names = usual_names::parse(&workspace.read_text(".github/CONTRIBUTING.md"));
    none(&usual_names::unlisted(&names));
    let files: Vec<_> = workspace.sources().into_iter().map(|source| source.path).collect();
    none(&usual_names::misleading(&names, &files));
}

#[test]
fn files_and_functions_stay_short() {
    let workspace = Workspace::this();
    let known = sizes::parse_ratchet(&workspace.read_text("tests/tidy/ratchet.txt")).expect("a ratchet that parses");
    none(&sizes::complaints(&sizes::too_long(&workspace.sources()), &known));
}

#[test]
fn crates_and_folders_stay_small() {
    let workspace = Workspace::this();
    let sources = workspace.sources();
    none(&crate_sizes::large_crates(&workspace.crates, &sources));
    none(&crate_sizes::full_folders(&sources));
}

#[test]
fn every_format_has_data_that_was_written_in_it() {
    let workspace = Workspace::this();
    let entries = fs::read_dir(workspace.root.join("tests/compat/releases")).expect("the releases").flatten();
    let releases: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let newest = formats::newest(&releases).expect("a release");
    let text = workspace.read_text(&format!("tests/compat/releases/{newest}/formats.txt"));
    none(&formats::complaints(&formats::constants(&workspace.sources()), newest, &text));
}

#[test]
fn the_top_has_eight_names_and_what_the_tools_need() {
    let workspace = Workspace::this();
    let entries = fs::read_dir(&workspace.root).expect("the root").flatten();
    let names: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    none(&areas::at_the_top(&names, &workspace.read_text(".gitignore")));
}

#[test]
fn every_area_has_its_page_and_its_decisions() {
    let workspace = Workspace::this();
    for area in areas::AREAS {
        let path = format!("{area}/README.md");
        none(&areas::page(&path, &workspace.read_text(&path)));
        let folder = format!("{area}/decisions");
        none(&areas::decisions(&folder, &areas::markdown_in(&workspace.root.join(&folder))));
    }
}

#[test]
fn what_the_readme_shows_is_there() {
    let workspace = Workspace::this();
    let text = workspace.read_text("README.md");
    none(&broken_links(&workspace.root, &text));
    let commands = commands(&text);
    assert_eq!(commands.iter().filter(|command| *command == TEST_COMMAND).count(), 1, "the test command, once");
    assert!(workspace.read_text(".ci/run").contains(TEST_COMMAND), ".ci/run runs the README's test command");
    for command in &commands {
        if let Some(script) = command.strip_prefix("bash ") {
            let script = script.split_whitespace().next().unwrap_or_default();
            assert!(workspace.root.join(script).is_file(), "`{command}`: no such script");
        }
        if let Some(run) = parse_run(command) {
            let package = run.package.as_deref().unwrap_or("assay");
            let member = workspace.crates.iter().find(|member| member.name == package);
            let member = member.unwrap_or_else(|| panic!("`{command}`: no such package"));
            for subcommand in run.subcommands {
                assert!(has_variant(&workspace, &member.folder, &subcommand), "`{command}`: no such subcommand");
            }
        }
    }
}

/// Returns whether a program's sources have the subcommand as a variant.
fn has_variant(workspace: &Workspace, folder: &str, subcommand: &str) -> bool {
    let variant = variant_of(subcommand);
    let own = workspace.sources().into_iter().filter(|source| source.path.starts_with(&format!("{folder}/")));
    let mut words = own.flat_map(|source| words_of(&source.text));
    words.any(|word| word == variant)
}

fn words_of(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric()).map(str::to_owned).collect()
}

#[test]
fn known_advisories_are_of_crates_that_are_here() {
    let workspace = Workspace::this();
    let deny: toml::Table = workspace.read_text(".deny.toml").parse().expect("TOML");
    let lock = workspace.read_text("Cargo.lock");
    for ignored in deny["advisories"]["ignore"].as_array().expect("a list") {
        let (id, reason) = (ignored["id"].as_str().expect("an id"), ignored["reason"].as_str().expect("a reason"));
        let name = reason.split([',', ' ']).next().unwrap_or_default();
        assert!(lock.contains(&format!("name = \"{name}\"")), "{id}: {name} is not in Cargo.lock: take it out");
    }
}

#[test]
fn the_lock_file_of_the_fuzzers_has_the_dependencies_of_every_crate() {
    let workspace = Workspace::this();
    let lock: toml::Table = workspace.read_text("tests/fuzz/Cargo.lock").parse().expect("TOML");
    none(&fuzz_lock::complaints(&lock, &workspace.manifest, &workspace.crates));
}

#[test]
fn a_crate_built_alone_asks_the_features_of_the_whole_workspace() {
    let root = Workspace::this().root;
    let workspace = parse_tree(&cargo_tree(&root, &["--workspace", "--edges", "normal,dev"]));
    for name in BUILT_ALONE {
        for edges in ["normal", "normal,dev"] {
            let alone = parse_tree(&cargo_tree(&root, &["--package", name, "--edges", edges]));
            assert!(alone.len() > 10, "{name} has dependencies");
            none(&feature_complaints(name, &alone, &workspace));
        }
    }
}

fn cargo_tree(root: &Path, arguments: &[&str]) -> String {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root).args(["tree", "--offline", "--locked", "--prefix", "none", "--format", "{p}|{f}"]);
    let output = command.args(arguments).output().expect("cargo runs");
    assert!(output.status.success(), "cargo tree: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn texts_for_users_have_short_sentences() {
    let workspace = Workspace::this();
    let sources = workspace.sources();
    let mut found = [prose::doc_comments(&sources), prose::texts(&sources), prose::help(&sources)].concat();
    let mut pages = vec![("README.md".to_owned(), workspace.read_text("README.md"))];
    for folder in ["node/guide", "node/guide/errors"] {
        let files = areas::markdown_in(&workspace.root.join(folder)).into_iter();
        let files = files.filter(|(name, _)| name.ends_with(".md"));
        pages.extend(files.map(|(name, text)| (format!("{folder}/{name}"), text)));
    }
    assert!(pages.len() > 20, "README and the pages of the guide");
    found.extend(pages.iter().flat_map(|(path, text)| prose::markdown(path, text)));
    none(&found);
}
