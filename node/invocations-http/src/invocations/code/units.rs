//! Code of a function as the runner takes it: inline text without types, or an unpacked bundle.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use assay_node_files::{FileName, Purpose};
use assay_node_http::requests::caller::Caller;
use assay_node_http::responses::refusal::Refusal;
use assay_node_invocations::{CodeFailure, InvokeError, InvokeErrorKind};
use assay_node_runner::CodeUnit;
use assay_node_runner::bundles::{
    BundleError, BundleKey, BundleKind, CachedBundle, NODE_BUNDLE_FILE, STORED_BYTES_MAX,
};
use assay_node_runner::interpreters::WantedVersion;
use assay_node_runner::runtimes::{BundleLocation, RuntimeKind, SourceLanguage};
use assay_node_typescript::{StrippedCode, strip};
use parking_lot::Mutex;
use serde_json::Value;

use super::super::services::error_of;
use super::execution::invoke_error;

/// Upper bound of texts whose code without types is kept.
const STRIPPED_MAX: usize = 1_000;
/// Call that loads a module.
const REQUIRE: &str = "require(";
/// Version of the runtime where a function names none.
const NODE_DEFAULT: &str = "20";
const PYTHON_DEFAULT: &str = "3.11";
const QUICKJS_DEFAULT: &str = "ES2023";

/// Code without types, by the hash of its text. It is cleared when it is full.
static STRIPPED: LazyLock<Mutex<HashMap<String, Arc<StrippedCode>>>> = LazyLock::new(Mutex::default);

/// Code to run, with the unpacked bundle that must not be removed meanwhile.
pub(super) struct FunctionUnit {
    pub unit: CodeUnit,
    _bundle: Option<CachedBundle>,
}

/// Runtime that a function names, and its version.
pub(super) struct NamedRuntime {
    kind: RuntimeKind,
    version: String,
    /// Whether the function holds native code for one minor version of Python.
    is_exact: bool,
}

impl NamedRuntime {
    pub fn wanted(&self) -> WantedVersion<'_> {
        WantedVersion { runtime: self.kind, version: &self.version, is_exact: self.is_exact }
    }
}

/// Returns the runtime of a function's data.
pub(super) fn runtime_of(data: &Value) -> Result<NamedRuntime, InvokeError> {
    let runtime = named_runtime(&data["runtime_context"])?;
    let is_exact = runtime.kind == RuntimeKind::Python && data["type"] == "bundle";
    Ok(NamedRuntime { is_exact, ..runtime })
}

/// Returns the code of a function's data.
pub(super) async fn of_data(caller: &Caller, data: &Value) -> Result<FunctionUnit, InvokeError> {
    let runtime = runtime_of(data)?;
    match data["type"].as_str() {
        Some("inline") => {
            let code = data["code"].as_str().ok_or_else(|| InvokeError::invalid("the function has no `code`"))?;
            Ok(FunctionUnit { unit: inline(code, runtime)?, _bundle: None })
        }
        Some("bundle") => bundle(caller, data, runtime).await,
        other => {
            let named = other.unwrap_or("nothing");
            Err(InvokeError::invalid(format!("the code of the function is `{named}`; valid are inline and bundle")))
        }
    }
}

/// Returns the data of the same function for QuickJS, or `None` for code that needs Node.js or another language.
pub(super) fn for_quickjs(data: &Value) -> Option<Value> {
    let code = data["code"].as_str()?;
    let is_inline_node = data["type"] == "inline" && data["runtime_context"]["runtime"] == "node";
    if !is_inline_node || code.contains(REQUIRE) || without_types(code).ok()?.is_module {
        return None;
    }
    let mut data = data.clone();
    data["runtime_context"] = serde_json::json!({"runtime": "quickjs", "version": QUICKJS_DEFAULT});
    Some(data)
}

fn named_runtime(context: &Value) -> Result<NamedRuntime, InvokeError> {
    let version = |default: &str| match &context["version"] {
        Value::String(version) => version.trim_start_matches('v').to_owned(),
        _ => default.to_owned(),
    };
    let (kind, version) = match context["runtime"].as_str() {
        Some("node") => (RuntimeKind::Node, version(NODE_DEFAULT)),
        Some("quickjs") => (RuntimeKind::QuickJs, version(QUICKJS_DEFAULT)),
        Some("python") => (RuntimeKind::Python, version(PYTHON_DEFAULT)),
        Some(other) => {
            let why =
                format!("functions for the runtime `{other}` do not run on a server; node, python and quickjs do");
            return Err(InvokeError::invalid(why));
        }
        None => {
            let why = "the function has no `runtime_context.runtime`; valid are node and python";
            return Err(InvokeError::invalid(why));
        }
    };
    Ok(NamedRuntime { kind, version, is_exact: false })
}

fn inline(code: &str, runtime: NamedRuntime) -> Result<CodeUnit, InvokeError> {
    let NamedRuntime { kind, version, .. } = runtime;
    if kind == RuntimeKind::Python {
        let (code, language) = (code.to_owned(), SourceLanguage::Python);
        return Ok(CodeUnit::Inline { runtime: kind, version, code, is_module: false, language });
    }
    let stripped = without_types(code)?;
    let language = if stripped.text == code { SourceLanguage::JavaScript } else { SourceLanguage::TypeScript };
    let StrippedCode { text, is_module } = (*stripped).clone();
    Ok(CodeUnit::Inline { runtime: kind, version, code: text, is_module, language })
}

fn without_types(code: &str) -> Result<Arc<StrippedCode>, InvokeError> {
    if let Some(known) = STRIPPED.lock().get(code) {
        return Ok(Arc::clone(known));
    }
    let stripped = strip(code).map_err(|why| {
        let (name, stack) = ("SyntaxError".to_owned(), String::new());
        InvokeError::of_code(CodeFailure { name, message: why.to_string(), stack })
    })?;
    let stripped = Arc::new(stripped);
    let mut all = STRIPPED.lock();
    if all.len() >= STRIPPED_MAX {
        all.clear();
    }
    all.insert(code.to_owned(), Arc::clone(&stripped));
    Ok(stripped)
}

/// Fetches and unpacks a bundle, unless this node has it.
async fn bundle(caller: &Caller, data: &Value, runtime: NamedRuntime) -> Result<FunctionUnit, InvokeError> {
    let kind = match runtime.kind {
        RuntimeKind::Node => BundleKind::Node,
        RuntimeKind::Python => BundleKind::Python,
        RuntimeKind::QuickJs => {
            let why = "the runtime quickjs runs inline code only; bundles run in node and python";
            return Err(InvokeError::invalid(why));
        }
    };
    let location = location_of(&data["location"])?;
    let missing = || InvokeError::new(InvokeErrorKind::Failed, "the bundle of the function is not uploaded yet");
    let id = data["bundle_id"].as_str().ok_or_else(missing)?;
    let refused = |why| error_of(Refusal::from(why));
    let name = FileName::new(caller.principal.org, Purpose::Bundle, id).map_err(refused)?;
    let file = caller.edge.files.look(&name).await.map_err(refused)?;
    let content = file.and_then(|file| file.content).ok_or_else(missing)?;
    let hash = content.hash.parse().map_err(|why| InvokeError::new(InvokeErrorKind::Failed, format!("{why}")))?;
    let key = BundleKey::new(kind, hash);
    let bundles = caller.edge.code.bundles().await.map_err(invoke_error)?;
    let found = {
        let (bundles, key) = (bundles.clone(), key.clone());
        blocking(move || bundles.get(&key)).await?
    };
    let cached = match found {
        Some(cached) => cached,
        None => {
            let bytes_max = usize::try_from(STORED_BYTES_MAX).unwrap_or(usize::MAX);
            let stored = caller.edge.files.read_whole(&name, &content, bytes_max).await.map_err(refused)?;
            blocking(move || bundles.insert(&key, &stored)).await?
        }
    };
    let unit = CodeUnit::Bundle {
        runtime: runtime.kind,
        version: runtime.version,
        hash: content.hash,
        path: cached.path().to_owned(),
        file: (kind == BundleKind::Node).then(|| NODE_BUNDLE_FILE.to_owned()),
        location,
    };
    Ok(FunctionUnit { unit, _bundle: Some(cached) })
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BundleError> + Send + 'static,
) -> Result<T, InvokeError> {
    let failed = |why: String| InvokeError::new(InvokeErrorKind::Failed, format!("the bundle of the function: {why}"));
    let done = tokio::task::spawn_blocking(work).await.map_err(|why| failed(why.to_string()))?;
    done.map_err(|why| failed(why.to_string()))
}

/// Reads the place of a function within its bundle.
fn location_of(location: &Value) -> Result<BundleLocation, InvokeError> {
    let index = |value: &Value| value.as_u64().and_then(|index| usize::try_from(index).ok());
    let missing = |what: &str| InvokeError::invalid(format!("the location of the function has no `{what}`"));
    match location["type"].as_str() {
        Some("function") => {
            let index = index(&location["index"]).ok_or_else(|| missing("index"))?;
            Ok(BundleLocation::Function { index })
        }
        Some("experiment") => {
            let evaluator = location["eval_name"].as_str().ok_or_else(|| missing("eval_name"))?.to_owned();
            let position = &location["position"];
            match position["type"].as_str() {
                Some("task") => Ok(BundleLocation::Task { evaluator }),
                Some("scorer") => {
                    let index = index(&position["index"]).ok_or_else(|| missing("position.index"))?;
                    Ok(BundleLocation::Scorer { evaluator, index })
                }
                Some("classifier") => {
                    let index = index(&position["index"]).ok_or_else(|| missing("position.index"))?;
                    Ok(BundleLocation::Classifier { evaluator, index })
                }
                _ => Err(InvokeError::invalid("`location.position.type` has to be task, scorer or classifier")),
            }
        }
        Some("sandbox") => Err(InvokeError::invalid("a sandbox is no function: run it as an evaluation")),
        _ => Err(InvokeError::invalid("`location.type` has to be function or experiment")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_runtime_of_a_server_is_chosen() {
        for (context, expected) in [
            (json!({"runtime": "node", "version": "v22.1.0"}), Some((RuntimeKind::Node, "22.1.0"))),
            (json!({"runtime": "python", "version": "3.12"}), Some((RuntimeKind::Python, "3.12"))),
            (json!({"runtime": "quickjs", "version": "ES2023"}), Some((RuntimeKind::QuickJs, "ES2023"))),
            (json!({"runtime": "browser", "version": "1"}), None),
            (json!({}), None),
        ] {
            let found = named_runtime(&context).ok().map(|runtime| (runtime.kind, runtime.version));
            assert_eq!(found, expected.map(|(kind, version)| (kind, version.to_owned())), "{context}");
        }
    }

    #[test]
    fn only_code_without_imports_runs_in_quickjs_instead_of_node() {
        let data = |runtime: &str, code: &str| json!({"type": "inline", "code": code, "runtime_context": {"runtime": runtime, "version": "20"}});
        let plain = for_quickjs(&data("node", "function handler(a: number) { return a }")).expect("another runtime");
        assert_eq!(runtime_of(&plain).ok().map(|runtime| runtime.kind), Some(RuntimeKind::QuickJs));
        for other in [
            data("python", "def handler(): pass"),
            data("quickjs", "const handler = () => 1"),
            data("node", "import fs from 'fs'; export const handler = () => 1"),
            data("node", "const fs = require('fs'); const handler = () => 1"),
            data("node", "function handler( {"),
            json!({"type": "bundle", "runtime_context": {"runtime": "node", "version": "20"}}),
        ] {
            assert_eq!(for_quickjs(&other), None, "{other}");
        }
    }

    #[test]
    fn types_are_removed_and_errors_say_where() {
        let runtime = || NamedRuntime { kind: RuntimeKind::Node, version: "20".into(), is_exact: false };
        let Ok(CodeUnit::Inline { code, language, is_module, .. }) =
            inline("function handler(a: number) {}", runtime())
        else {
            panic!("code")
        };
        assert_eq!((code.as_str(), is_module), ("function handler(a        ) {}", false));
        assert_eq!(language, SourceLanguage::TypeScript);
        let error = inline("function handler( {", runtime()).expect_err("no code");
        assert_eq!(error.kind, InvokeErrorKind::Failed);
        assert!(error.message.contains("line 1"), "{}", error.message);
    }

    #[test]
    fn a_location_names_a_function_of_its_bundle() {
        assert_eq!(location_of(&json!({"type": "function", "index": 2})), Ok(BundleLocation::Function { index: 2 }));
        let scorer = json!({"type": "experiment", "eval_name": "e", "position": {"type": "scorer", "index": 1}});
        assert_eq!(location_of(&scorer), Ok(BundleLocation::Scorer { evaluator: "e".into(), index: 1 }));
        for wrong in [json!({}), json!({"type": "function"}), json!({"type": "experiment", "eval_name": "e"})] {
            assert!(location_of(&wrong).is_err(), "{wrong}");
        }
    }
}
