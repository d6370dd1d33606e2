//! Checksummed text files for the node's own state: lines of `name value`, below a first line with the file's kind and
//! version, above a checksum. Replaced whole, so that a crash leaves the old one or the new one.
//!
//! ```text
//! assay node 1
//! node 3
//! sum 89ab12cd                                  CRC32C of the lines above
//! ```

use std::io;
use std::path::{Path, PathBuf};

use assay_storage_disk::{Disk, read_whole, replace_whole};

use crate::data_dir::HomeError;

const FILE_BYTES_MAX: u64 = 1 << 20;
const VERSION: u32 = 1;

/// The lines of a file between its first and its last; none where there is no file.
pub fn read(disk: &dyn Disk, path: &Path, what: &str) -> Result<Option<Vec<(String, String)>>, HomeError> {
    let failed = |source| HomeError::Io { doing: format!("reading {}", path.display()), source };
    if !disk.exists(path).map_err(failed)? {
        return Ok(None);
    }
    let bytes = read_whole(disk, path, FILE_BYTES_MAX).map_err(failed)?;
    let damaged = |why: &str| HomeError::Damaged { path: path.to_owned(), what: why.to_owned() };
    let text = String::from_utf8(bytes).map_err(|_| damaged("it is not text"))?;
    let at = text.rfind("sum ").ok_or_else(|| damaged("it has no checksum"))?;
    let (body, sum) = text.split_at(at);
    if sum != sum_line(body) {
        return Err(damaged("its lines do not match their checksum"));
    }
    let mut lines = body.lines();
    let version =
        lines.next().and_then(|line| line.strip_prefix("assay ")?.strip_prefix(what)?.trim().parse::<u32>().ok());
    match version {
        Some(VERSION) => {}
        Some(found) if found > VERSION => {
            return Err(HomeError::Newer { dir: parent(path), found: found.to_string() });
        }
        _ => return Err(damaged("its first line does not name its kind")),
    }
    let pair = |line: &str| line.split_once(' ').map(|(name, value)| (name.to_owned(), value.to_owned()));
    lines.map(pair).collect::<Option<Vec<_>>>().ok_or_else(|| damaged("a line has no value")).map(Some)
}

pub fn write(disk: &dyn Disk, path: &Path, what: &str, lines: &[(String, String)]) -> Result<(), HomeError> {
    let mut body = format!("assay {what} {VERSION}\n");
    for (name, value) in lines {
        body.extend([name, " ", value, "\n"]);
    }
    let text = format!("{body}{}", sum_line(&body));
    let failed = |source: io::Error| HomeError::Io { doing: format!("writing {}", path.display()), source };
    replace_whole(disk, path, text.as_bytes()).map_err(failed)
}

fn sum_line(body: &str) -> String {
    format!("sum {:08x}\n", crc32c::crc32c(body.as_bytes()))
}

fn parent(path: &Path) -> PathBuf {
    assay_storage_disk::parent_of(path).to_owned()
}

#[cfg(test)]
mod tests {
    use assay_storage_disk::RealDisk;

    use super::*;

    #[test]
    fn lines_read_back_and_every_changed_byte_is_seen() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("NODE");
        assert!(read(&RealDisk, &path, "node").expect("reads").is_none());
        let lines = vec![("node".to_owned(), "3".to_owned()), ("address".to_owned(), "a b:1".to_owned())];
        write(&RealDisk, &path, "node", &lines).expect("writes");
        assert_eq!(read(&RealDisk, &path, "node").expect("reads"), Some(lines));
        assert!(read(&RealDisk, &path, "other").is_err());
        let text = std::fs::read(&path).expect("reads");
        for at in 0..text.len() {
            let mut changed = text.clone();
            changed[at] ^= 1;
            std::fs::write(&path, &changed).expect("writes");
            assert!(read(&RealDisk, &path, "node").is_err(), "byte {at}");
        }
    }
}
