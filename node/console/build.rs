//! Build script that compresses the files of `dist` and generates the index through which the program includes them.
//!
//! The folder is committed, so a build needs neither Node.js nor a network. `tests/dist.rs` checks that the folder was
//! built from the current sources.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").ok_or("CARGO_MANIFEST_DIR is not set")?);
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    let dist = root.join("dist");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", dist.display());
    let mut index =
        String::from("/// Files of the console, in the order of their paths.\npub static PACKED: &[PackedFile] = &[\n");
    for (number, (path, sha256)) in files_of(&dist)?.into_iter().enumerate() {
        let content = fs::read(dist.join(&path)).map_err(|error| format!("dist/{path}: {error}"))?;
        let packed = out.join(format!("{number}.gz"));
        fs::write(&packed, compressed(&content)?)?;
        let bytes = content.len();
        writeln!(
            index,
            "    PackedFile {{ path: {path:?}, tag: {:?}, bytes: {bytes}, gzip: include_bytes!({:?}) }},",
            format!("\"{sha256}\""),
            packed.display().to_string(),
        )?;
    }
    index.push_str("];\n");
    fs::write(out.join("packed.rs"), index)?;
    Ok(())
}

/// Returns the hash of each file in the manifest, by path.
fn files_of(dist: &Path) -> Result<BTreeMap<String, String>, Box<dyn Error>> {
    let manifest = dist.join("manifest.json");
    let text = fs::read_to_string(&manifest).map_err(|error| format!("{}: {error}", manifest.display()))?;
    let manifest: Value = serde_json::from_str(&text)?;
    let files = manifest["files"].as_object().ok_or("dist/manifest.json has no `files`")?;
    let hash = |(path, hash): (&String, &Value)| Some((path.clone(), hash.as_str()?.to_owned()));
    let files: Option<BTreeMap<_, _>> = files.iter().map(hash).collect();
    Ok(files.ok_or("dist/manifest.json: a hash is not a text")?)
}

fn compressed(content: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content)?;
    encoder.finish()
}
