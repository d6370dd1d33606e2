//! Manifest beside an unpacked bundle, by which a restarted node checks the directory.

use serde_json::{Value, json};

use crate::unpack::UnpackedSize;

/// Name of the manifest in the directory of an entry.
pub(crate) const MANIFEST_FILE: &str = "manifest.json";
/// Upper bound of the bytes of a manifest.
pub(crate) const MANIFEST_BYTES_MAX: u64 = 1 << 10;

/// Version of the layout of an entry. A change makes all stored entries invalid.
const LAYOUT: u64 = 1;

/// Returns the text of the manifest of a bundle with this size.
pub(crate) fn encode_manifest(size: &UnpackedSize) -> String {
    let UnpackedSize { files, directories, bytes, disk_bytes } = size;
    json!({"layout": LAYOUT, "files": files, "directories": directories, "bytes": bytes, "disk_bytes": disk_bytes})
        .to_string()
}

/// Reads a manifest. Returns `None` for another layout and for damaged texts.
pub(crate) fn decode_manifest(text: &str) -> Option<UnpackedSize> {
    let manifest: Value = serde_json::from_str(text).ok()?;
    let number = |name: &str| manifest.get(name).and_then(Value::as_u64);
    (number("layout")? == LAYOUT).then_some(UnpackedSize {
        files: number("files")?,
        directories: number("directories")?,
        bytes: number("bytes")?,
        disk_bytes: number("disk_bytes")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_read_as_it_was_written_and_fits_its_limit() {
        for size in [
            UnpackedSize::default(),
            UnpackedSize { files: 1, directories: 2, bytes: 3, disk_bytes: 4 },
            UnpackedSize { files: u64::MAX, directories: u64::MAX, bytes: u64::MAX, disk_bytes: u64::MAX },
        ] {
            let text = encode_manifest(&size);
            assert_eq!(decode_manifest(&text), Some(size));
            assert!(text.len() as u64 <= MANIFEST_BYTES_MAX);
        }
    }

    #[test]
    fn damaged_manifests_and_other_layouts_are_none() {
        let whole = encode_manifest(&UnpackedSize::default());
        for length in 0..whole.len() {
            assert_eq!(decode_manifest(&whole[..length]), None, "{length} bytes");
        }
        assert_eq!(decode_manifest(&whole.replace("\"layout\":1", "\"layout\":2")), None);
        assert_eq!(decode_manifest(&whole.replace("\"files\":0", "\"files\":-1")), None);
    }
}
