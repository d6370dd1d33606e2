//! Directory of a runner: its programs, its workers, and what users of sandboxes reach.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use assay_node_runtimes::RUNTIME_FILES;
use assay_node_sandbox::reach::closed_part;
use assay_node_sandbox::removal::remove_directory;
use assay_node_sandbox::{Remover, SandboxDirectory};
use uuid::Uuid;

use crate::interpreters::Interpreter;

/// Mode of directories that users of sandboxes may enter and not list.
const ENTERED_MODE: u32 = 0o711;
const READABLE_MODE: u32 = 0o755;
const FILE_MODE: u32 = 0o644;
/// Mode of directories in which users of sandboxes may write.
const OPEN_MODE: u32 = 0o777;

/// Directory of a runner.
#[derive(Debug)]
pub struct RunnerPlace {
    directory: PathBuf,
    remover: Remover,
}

impl RunnerPlace {
    /// Makes the directories with their programs, and removes what an earlier process left.
    pub fn prepare(directory: &Path) -> io::Result<RunnerPlace> {
        let place = RunnerPlace { directory: directory.to_owned(), remover: Remover::start()? };
        for old in [place.runtime(), place.workers(), place.trial()] {
            remove_directory(&old)?;
        }
        if !directory.exists() {
            fs::create_dir_all(directory)?;
            set_mode(directory, ENTERED_MODE)?;
        }
        new_directory(&place.runtime(), READABLE_MODE)?;
        for file in RUNTIME_FILES {
            let path = place.runtime().join(file.name);
            fs::write(&path, file.content)?;
            set_mode(&path, FILE_MODE)?;
        }
        if !place.bundles().exists() {
            new_directory(&place.bundles(), ENTERED_MODE)?;
        }
        new_directory(&place.workers(), ENTERED_MODE)?;
        new_directory(&place.trial(), OPEN_MODE)?;
        Ok(place)
    }

    /// Returns the directory with the programs of the runtimes.
    pub fn runtime(&self) -> PathBuf {
        self.directory.join("runtime")
    }

    /// Returns the directory in which sandboxes are tried.
    pub fn trial(&self) -> PathBuf {
        self.directory.join("trial")
    }

    fn bundles(&self) -> PathBuf {
        self.directory.join("bundles")
    }

    fn workers(&self) -> PathBuf {
        self.directory.join("workers")
    }

    /// Makes the directory of a worker, with a temporary directory `temp`.
    pub fn worker(&self) -> io::Result<SandboxDirectory> {
        let directory = self.remover.own(self.workers().join(Uuid::new_v4().simple().to_string()));
        new_directory(directory.path(), READABLE_MODE)?;
        new_directory(&directory.path().join("temp"), OPEN_MODE)?;
        Ok(directory)
    }
}

/// Removes the interpreters that users of sandboxes cannot execute, and returns a sentence on each.
pub fn remove_unreachable(interpreters: &mut Vec<Interpreter>) -> Vec<String> {
    let mut sentences = Vec::new();
    interpreters.retain(|interpreter| {
        let paths = [&interpreter.program].into_iter().chain(&interpreter.directories);
        let Some(closed) = paths.map(PathBuf::as_path).find_map(closed_part) else { return true };
        sentences.push(format!(
            "{}: users of sandboxes may not read {}: install it where every user may",
            interpreter.program.display(),
            closed.display()
        ));
        false
    });
    sentences
}

/// Makes a directory. The process itself creates files for nobody else.
fn new_directory(path: &Path, mode: u32) -> io::Result<()> {
    fs::create_dir(path)?;
    set_mode(path, mode)
}

fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, PermissionsExt::from_mode(mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_of_an_earlier_process_are_removed() {
        let ground = tempfile::tempdir().expect("a directory");
        let directory = ground.path().join("functions");
        let place = RunnerPlace::prepare(&directory).expect("a place");
        let temp = directory.join("workers/old/temp");
        fs::create_dir_all(temp.join("closed")).expect("directories");
        fs::write(temp.join("closed/file"), "x").expect("a file");
        fs::write(directory.join("bundles/kept"), "x").expect("a file");
        set_mode(&temp.join("closed"), 0).expect("permissions");
        drop(place);
        let place = RunnerPlace::prepare(&directory).expect("a place");
        assert!(!temp.exists() && directory.join("bundles/kept").exists());
        let worker = place.worker().expect("a directory");
        assert!(worker.path().join("temp").is_dir());
        assert_eq!(closed_part(&place.runtime()), closed_part(ground.path()), "only the directory above is closed");
    }
}
