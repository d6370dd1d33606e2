//! Files of the console, packed into the program or, during development, read from a folder.

use std::io::{self, Read};
use std::path::Path;

use flate2::read::GzDecoder;

include!(concat!(env!("OUT_DIR"), "/packed.rs"));

/// Path of the page that every address of the console serves.
pub const INDEX: &str = "index.html";
/// Upper bound of the size of a file that is read from a folder.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// File that is packed into the program.
#[derive(Clone, Copy, Debug)]
pub struct PackedFile {
    pub path: &'static str,
    /// Entity tag, including its quotes.
    pub tag: &'static str,
    /// Length before compression, in bytes.
    pub bytes: usize,
    pub gzip: &'static [u8],
}

impl PackedFile {
    pub fn find(path: &str) -> Option<&'static PackedFile> {
        PACKED.binary_search_by(|file| file.path.cmp(path)).ok().map(|found| &PACKED[found])
    }

    /// Returns the uncompressed content, for clients that do not accept gzip.
    pub fn unpacked(&self) -> io::Result<Vec<u8>> {
        let mut content = Vec::with_capacity(self.bytes);
        GzDecoder::new(self.gzip).read_to_end(&mut content)?;
        Ok(content)
    }
}

/// Reads a file below a folder.
///
/// Returns `None` if the file is absent or too large. A path with unusual segments also yields `None`, which keeps
/// reads inside the folder.
pub fn read_from(folder: &Path, path: &str) -> Option<Vec<u8>> {
    let is_plain = |part: &str| !part.is_empty() && !part.starts_with('.') && part.bytes().all(is_path_byte);
    if !path.split('/').all(is_plain) {
        return None;
    }
    let file = folder.join(path);
    let is_small = std::fs::metadata(&file).is_ok_and(|found| found.is_file() && found.len() <= FILE_BYTES_MAX);
    is_small.then(|| std::fs::read(&file).ok()).flatten()
}

fn is_path_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)
}

/// Returns the content type of a file according to its extension.
pub fn content_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("ico") => "image/x-icon",
        Some("json") => "application/json",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_packed_file_is_found_and_unpacks_to_its_length() {
        assert!(PACKED.len() > 2, "{PACKED:?}");
        for file in PACKED {
            let found = PackedFile::find(file.path).expect("is found");
            assert_eq!(found.unpacked().expect("unpacks").len(), file.bytes, "{}", file.path);
            assert_ne!(content_type(file.path), "application/octet-stream", "{}", file.path);
        }
        assert!(PackedFile::find("index.htm").is_none());
    }

    #[test]
    fn the_page_is_small_and_has_no_script_or_style_of_its_own() {
        let page = PackedFile::find(INDEX).expect("a page").unpacked().expect("unpacks");
        let text = String::from_utf8(page).expect("UTF-8");
        assert!(text.len() < 2048, "{}", text.len());
        for tag in ["<style", " style=", " onload=", " onerror="] {
            assert!(!text.contains(tag), "{tag}: {text}");
        }
        let scripts: Vec<&str> = text.split("<script").skip(1).collect();
        assert!(!scripts.is_empty() && scripts.iter().all(|script| script.contains("src=\"/app/assets/")), "{text}");
        assert!(text.split("</script>").all(|before| before.trim_end().ends_with('>')), "{text}");
    }

    #[test]
    fn a_path_never_leaves_its_folder() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert!(read_from(folder, "Cargo.toml").is_some() && read_from(folder, "src/lib.rs").is_some());
        for path in
            ["", "/etc/passwd", "../Cargo.toml", "src/../Cargo.toml", ".env", "src/.", "src//lib.rs", "src", "a\\b"]
        {
            assert!(read_from(folder, path).is_none(), "{path}");
        }
    }
}
