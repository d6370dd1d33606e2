//! Outside libraries, each named by one crate only; versions and features stated once, in the workspace manifest.

use toml::{Table, Value};

use crate::workspace::Crate;

/// Crates that read rows as columns of arrow.
const COLUMN_CRATES: &[&str] = &[
    "assay-storage-segments",
    "assay-storage-shard",
    "assay-node-expressions",
    "assay-node-engine",
    "assay-node-query",
];

/// A library and the crates that may name it, each with a reason where it is a guest.
const LIBRARIES: &[(&str, &[&str])] = &[
    ("sled", &["assay-storage-kv"]),
    // The bench feeds raft-engine the same bytes as the store: it is the peer measured against.
    ("raft-engine", &["assay-storage-log", "assay-bench"]),
    // The trait that raft-engine wants of what it stores.
    ("protobuf", &["assay-storage-log", "assay-bench"]),
    // answers are written as Parquet files too, and exports of other products are read
    ("parquet", &["assay-storage-segments", "assay-node-query", "assay-node-import-client", "assay-test-api"]),
    // Rows that are read travel as columns: the shard makes those in memory, and expressions are computed over them.
    ("arrow-array", COLUMN_CRATES),
    ("arrow-buffer", COLUMN_CRATES),
    ("arrow-schema", COLUMN_CRATES),
    ("arrow-select", COLUMN_CRATES),
    // Columns between nodes and to clients as Arrow streams.
    ("arrow-ipc", &["assay-node-engine", "assay-node-query"]),
    // Tests compare comparisons of columns with those of arrow, and read what the node wrote.
    ("arrow", &["assay-node-expressions", "assay-test-btql", "assay-test-api"]),
    ("openraft", &["assay-cluster-raft"]),
    ("bincode", &["assay-storage-model"]),
    // The bench reads its own use of processor and memory; `assay dev` asks the nodes it started to stop; a socket that
    // takes connections is closed apart from the server that has it.
    // A sandboxed process restricts itself, and is ended with its group.
    (
        "rustix",
        &[
            "assay-storage-disk",
            "assay-storage-threads",
            "assay-bench",
            "assay",
            "assay-node-http",
            "assay-node-sandbox",
        ],
    ),
    // Names of content, fingerprints of keys, of rules of rate limiting, and of requests that may be sent twice; which rows a
    // sample has; the order of upstreams; keys of cached responses; ids of imported rows.
    (
        "blake3",
        &[
            "assay-storage-blobs",
            "assay-node-auth",
            "assay-node-backups",
            "assay-node-identity",
            "assay-node-importers",
            "assay-node-runner",
            "assay-node-secrets",
            "assay-node-http",
            "assay-node-limits",
            "assay-node-engine",
            "assay-node-query",
            "assay-node-files",
            "assay-node-models",
            "assay-node-response-cache",
            "assay-test-btql",
        ],
    ),
    ("chacha20poly1305", &["assay-node-secrets"]),
    ("object_store", &["assay-node-segment-store"]),
    ("http", &["assay-node-segment-store"]),
    ("http-body", &["assay-node-segment-store"]),
    ("http-body-util", &["assay-node-segment-store"]),
    ("async-trait", &["assay-node-segment-store"]),
    // Pages of words, and objects of backups.
    ("zstd", &["assay-storage-segments", "assay-node-backups"]),
    // What closes a sandbox, and the numbers of system calls for it.
    ("landlock", &["assay-node-sandbox"]),
    ("seccompiler", &["assay-node-sandbox"]),
    ("libc", &["assay-node-sandbox"]),
    ("nix", &["assay-node-sandbox"]),
    ("zip", &["assay-node-bundles"]),
    ("rquickjs", &["assay-node-quickjs"]),
    ("oxc_parser", &["assay-node-typescript"]),
    ("lz4_flex", &["assay-storage-segments"]),
    // Checksums of files; and those of event streams, which Bedrock sends.
    ("crc32fast", &["assay-node-dialects-converse", "assay-storage-log"]),
    ("tonic", &["assay-cluster-transport"]),
    // Messages between nodes; and those of OTLP, which clients send.
    ("prost", &["assay-cluster-transport", "assay-node-otel"]),
    // HTTP/2 between nodes, and for clients that speak gRPC; HTTP/1.1 to servers outside. The bench speaks to etcd, which
    // it measures against, and which speaks HTTP/2 only.
    ("hyper", &["assay-cluster-transport", "assay-node-egress", "assay-node-http", "assay-bench"]),
    ("hyper-util", &["assay-cluster-transport", "assay-node-egress", "assay-node-http", "assay-bench"]),
    ("tokio-rustls", &["assay-cluster-transport", "assay-node-egress", "assay-node-http"]),
    ("rcgen", &["assay-cluster-transport"]),
    // Signatures that callers show, and those that model providers want; and the provider of a test that logs people in
    // signs as a real one does.
    ("ring", &["assay-node-auth", "assay-node-cloud-credentials", "assay-test-api"]),
    // The bench's bare pipeline is the same server with nothing behind it: what ingest is measured against.
    ("actix-web", &["assay-node-http", "assay-bench"]),
    // What actix-web stands on: connections pass the gate before they are HTTP.
    ("actix-http", &["assay-node-http"]),
    ("actix-rt", &["assay-node-http"]),
    ("actix-server", &["assay-node-http"]),
    ("actix-service", &["assay-node-http"]),
    ("actix-tls", &["assay-node-http"]),
    ("actix", &["assay-node-objects", "assay"]),
    ("pulldown-cmark", &["assay-node-guide"]),
    ("sqlparser", &["assay-node-btql"]),
    ("minijinja", &["assay-node-prompts"]),
    ("rmcp", &["assay-node-mcp-client"]),
    ("sse-stream", &["assay-node-mcp-client"]),
    // A program has one allocator, and says which.
    ("tikv-jemallocator", &["assay"]),
];

/// Fields that every manifest inherits from the workspace.
const FROM_THE_TOP: [&str; 5] = ["version", "edition", "rust-version", "license", "publish"];

/// Returns libraries that are named by crates that may not name them.
pub fn misplaced(crates: &[Crate]) -> Vec<String> {
    let mut found = Vec::new();
    for member in crates {
        for (_, library, declared) in member.dependencies() {
            let library = declared.get("package").and_then(Value::as_str).unwrap_or(library);
            let entry = LIBRARIES.iter().find(|(name, _)| *name == library);
            if let Some((_, crates)) = entry.filter(|(_, crates)| !crates.contains(&member.name.as_str())) {
                found.push(format!(
                    "{} names the library {library}, which belongs to the crate {}",
                    member.name, crates[0]
                ));
            }
        }
    }
    found
}

/// Returns versions, features and package fields stated outside of the workspace manifest, and lints not inherited from
/// it.
pub fn said_twice(crates: &[Crate]) -> Vec<String> {
    let mut found = Vec::new();
    for member in crates {
        for (table, name, declared) in member.dependencies() {
            if !is_workspace_alone(declared) {
                found.push(format!("{}: {table}.{name} says more than `workspace = true`", member.name));
            }
        }
        for fact in FROM_THE_TOP.iter().filter(|fact| !is_workspace_alone(fact_of(&member.manifest, fact))) {
            found.push(format!("{}: package.{fact} is not taken from the workspace", member.name));
        }
        if !member.manifest.get("lints").is_some_and(is_workspace_alone) {
            found.push(format!("{}: `[lints] workspace = true` is missing", member.name));
        }
        if ["target", "features"].iter().any(|table| member.manifest.contains_key(*table)) {
            found.push(format!("{}: features and targets of its own split the build of the workspace", member.name));
        }
    }
    found
}

/// Returns dependencies of ours that have a version in the workspace, and unknown ones.
pub fn at_the_top(workspace: &Table) -> Vec<String> {
    let declared = workspace["workspace"]["dependencies"].as_table().expect("a table of dependencies");
    let is_ours = |name: &str| name == "assay" || name.starts_with("assay-");
    let is_path = |value: &Value| value.get("path").is_some() && value.get("version").is_none();
    let wrong = declared.iter().filter(|(name, value)| is_ours(name) != is_path(value));
    wrong.map(|(name, _)| format!("{name}: ours are paths and the others versions")).collect()
}

fn fact_of<'a>(manifest: &'a Table, fact: &str) -> &'a Value {
    manifest["package"].get(fact).unwrap_or(&Value::Boolean(false))
}

fn is_workspace_alone(declared: &Value) -> bool {
    declared
        .as_table()
        .is_some_and(|table| table.len() == 1 && table.get("workspace").and_then(Value::as_bool) == Some(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "[package]\nname = \"assay-storage-log\"\nversion.workspace = true\nedition.workspace = true\n\
        rust-version.workspace = true\nlicense.workspace = true\npublish.workspace = true\n[lints]\nworkspace = true\n";

    fn log(more: &str) -> Vec<Crate> {
        vec![Crate::sample("storage/log", &format!("{GOOD}{more}"))]
    }

    #[test]
    fn a_library_outside_its_crate_is_named_also_under_another_name() {
        assert_eq!(
            misplaced(&log("[dependencies]\nsled.workspace = true\n")),
            ["assay-storage-log names the library sled, which belongs to the crate assay-storage-kv"]
        );
        assert_eq!(
            misplaced(&log("[dev-dependencies]\nstore = { package = \"sled\", version = \"0.34\" }\n")).len(),
            1
        );
        assert!(misplaced(&log("[dependencies]\nraft-engine.workspace = true\nbytes.workspace = true\n")).is_empty());
    }

    #[test]
    fn a_version_or_a_feature_in_a_crate_is_named() {
        assert!(said_twice(&log("[dependencies]\nbytes.workspace = true\n")).is_empty());
        for more in [
            "[dependencies]\nbytes = \"1\"\n",
            "[dev-dependencies]\nbytes = { workspace = true, features = [\"serde\"] }\n",
            "[features]\nfast = []\n",
            "[target.'cfg(unix)'.dependencies]\nbytes.workspace = true\n",
        ] {
            assert_eq!(said_twice(&log(more)).len(), 1, "{more}");
        }
    }

    #[test]
    fn a_crate_without_the_lints_or_with_facts_of_its_own_is_named() {
        assert!(said_twice(&log("")).is_empty());
        let bare = Crate::sample("storage/log", "[package]\nname = \"x\"\nversion = \"1.0.0\"\n");
        assert_eq!(said_twice(&[bare]).len(), FROM_THE_TOP.len() + 1);
    }

    #[test]
    fn ours_are_paths_and_others_versions() {
        let top = |line: &str| at_the_top(&format!("[workspace.dependencies]\n{line}\n").parse().expect("TOML"));
        assert!(top("assay-cluster = { path = \"cluster\" }\nbytes = \"1\"").is_empty());
        assert_eq!(top("assay-cluster = \"1\"").len(), 1);
        assert_eq!(top("bytes = { path = \"../bytes\" }").len(), 1);
    }
}
