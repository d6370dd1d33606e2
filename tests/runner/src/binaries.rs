//! The test binaries of the workspace, as cargo describes them.

use std::path::PathBuf;

use anyhow::Context;
use serde_json::Value;

/// Environment variables that name files or directories.
pub type Variables = Vec<(String, PathBuf)>;

/// One test binary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestBinary {
    /// Directory of the package and name of the target, such as `api/nodes`.
    pub name: String,
    pub executable: PathBuf,
    /// Arguments before those of the caller.
    pub arguments: Vec<String>,
    pub variables: Variables,
    /// Directory of the package, in which cargo runs its tests.
    pub package_dir: PathBuf,
    /// Whether it must run without other test binaries.
    pub is_alone: bool,
}

/// Output of `cargo metadata` for the workspace.
#[derive(Debug)]
pub struct Workspace {
    pub root: PathBuf,
    pub target_dir: PathBuf,
    packages: Vec<Value>,
}

impl Workspace {
    pub fn parse(metadata: &[u8]) -> anyhow::Result<Workspace> {
        let metadata: Value = serde_json::from_slice(metadata).context("`cargo metadata` printed no JSON")?;
        let target_dir = metadata["target_directory"].as_str().context("`cargo metadata` names no target directory")?;
        let root = metadata["workspace_root"].as_str().context("`cargo metadata` names no workspace")?;
        let packages = metadata["packages"].as_array().context("`cargo metadata` names no packages")?;
        Ok(Workspace { root: root.into(), target_dir: target_dir.into(), packages: packages.clone() })
    }

    /// A package lists targets that need the machine for themselves: `package.metadata.test-runner.alone`.
    fn is_alone(&self, package: &str, target: &str) -> bool {
        let of_package = self.packages.iter().filter(|known| known["id"] == package);
        let mut alone = of_package.filter_map(|known| known["metadata"]["test-runner"]["alone"].as_array()).flatten();
        alone.any(|named| named == target)
    }
}

/// Reads the messages of `cargo test --no-run --message-format json`: the test binaries, and the variables in which cargo
/// names the workspace's programs to them.
pub fn built(messages: &[u8], workspace: &Workspace) -> anyhow::Result<(Vec<TestBinary>, Variables)> {
    let (mut tests, mut programs) = (Vec::new(), Vec::new());
    for line in messages.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b"{")) {
        let message: Value = serde_json::from_slice(line).context("cargo printed a message that is no JSON")?;
        let Some(executable) = message["executable"].as_str() else { continue };
        let target = message["target"]["name"].as_str().context("cargo named no target")?;
        if message["profile"]["test"] == true {
            let package = message["package_id"].as_str().unwrap_or_default();
            let manifest = PathBuf::from(message["manifest_path"].as_str().context("cargo named no manifest")?);
            let package_dir = manifest.parent().context("a manifest lies in a directory")?.to_owned();
            let directory = package_dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
            tests.push(TestBinary {
                name: format!("{directory}/{target}"),
                executable: executable.into(),
                arguments: Vec::new(),
                variables: vec![("CARGO_MANIFEST_DIR".to_owned(), package_dir.clone())],
                is_alone: workspace.is_alone(package, target),
                package_dir,
            });
        } else {
            programs.push((format!("CARGO_BIN_EXE_{target}"), executable.into()));
        }
    }
    Ok((tests, programs))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn artifact(package: &str, target: &str, is_test: bool) -> Value {
        json!({
            "reason": "compiler-artifact", "package_id": package, "manifest_path": format!("/w/tests/{package}/Cargo.toml"),
            "target": {"name": target}, "profile": {"test": is_test}, "executable": format!("/t/{target}"),
        })
    }

    #[test]
    fn what_cargo_built_is_told_apart() {
        let metadata = json!({"target_directory": "/t", "workspace_root": "/w", "packages": [
            {"id": "api", "metadata": {"test-runner": {"alone": ["queries"]}}}, {"id": "btql", "metadata": null},
        ]});
        let workspace = Workspace::parse(metadata.to_string().as_bytes()).unwrap();
        let messages = [
            artifact("api", "nodes", true),
            artifact("api", "queries", true),
            artifact("btql", "queries", true),
            artifact("api", "assay", false),
            json!({"reason": "compiler-artifact", "executable": null}),
        ];
        let text = messages.map(|message| message.to_string()).join("\n");
        let (tests, programs) = built(text.as_bytes(), &workspace).unwrap();
        let told: Vec<_> = tests.iter().map(|test| (test.name.as_str(), test.is_alone)).collect();
        assert_eq!(told, [("api/nodes", false), ("api/queries", true), ("btql/queries", false)]);
        assert_eq!(tests[0].package_dir, PathBuf::from("/w/tests/api"));
        assert_eq!(programs, [("CARGO_BIN_EXE_assay".to_owned(), PathBuf::from("/t/assay"))]);
    }
}
