//! Start of a worker: what its process sees and executes, and the code that it loads.

use std::ffi::OsString;
use std::path::Path;

use assay_node_runtimes::{CodeSource, NODE_MODULES_VARIABLE, RuntimeKind, TUNNEL_VARIABLE};
use assay_node_sandbox::{JailBind, JailPlan, SandboxStrength};

use super::{CodeRunner, CodeUnit};
use crate::interpreters::Interpreter;
use crate::settings::FunctionNetwork;

/// Time beyond that of a call in which the engine of the server's program ends by itself.
const ENGINE_MARGIN_SECONDS: u64 = 10;
/// Network connections that a worker inherits where it has no tunnel.
const INHERITED_STREAMS: usize = 32;
/// Share of the memory of a call that the heap of JavaScript may take, in percent.
const HEAP_PERCENT: u64 = 75;
/// Search path of sandboxed processes.
const SEARCH_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// Paths in a private root.
const RUNTIME_TARGET: &str = "/run/assay/runtime";
const BUNDLE_TARGET: &str = "/run/assay/bundle";
const PACKAGES_TARGET: &str = "/run/assay/node_modules";
const PYTHON_TARGET: &str = "/run/assay/python";
const TUNNEL_TARGET: &str = "/run/assay/tunnel";

impl CodeRunner {
    /// Returns whether a function has a network.
    pub(super) fn has_network(&self, interpreter: &Interpreter) -> bool {
        self.settings.network != FunctionNetwork::Off && interpreter.about.runtime != RuntimeKind::QuickJs
    }

    /// Returns what a worker sees and executes.
    pub(super) fn plan(
        &self,
        unit: &CodeUnit,
        strength: SandboxStrength,
        interpreter: &Interpreter,
        files: &Path,
        has_tunnel: bool,
    ) -> JailPlan {
        let bind = |source: &Path, target: &str| JailBind { source: source.to_owned(), target: target.into() };
        let runtime = bind(&self.place.runtime(), RUNTIME_TARGET);
        let packages = self.settings.node_modules.as_ref().map(|path| bind(path, PACKAGES_TARGET));
        let python = self.settings.python_path.as_ref().map(|path| bind(path, PYTHON_TARGET));
        let bundle = match unit {
            CodeUnit::Bundle { path, .. } => Some(bind(path, BUNDLE_TARGET)),
            CodeUnit::Inline { .. } => None,
        };
        let mut read_only = interpreter.binds();
        read_only.push(runtime.clone());
        read_only.extend([&packages, &python, &bundle].into_iter().flatten().cloned());
        let has_streams = strength != SandboxStrength::Full && self.has_network(interpreter);
        let mut plan = JailPlan {
            strength,
            command: Vec::new(),
            read_only,
            tunnel: has_tunnel.then(|| bind(&files.join("tunnel"), TUNNEL_TARGET)),
            temp: files.join("temp"),
            streams: if has_streams { INHERITED_STREAMS } else { 0 },
            limits: self.settings.limits(),
            environment: Vec::new(),
        };
        let runtime = plan.visible(&runtime).to_owned();
        plan.command = self.command(interpreter, &runtime);
        let mut set = |name: &str, value: OsString| plan.environment.push((name.to_owned(), value));
        set("PATH", SEARCH_PATH.into());
        set("TZ", "UTC".into());
        set("LANG", "C.UTF-8".into());
        for (name, value) in interpreter.about.runtime.variables(&runtime) {
            set(name, value.into());
        }
        let temp = plan.visible_temp().as_os_str().to_owned();
        plan.environment.extend([("HOME".to_owned(), temp.clone()), ("TMPDIR".to_owned(), temp)]);
        if let Some(tunnel) = &plan.tunnel {
            plan.environment.push((TUNNEL_VARIABLE.to_owned(), plan.visible(tunnel).as_os_str().to_owned()));
        }
        if let Some(packages) = &packages {
            let seen = plan.visible(packages).as_os_str().to_owned();
            plan.environment.push((NODE_MODULES_VARIABLE.to_owned(), seen));
        }
        let own_packages = matches!(unit, CodeUnit::Inline { .. }).then_some(python).flatten();
        if let Some(python) = own_packages {
            let seen = plan.visible(&python).to_owned();
            extend_search(&mut plan.environment, &seen);
        }
        plan
    }

    fn command(&self, interpreter: &Interpreter, runtime: &Path) -> Vec<OsString> {
        let options = match interpreter.about.runtime {
            RuntimeKind::Node => {
                let mebibytes = (self.settings.memory_bytes_max >> 20) * HEAP_PERCENT / 100;
                vec![format!("--max-old-space-size={mebibytes}")]
            }
            RuntimeKind::Python => ["-s", "-B"].map(str::to_owned).to_vec(),
            RuntimeKind::QuickJs => Vec::new(),
        };
        let limits = match interpreter.about.runtime {
            RuntimeKind::QuickJs => {
                let bytes = self.settings.memory_bytes_max * HEAP_PERCENT / 100;
                vec![bytes.to_string(), self.settings.seconds_max.saturating_add(ENGINE_MARGIN_SECONDS).to_string()]
            }
            RuntimeKind::Node | RuntimeKind::Python => Vec::new(),
        };
        let words = options.into_iter().chain(interpreter.about.runtime.arguments(runtime)).chain(limits);
        [interpreter.program.clone().into_os_string()].into_iter().chain(words.map(OsString::from)).collect()
    }

    pub(super) fn source(&self, unit: &CodeUnit, strength: SandboxStrength) -> CodeSource {
        match unit {
            CodeUnit::Inline { code, is_module, language, .. } => {
                CodeSource::Inline { code: code.clone(), is_module: *is_module, language: *language }
            }
            CodeUnit::Bundle { path, file, location, .. } => {
                let seen = if strength == SandboxStrength::Full { Path::new(BUNDLE_TARGET) } else { path.as_path() };
                let seen = file.as_ref().map_or_else(|| seen.to_owned(), |file| seen.join(file));
                CodeSource::Bundle { path: seen.to_string_lossy().into_owned(), location: location.clone() }
            }
        }
    }
}

/// Appends a directory to the search path of Python.
fn extend_search(environment: &mut Vec<(String, OsString)>, directory: &Path) {
    match environment.iter_mut().find(|(name, _)| name == "PYTHONPATH") {
        Some((_, value)) => {
            value.push(":");
            value.push(directory);
        }
        None => environment.push(("PYTHONPATH".to_owned(), directory.as_os_str().to_owned())),
    }
}
