//! `--if-exists`: a push of a function that is there fails, replaces it, or leaves it.

use assay_test_api::rows::call;
use assay_test_clients::pushing::{PushProgram, PushPrograms, PushTarget, SourceFolder};
use assay_test_clients::suite::covered;
use serde_json::{Value, json};

use crate::{JAVASCRIPT, PYTHON, PushNode};

const JAVASCRIPT_PROJECT: &str = "existing-javascript";
const PYTHON_PROJECT: &str = "existing-python";

/// Text of a function that returns the version in it.
type Source = fn(u32) -> String;

fn javascript_source(version: u32) -> String {
    format!(
        "import {{ project }} from \"./project\";\n\
         import {{ z }} from \"zod\";\n\
         project.tools.create({{ name: \"Version\", slug: \"version\", parameters: z.object({{}}), handler: () => {version} }});\n\
         project.prompts.create({{ name: \"Told\", slug: \"told\", model: \"scripted\", prompt: \"{version}\" }});\n"
    )
}

fn python_source(version: u32) -> String {
    format!(
        "from helpers import project\n\
         project.prompts.create(name=\"Told\", slug=\"told\", model=\"scripted\", prompt=\"{version}\")\n"
    )
}

/// Functions of one program, and what their invocation returns.
struct Versions<'v> {
    folder: SourceFolder<'v>,
    program: PushProgram,
    file: &'static str,
    source: Source,
    target: PushTarget<'v>,
    slugs: &'static [&'static str],
}

impl Versions<'_> {
    /// Pushes a version. Returns whether the program succeeded, and its output.
    fn push(&self, version: u32, arguments: &[&str]) -> (bool, String) {
        self.folder.write(self.file, &(self.source)(version)).expect("a file");
        let arguments = [&["push"], arguments, &[self.file]].concat();
        self.folder.attempt(self.program, &arguments, self.target).unwrap_or_else(|error| panic!("{error:#}"))
    }

    fn assert_version(&self, node: &PushNode, version: u32) {
        for slug in self.slugs {
            let body = json!({"project_name": self.target.project, "slug": slug, "input": {}});
            let value = node.node.api("POST", "/function/invoke", &body);
            let expected = if *slug == "version" { json!(version) } else { json!(format!("echo: {version}")) };
            assert_eq!(value, expected, "{:?} {slug}", self.program);
        }
    }

    fn ids(&self) -> Vec<Value> {
        let target = format!("/v1/function?project_name={}", self.target.project);
        let page = call(self.target.url, "GET", &target, &Value::Null).unwrap_or_else(|error| panic!("{error:#}"));
        let objects = page["objects"].as_array().expect("functions");
        let mut ids: Vec<_> = objects.iter().map(|function| function["id"].clone()).collect();
        ids.sort_unstable_by_key(ToString::to_string);
        ids
    }

    fn check(&self, node: &PushNode) {
        let (succeeded, said) = self.push(1, &[]);
        assert!(succeeded, "{said}");
        self.assert_version(node, 1);
        let ids = self.ids();
        assert_eq!(ids.len(), self.slugs.len());
        for arguments in [&[][..], &["--if-exists", "error"]] {
            let (succeeded, said) = self.push(2, arguments);
            assert!(!succeeded && said.contains("exist"), "{:?}: {said}", self.program);
            self.assert_version(node, 1);
        }
        let (succeeded, said) = self.push(3, &["--if-exists", "ignore"]);
        assert!(succeeded, "{said}");
        self.assert_version(node, 1);
        let (succeeded, said) = self.push(4, &["--if-exists", "replace"]);
        assert!(succeeded, "{said}");
        self.assert_version(node, 4);
        assert_eq!(self.ids(), ids, "a replaced function keeps its id");
    }
}

#[test]
#[ignore = "minutes where packages have to be fetched: .ci/run asks for it"]
fn a_push_fails_at_functions_that_exist_unless_told_otherwise() {
    let Some(programs) = covered("pushes of existing functions", PushPrograms::install()) else { return };
    let node = PushNode::start();
    let sources = |language, project| programs.sources(language, project).unwrap_or_else(|error| panic!("{error:#}"));
    let javascript = Versions {
        folder: sources(JAVASCRIPT, JAVASCRIPT_PROJECT),
        program: PushProgram::JavaScriptSdk,
        file: "versions.ts",
        source: javascript_source,
        target: node.target(JAVASCRIPT_PROJECT),
        slugs: &["version", "told"],
    };
    let python = Versions {
        folder: sources(PYTHON, PYTHON_PROJECT),
        program: PushProgram::PythonSdk,
        file: "versions.py",
        source: python_source,
        target: node.target(PYTHON_PROJECT),
        slugs: &["told"],
    };
    javascript.check(&node);
    python.check(&node);
}
