//! Paths that another user reaches, for sandboxes that have a user of their own and no private root.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Permission of others to enter a directory.
const ENTER: u32 = 0o001;
/// Permission of others to list and enter a directory, or to read and execute a program.
const READ_AND_EXECUTE: u32 = 0o005;

/// Returns the first directory or file on a path that other users may not enter or read.
///
/// `path` is a directory or a program that exists. Links are followed.
pub fn closed_part(path: &Path) -> Option<PathBuf> {
    let Ok(real) = fs::canonicalize(path) else { return Some(path.to_owned()) };
    let mut above: Vec<&Path> = real.ancestors().skip(1).collect();
    above.reverse();
    let lacks = |path: &Path, wanted: u32| !fs::metadata(path).is_ok_and(|found| has(&found, wanted));
    let closed = above.into_iter().find(|path| lacks(path, ENTER)).map(Path::to_owned);
    closed.or_else(|| lacks(&real, READ_AND_EXECUTE).then_some(real))
}

fn has(found: &fs::Metadata, wanted: u32) -> bool {
    found.permissions().mode() & wanted == wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_closed_directory_is_named() {
        let ground = tempfile::tempdir().expect("a directory");
        let ground = fs::canonicalize(ground.path()).expect("a path");
        let inner = ground.join("a/b");
        fs::create_dir_all(&inner).expect("directories");
        let set = |path: &Path, mode| fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("permissions");
        set(&ground, 0o711);
        set(&ground.join("a"), 0o711);
        set(&inner, 0o755);
        assert_eq!(closed_part(&inner), None);
        assert_eq!(closed_part(&ground.join("a")), Some(ground.join("a")), "it can be entered and not read");
        set(&ground, 0o700);
        assert_eq!(closed_part(&inner), Some(ground.clone()));
        assert_eq!(closed_part(&ground.join("missing")), Some(ground.join("missing")));
    }
}
