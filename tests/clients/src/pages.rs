//! Pages of the guide as programs: a page's examples, and the shell script that runs them in order.
//!
//! A comment in the line above an example changes what is expected of it:
//! `<!-- not run: reason -->`, or `<!-- fails: 501 -->` with the status of all of its requests, of which it has at least one.
//! `<!-- output -->` stands above what the example before it prints.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

/// Address that all examples have.
const HTTP: &str = "http://127.0.0.1:8000";
const HTTP_BY_NAME: &str = "localhost:8000";
const OTLP: &str = "http://127.0.0.1:4317";
/// Origin of the model server that examples of the AI gateway use.
const MODELS: &str = "http://127.0.0.1:9000";
const KEY: &str = "BRAINTRUST_API_KEY=sk-...";
const NOT_RUN: &str = "not run: ";
const FAILS: &str = "fails: ";
const OUTPUT: &str = "output";
/// Functions that a script begins with. `check` compares the statuses of the requests since the last check.
const PRELUDE: &str = r#"set -euo pipefail
at=0
: >"$STATUSES"
trap 'status=$?; ((status == 0)) || echo "the example at line $at ended with status $status" >&2' EXIT
curl() { command curl --write-out '%{stderr}%{http_code}\n' "$@" 2>>"$STATUSES"; }
check() {
  local status
  [[ $1 == "2??" || -s $STATUSES ]] || { echo "the example at line $at sends no request" >&2; exit 1; }
  while read -r status; do
    [[ $status == $1 ]] || { echo "the example at line $at: status $status instead of $1" >&2; exit 1; }
  done <"$STATUSES"
  : >"$STATUSES"
}
answered() {
  [[ -s $OUTPUT ]] || { echo "the example at line $at has no rows" >&2; exit 1; }
}
prints() {
  [[ $(<"$OUTPUT") == "$(<"$1")" ]] || { echo "the example at line $at prints something else" >&2; exit 1; }
}
without_null() {
  ! grep -qxE "null${1+|$1}" "$OUTPUT" || { echo "the example at line $at prints null" >&2; exit 1; }
}
query() {
  curl -s "$BRAINTRUST_API_URL/btql" -H "Authorization: Bearer $BRAINTRUST_API_KEY" -d "$1"
}
"#;

/// Example of a page.
#[derive(Debug)]
pub struct Example {
    /// Line of its fence.
    pub line: usize,
    pub language: String,
    pub text: String,
    pub expected: Expected,
}

/// Result that a page promises of an example.
#[derive(Debug, PartialEq, Eq)]
pub enum Expected {
    Success,
    /// Status of its requests.
    Status(u16),
    /// It needs what a test does not have.
    NotRun,
    /// It is what the example before it prints.
    Output,
}

/// Addresses and programs that scripts are given.
#[derive(Debug)]
pub struct ScriptPlace<'a> {
    pub url: &'a str,
    pub otlp_url: &'a str,
    /// Origin of a scripted model server, which the node may call.
    pub models_url: &'a str,
    pub key: &'a str,
    /// None if these languages are unavailable: their examples are left out.
    pub python: Option<&'a Path>,
    pub has_typescript: bool,
    /// Directory in which files of examples are written.
    pub scripts: &'a Path,
}

/// Returns the paths of all pages, in the order of the summary.
pub fn pages() -> Result<Vec<PathBuf>> {
    let folder = Path::new(&std::env::var("CARGO_MANIFEST_DIR")?).join("../../node/guide");
    let summary = std::fs::read_to_string(folder.join("SUMMARY.md"))?;
    let links = summary.lines().filter_map(|line| line.split_once("](")?.1.strip_suffix(')'));
    Ok(links.map(|link| folder.join(link)).collect())
}

/// Returns the examples of a page.
pub fn examples(page: &str) -> Result<Vec<Example>> {
    let lines: Vec<&str> = page.lines().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let Some(language) = lines[at].strip_prefix("```") else {
            at += 1;
            continue;
        };
        let length = lines[at + 1..].iter().position(|line| *line == "```").context("a fence is not closed")?;
        let mark = at.checked_sub(1).map_or("", |above| lines[above]);
        let expected = expected(mark).with_context(|| format!("line {at}"))?;
        let text = lines[at + 1..=at + length].join("\n") + "\n";
        found.push(Example { line: at + 1, language: language.to_owned(), text, expected });
        at += length + 2;
    }
    Ok(found)
}

fn expected(above: &str) -> Result<Expected> {
    let Some(mark) = above.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->")) else {
        return Ok(Expected::Success);
    };
    if mark.strip_prefix(NOT_RUN).is_some_and(|reason| !reason.is_empty()) {
        return Ok(Expected::NotRun);
    }
    if mark == OUTPUT {
        return Ok(Expected::Output);
    }
    match mark.strip_prefix(FAILS) {
        Some(status) => Ok(Expected::Status(status.parse().context("no status")?)),
        None => bail!("the comment above an example is not `{NOT_RUN}reason`, `{FAILS}status` or `{OUTPUT}`: {mark}"),
    }
}

/// Returns the script that runs a page's examples.
pub fn script(examples: &[Example], place: &ScriptPlace<'_>) -> Result<String> {
    let mut script = PRELUDE.to_owned();
    let mut has_output = false;
    for example in examples.iter().filter(|example| example.expected != Expected::NotRun) {
        let text = local(&example.text, place);
        let file = |ending: &str| -> Result<String> {
            let path = place.scripts.join(format!("example-{}.{ending}", example.line));
            std::fs::write(&path, &text)?;
            Ok(path.display().to_string())
        };
        if example.expected == Expected::Output {
            if has_output {
                writeln!(script, "prints {}", file("txt")?)?;
            }
            continue;
        }
        has_output = false;
        let (run, after) = match example.language.as_str() {
            // A mean of nothing would be null.
            "sh" if text.contains("avg(") => (text.clone(), r#"without_null '.*": ?null[,}]?.*'"#),
            "sh" => (text.clone(), "without_null"),
            "python" => match place.python {
                Some(python) => (format!("{} {}\n", python.display(), file("py")?), ":"),
                None => continue,
            },
            "typescript" if place.has_typescript => (format!("node {}\n", file("mjs")?), ":"),
            "typescript" | "text" => continue,
            "toml" => (format!("assay config --config {} >/dev/null\n", file("toml")?), ":"),
            "sql" | "btql" => {
                let request = format!("$(jq -Rs '{{query: ., fmt: \"jsonl\"}}' {})", file("sql")?);
                (format!("query \"{request}\"\n"), "answered")
            }
            "json" => {
                let value: serde_json::Value =
                    serde_json::from_str(&text).with_context(|| format!("line {}", example.line))?;
                if value.get("query").is_none() {
                    continue;
                }
                (format!("query @{}\n", file("json")?), "answered")
            }
            other => bail!("line {}: no rule says how `{other}` is run", example.line),
        };
        let status = match example.expected {
            Expected::Status(status) => status.to_string(),
            _ => "2??".to_owned(),
        };
        // Its functions and variables are those of the examples below it: so it is no command of a pipe.
        writeln!(script, "at={}\n: >\"$OUTPUT\"\nexec 4>&1 >\"$OUTPUT\"", example.line)?;
        script.push_str(&run);
        writeln!(script, "exec >&4 4>&-\ncheck '{status}'\n{after}")?;
        has_output = true;
    }
    Ok(script)
}

/// Replaces the addresses and the key of an example by those of the test's node.
fn local(text: &str, place: &ScriptPlace<'_>) -> String {
    let address = place.url.trim_start_matches("http://");
    text.replace(HTTP, place.url)
        .replace(HTTP_BY_NAME, address)
        .replace(OTLP, place.otlp_url)
        .replace(MODELS, place.models_url)
        .replace(KEY, &format!("BRAINTRUST_API_KEY={}", place.key))
}

/// Programs that take `assay` as a name. Behind `--`, some of them run the program itself.
const NAMING_PROGRAMS: [&str; 4] = ["claude", "codex", "helm", "kubectl"];

/// Returns the part of a line that may have a command of the program.
fn own_part(line: &str) -> &str {
    let first = line.split_whitespace().next().unwrap_or_default();
    if !NAMING_PROGRAMS.contains(&first) {
        return line;
    }
    line.split_once(" -- ").map_or("", |(_, own)| own)
}

/// Commands of the program in an example, each with the options that it names.
pub fn commands(text: &str) -> Vec<(Vec<String>, BTreeSet<String>)> {
    let joined = text.replace("\\\n", " ");
    let mut found = Vec::new();
    for command in joined
        .lines()
        .map(own_part)
        .flat_map(|line| format!(" {line}").split(" assay ").skip(1).map(str::to_owned).collect::<Vec<_>>())
    {
        // A command in another one ends at a bracket.
        let words: Vec<&str> = command.split(')').next().unwrap_or_default().split_whitespace().collect();
        let is_name = |word: &&&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !word.starts_with('-');
        let names = words.iter().take(2).take_while(is_name).map(|word| (*word).to_owned()).collect();
        let options = words.iter().filter(|word| word.starts_with("--"));
        let options = options.map(|option| option.split('=').next().unwrap_or(option).to_owned()).collect();
        found.push((names, options));
    }
    found
}

/// Checks that a help text has all options.
pub fn check_options(help: &str, options: &BTreeSet<String>) -> Result<()> {
    let words: BTreeSet<&str> = help.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').collect();
    for option in options {
        ensure!(words.contains(option.as_str()), "there is no option {option}:\n{help}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_found_with_what_is_expected_of_them() {
        let page = "# Page\n\n```sh\na\nb\n```\n\n<!-- not run: it serves -->\n```sh\nassay serve\n```\n\
                    <!-- fails: 501 -->\n```json\n{}\n```\n<!-- output -->\n```text\nc\n```\n";
        let found = examples(page).expect("examples");
        let seen: Vec<_> =
            found.iter().map(|found| (found.line, found.language.as_str(), found.text.as_str())).collect();
        assert_eq!(seen, [(3, "sh", "a\nb\n"), (9, "sh", "assay serve\n"), (13, "json", "{}\n"), (17, "text", "c\n")]);
        let expected: Vec<_> = found.iter().map(|found| &found.expected).collect();
        assert_eq!(expected, [&Expected::Success, &Expected::NotRun, &Expected::Status(501), &Expected::Output]);
        for wrong in ["<!-- not run: -->\n```sh\na\n```\n", "<!-- fails -->\n```sh\na\n```\n", "```sh\na\n"] {
            assert!(examples(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn programs_that_name_the_program_do_not_run_it() {
        assert_eq!(commands("helm install assay --namespace assay \\\n --wait\nclaude mcp add assay --header x\n"), []);
        let found = commands("kubectl exec --namespace assay assay-0 -- assay cluster status --wait\n");
        let options = BTreeSet::from(["--wait".to_owned()]);
        assert_eq!(found, [(vec!["cluster".to_owned(), "status".to_owned()], options)]);
    }

    fn place(scripts: &Path) -> ScriptPlace<'_> {
        ScriptPlace {
            url: "http://127.0.0.1:1111",
            otlp_url: "http://127.0.0.1:2222",
            models_url: "http://127.0.0.1:3333",
            key: "sk-test",
            python: None,
            has_typescript: false,
            scripts,
        }
    }

    /// Runs the examples of a page, and returns what is wrong with them.
    fn failures(page: &str) -> Option<String> {
        let folder = tempfile::tempdir().expect("a directory");
        let script = script(&examples(page).expect("examples"), &place(folder.path())).expect("a script");
        let mut bash = std::process::Command::new("bash");
        bash.args(["-c", &script]).env("STATUSES", folder.path().join("statuses"));
        let output = bash.env("OUTPUT", folder.path().join("output")).output().expect("bash runs");
        (!output.status.success()).then(|| String::from_utf8_lossy(&output.stderr).into_owned())
    }

    #[test]
    fn an_example_prints_what_the_page_says() {
        let page = |said: &str| format!("```sh\necho a; echo b\n```\n\n<!-- output -->\n```text\n{said}\n```\n");
        assert_eq!(failures(&page("a\nb")), None);
        let why = failures(&page("a")).expect("another output");
        assert!(why.contains("the example at line 1 prints something else"), "{why}");
        // without Python nothing is printed
        assert_eq!(failures("```python\nprint(1)\n```\n<!-- output -->\n```text\n1\n```\n"), None);
    }

    #[test]
    fn addresses_and_the_key_are_those_of_the_test() {
        let place = place(Path::new("/tmp"));
        let text = "BRAINTRUST_API_KEY=sk-... http://127.0.0.1:8000/v1 localhost:8000 http://127.0.0.1:4317 \
                    http://127.0.0.1:9000/v1";
        let wanted = "BRAINTRUST_API_KEY=sk-test http://127.0.0.1:1111/v1 127.0.0.1:1111 http://127.0.0.1:2222 \
                      http://127.0.0.1:3333/v1";
        assert_eq!(local(text, &place), wanted);
    }

    #[test]
    fn commands_are_found_with_their_options() {
        let text = "dc run \"$(dc exec assay cluster token)\" --more\ndc exec node-1 assay cluster status --wait \\\n  --data-dir /var/lib/assay\nassay serve --set a=b\n";
        let options = |all: &[&str]| all.iter().map(|option| (*option).to_owned()).collect::<BTreeSet<_>>();
        let names = |all: &[&str]| all.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let wanted = [
            (names(&["cluster", "token"]), options(&[])),
            (names(&["cluster", "status"]), options(&["--wait", "--data-dir"])),
            (names(&["serve"]), options(&["--set"])),
        ];
        assert_eq!(commands(text), wanted);
        assert!(check_options("  --wait  --data-dir <DIR>", &wanted[1].1).is_ok());
        assert!(check_options("  --wait", &wanted[1].1).is_err());
        assert!(check_options("  --waiting  --data-dir <DIR>", &wanted[1].1).is_err());
    }
}
