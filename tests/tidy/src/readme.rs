//! Commands and files named in the README must exist.

use std::path::Path;

/// Command that runs all tests of the workspace; also run by `.ci/run`.
pub const TEST_COMMAND: &str = "cargo test-all";

/// A command the README shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The package whose program it runs; none for the default one.
    pub package: Option<String>,
    /// Subcommands of the program: `cluster`, `join`.
    pub subcommands: Vec<String>,
}

/// Lines of fenced blocks that begin with a program.
pub fn commands(text: &str) -> Vec<String> {
    let mut fenced = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.starts_with("```") {
            fenced = !fenced;
        } else if fenced && ["cargo ", "bash ", "assay"].iter().any(|start| line.starts_with(start)) {
            found.push(line.trim().to_owned());
        }
    }
    found
}

/// `cargo run ... [-p PACKAGE] ... -- SUBCOMMAND ...`, or the installed program; none for another command.
pub fn parse_run(command: &str) -> Option<Command> {
    if let Some(program) = command.strip_prefix("assay ") {
        return Some(Command { package: None, subcommands: subcommands(program) });
    }
    let (cargo, program) = command.split_once(" -- ").unwrap_or((command, ""));
    let words: Vec<&str> = cargo.split_whitespace().collect();
    if !words.starts_with(&["cargo", "run"]) {
        return None;
    }
    let after = |flag: &str| words.iter().position(|word| *word == flag).and_then(|at| words.get(at + 1));
    let package = after("-p").or_else(|| after("--package")).map(|name| (*name).to_owned());
    Some(Command { package, subcommands: subcommands(program) })
}

/// Returns the words up to the first option or placeholder.
fn subcommands(words: &str) -> Vec<String> {
    let is_one =
        |word: &&str| !word.starts_with('-') && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
    words.split_whitespace().take_while(is_one).map(str::to_owned).collect()
}

/// Returns `crash-after-seal` as in the program's source: `CrashAfterSeal`.
pub fn variant_of(subcommand: &str) -> String {
    let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
    subcommand.split('-').filter(|word| word.is_ascii() && !word.is_empty()).map(capital).collect()
}

/// Relative links whose target is not there.
pub fn broken_links(root: &Path, text: &str) -> Vec<String> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let files = targets.filter(|target| !target.contains("://") && !target.starts_with('#'));
    let paths = files.map(|target| target.split('#').next().unwrap_or(target));
    paths.filter(|path| !root.join(path).exists()).map(|path| format!("the link to {path} leads nowhere")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_come_from_fenced_blocks_alone() {
        let text = "cargo no\n```sh\ncargo test-all\n# remark\n```\ncargo no\n";
        assert_eq!(commands(text), [TEST_COMMAND]);
    }

    #[test]
    fn a_run_command_names_its_package_and_subcommands() {
        let run = |text: &str| parse_run(text).map(|run| (run.package, run.subcommands));
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(run("cargo run --release -- doctor DIR"), Some((None, words(&["doctor"]))));
        assert_eq!(run("cargo run -p assay-bench -- --json x"), Some((Some("assay-bench".into()), words(&[]))));
        assert_eq!(run("assay cluster join TOKEN --peer-address a:1"), Some((None, words(&["cluster", "join"]))));
        assert_eq!(run("cargo test"), None);
        assert_eq!(variant_of("power-cut"), "PowerCut");
    }

    #[test]
    fn a_link_to_nowhere_is_named() {
        let folder = std::env::var("CARGO_MANIFEST_DIR").expect("cargo says where this crate is");
        let root = Path::new(&folder);
        let text = "[a](src/lib.rs) [b](src/none.rs) [c](https://x.y) [d](#here) [e](Cargo.toml#deps)";
        assert_eq!(broken_links(root, text), ["the link to src/none.rs leads nowhere"]);
    }
}
