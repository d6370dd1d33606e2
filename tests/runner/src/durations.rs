//! Durations of the test binaries in their last successful runs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;

use crate::binaries::TestBinary;

/// Milliseconds by name of the binary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Durations(BTreeMap<String, u64>);

impl Durations {
    /// The durations in a file. What cannot be read counts as nothing: the order is all that depends on it.
    pub fn read(file: &Path) -> Durations {
        let text = fs::read_to_string(file).unwrap_or_default();
        Durations(serde_json::from_str(&text).unwrap_or_default())
    }

    pub fn write(&self, file: &Path) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(&self.0)?;
        fs::write(file, text).with_context(|| format!("writing {}", file.display()))
    }

    pub fn set(&mut self, name: &str, took: Duration) {
        self.0.insert(name.to_owned(), u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
    }

    /// Longest first, so that none begins late and is waited for. Those of unknown duration go before all others.
    pub fn sort(&self, tests: &mut [TestBinary]) {
        tests.sort_by_key(|test| std::cmp::Reverse(self.0.get(&test.name).copied().unwrap_or(u64::MAX)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binary(name: &str) -> TestBinary {
        let (executable, package_dir) = ("x".into(), "y".into());
        TestBinary {
            name: name.to_owned(),
            executable,
            arguments: Vec::new(),
            variables: Vec::new(),
            package_dir,
            is_alone: false,
        }
    }

    #[test]
    fn the_longest_goes_first_and_the_unknown_before_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("durations.json");
        assert_eq!(Durations::read(&file), Durations::default());
        let mut durations = Durations::default();
        durations.set("short", Duration::from_millis(20));
        durations.set("long", Duration::from_secs(90));
        durations.write(&file).unwrap();
        let durations = Durations::read(&file);
        let mut tests = ["short", "long", "new"].map(binary);
        durations.sort(&mut tests);
        assert_eq!(tests.map(|test| test.name), ["new", "long", "short"]);
        fs::write(&file, "{").unwrap();
        assert_eq!(Durations::read(&file), Durations::default());
    }
}
