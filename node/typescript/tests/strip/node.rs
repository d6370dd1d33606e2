//! Checks with node, where it is installed, that what remains is JavaScript.

use std::io::Write;
use std::process::{Command, Stdio};

use assay_node_typescript::strip;

use super::constructs::{CLASSES, DECLARATIONS, EXPRESSIONS, FUNCTIONS};
use super::hazards::HAZARDS;
use super::marked::Marked;
use super::modules::MODULES;

/// Reads a JSON array of texts, and prints the errors of those that node cannot parse.
const CHECKER: &str = r#"
const vm = require("node:vm");
const codes = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
for (const [code, isModule] of codes) {
  try {
    if (isModule) new vm.SourceTextModule(code); else new vm.Script(code);
  } catch (error) {
    console.log(error.message + " in:\n" + code);
  }
}
console.log("checked " + codes.length);
"#;

#[test]
fn node_parses_what_remains() {
    let cases = [DECLARATIONS, FUNCTIONS, EXPRESSIONS, CLASSES, HAZARDS, MODULES].concat();
    let codes: Vec<(String, bool)> = cases
        .iter()
        .map(|case| strip(&Marked::new(case).source).map(|stripped| (stripped.text, stripped.is_module)))
        .collect::<Result<_, _>>()
        .expect("other tests check that each case is accepted");
    let node = Command::new("node")
        .args(["--experimental-vm-modules", "--no-warnings", "-e", CHECKER])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut node) = node else {
        eprintln!("skipped: no node on the PATH");
        return;
    };
    let json: Vec<String> =
        codes.iter().map(|(text, is_module)| format!("[{},{is_module}]", json_text(text))).collect();
    let mut stdin = node.stdin.take().expect("standard input is a pipe");
    stdin.write_all(format!("[{}]", json.join(",")).as_bytes()).expect("node reads its input");
    drop(stdin);
    let output = node.wait_with_output().expect("node ends");
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("checked {}\n", codes.len()));
}

fn json_text(text: &str) -> String {
    let escaped: String = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
    format!("\"{escaped}\"")
}
