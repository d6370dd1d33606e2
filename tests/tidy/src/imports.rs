//! Allowed dependencies between our crates: downwards only.

use crate::workspace::Crate;

/// Allowed names of each crate. An unlisted crate is refused: add a line for it.
const MAY_NAME: &[(&str, &[&str])] = &[
    ("assay-storage-model", &[]),
    ("assay-storage-threads", &[]),
    ("assay-storage-disk", &["assay-storage-model"]),
    ("assay-storage-kv", &["assay-storage-disk", "assay-storage-model"]),
    ("assay-storage-log", &["assay-storage-disk", "assay-storage-model"]),
    ("assay-storage-blobs", &["assay-storage-disk", "assay-storage-model"]),
    ("assay-storage-segments", &["assay-storage-disk", "assay-storage-model"]),
    (
        "assay-storage-shard",
        &[
            "assay-storage-blobs",
            "assay-storage-disk",
            "assay-storage-kv",
            "assay-storage-model",
            "assay-storage-segments",
        ],
    ),
    ("assay-storage-catalog", &["assay-storage-disk", "assay-storage-kv", "assay-storage-model"]),
    ("assay-cluster-placement", &["assay-storage-model"]),
    ("assay-cluster-transport", &["assay-storage-model"]),
    (
        "assay-cluster-raft",
        &[
            "assay-storage-blobs",
            "assay-storage-catalog",
            "assay-storage-disk",
            "assay-storage-log",
            "assay-storage-model",
            "assay-storage-shard",
            "assay-storage-threads",
        ],
    ),
    (
        "assay-cluster-directory",
        &["assay-cluster-raft", "assay-cluster-transport", "assay-storage-disk", "assay-storage-model"],
    ),
    (
        "assay-cluster-replicas",
        &[
            "assay-cluster-directory",
            "assay-cluster-raft",
            "assay-storage-blobs",
            "assay-storage-disk",
            "assay-storage-log",
            "assay-storage-model",
            "assay-storage-shard",
            "assay-storage-threads",
        ],
    ),
    (
        "assay-cluster-network",
        &[
            "assay-cluster-directory",
            "assay-cluster-raft",
            "assay-cluster-replicas",
            "assay-cluster-transport",
            "assay-storage-blobs",
            "assay-storage-catalog",
            "assay-storage-model",
        ],
    ),
    (
        "assay-cluster",
        &[
            "assay-cluster-directory",
            "assay-cluster-network",
            "assay-cluster-placement",
            "assay-cluster-raft",
            "assay-cluster-replicas",
            "assay-cluster-transport",
            "assay-storage-blobs",
            "assay-storage-catalog",
            "assay-storage-disk",
            "assay-storage-log",
            "assay-storage-model",
            "assay-storage-shard",
        ],
    ),
    ("assay-node-auth", &["assay-storage-model"]),
    ("assay-node-secrets", &["assay-cluster", "assay-node-auth", "assay-storage-model"]),
    (
        "assay-node-response-cache",
        &["assay-cluster", "assay-node-auth", "assay-node-secrets", "assay-storage-disk", "assay-storage-model"],
    ),
    ("assay-node-values", &["assay-storage-model"]),
    ("assay-node-btql", &["assay-node-values", "assay-storage-model"]),
    ("assay-node-scorers", &[]),
    ("assay-node-sandbox", &[]),
    ("assay-node-runtimes", &[]),
    ("assay-node-typescript", &[]),
    ("assay-node-quickjs", &["assay-node-runtimes"]),
    ("assay-node-bundles", &[]),
    ("assay-node-runner", &["assay-node-bundles", "assay-node-limits", "assay-node-runtimes", "assay-node-sandbox"]),
    ("assay-node-evaluations", &["assay-node-comparison", "assay-node-scorers"]),
    ("assay-node-online-scoring", &["assay-node-btql", "assay-node-scorers"]),
    ("assay-node-invocations", &["assay-node-prompts", "assay-node-scorers", "assay-node-values"]),
    ("assay-node-shapes", &[]),
    ("assay-node-models", &[]),
    ("assay-node-metrics", &[]),
    ("assay-node-usage", &["assay-cluster", "assay-storage-disk", "assay-storage-model"]),
    ("assay-node-running-queries", &["assay-node-metrics"]),
    ("assay-node-bulk-jobs", &["assay-cluster", "assay-storage-model"]),
    ("assay-node-comparison", &[]),
    ("assay-node-reviews", &[]),
    ("assay-node-code-forwarding", &["assay-cluster", "assay-node-runner", "assay-storage-model"]),
    ("assay-node-cooling-exchange", &["assay-cluster", "assay-node-models", "assay-storage-model"]),
    ("assay-node-guide", &[]),
    ("assay-node-limits", &["assay-cluster", "assay-node-auth", "assay-node-metrics", "assay-storage-model"]),
    ("assay-node-otel", &[]),
    ("assay-node-langfuse", &["assay-node-otel", "assay-storage-model"]),
    ("assay-node-prompts", &[]),
    ("assay-node-expressions", &["assay-node-btql", "assay-storage-model"]),
    (
        "assay-node-engine",
        &[
            "assay-node-btql",
            "assay-node-expressions",
            "assay-node-reviews",
            "assay-node-running-queries",
            "assay-storage-model",
            "assay-storage-segments",
            "assay-storage-shard",
        ],
    ),
    (
        "assay-node-query",
        &[
            "assay-cluster",
            "assay-node-btql",
            "assay-node-engine",
            "assay-node-expressions",
            "assay-node-limits",
            "assay-node-reviews",
            "assay-node-running-queries",
            "assay-node-usage",
            "assay-storage-disk",
            "assay-storage-model",
            "assay-storage-shard",
        ],
    ),
    (
        "assay-node-records",
        &[
            "assay-cluster",
            "assay-node-auth",
            "assay-node-guardrails",
            "assay-node-models",
            "assay-node-online-scoring",
            "assay-node-secrets",
            "assay-node-shapes",
            "assay-storage-catalog",
            "assay-storage-model",
        ],
    ),
    ("assay-node-budgets", &["assay-node-records", "assay-storage-model"]),
    ("assay-node-identity", &["assay-node-auth", "assay-node-records", "assay-node-secrets", "assay-storage-model"]),
    (
        "assay-node-objects",
        &[
            "assay-cluster",
            "assay-node-auth",
            "assay-node-limits",
            "assay-node-metrics",
            "assay-node-online-scoring",
            "assay-node-usage",
            "assay-storage-model",
            "assay-storage-shard",
            "assay-storage-threads",
        ],
    ),
    (
        "assay-node-files",
        &["assay-cluster", "assay-node-auth", "assay-node-objects", "assay-node-records", "assay-storage-model"],
    ),
    ("assay-node-functions", &["assay-node-auth", "assay-node-objects", "assay-node-records", "assay-storage-model"]),
    (
        "assay-node-transfer",
        &["assay-node-auth", "assay-node-files", "assay-node-objects", "assay-node-records", "assay-storage-model"],
    ),
    ("assay-node-restore-drill", &["assay-cluster", "assay-node-auth", "assay-node-egress", "assay-storage-model"]),
    (
        "assay-node-retention",
        &["assay-cluster", "assay-node-objects", "assay-node-query", "assay-node-records", "assay-storage-model"],
    ),
    (
        "assay-node-organization-deletion",
        &["assay-cluster", "assay-node-limits", "assay-node-records", "assay-storage-model"],
    ),
    ("assay-node-demo", &["assay-storage-model"]),
    ("assay-node-cloud-credentials", &["assay-node-models"]),
    ("assay-node-connections", &[]),
    ("assay-node-dialects", &[]),
    (
        "assay-node-gateway",
        &[
            "assay-node-auth",
            "assay-node-budgets",
            "assay-node-cloud-credentials",
            "assay-node-dialects",
            "assay-node-dialects-",
            "assay-node-egress",
            "assay-node-limits",
            "assay-node-models",
            "assay-node-response-cache",
            "assay-node-usage",
            "assay-storage-model",
        ],
    ),
    ("assay-node-guardrails", &[]),
    ("assay-node-mcp-client", &["assay-node-dialects", "assay-node-egress"]),
    ("assay-node-mcp-server", &["assay-node-guide"]),
    (
        "assay-node-mcp-http",
        &[
            "assay-node-console",
            "assay-node-evaluations-http",
            "assay-node-functions",
            "assay-node-http",
            "assay-node-invocations",
            "assay-node-mcp-server",
            "assay-node-query-http",
            "assay-node-records",
        ],
    ),
    ("assay-node-dialects-anthropic", &["assay-node-dialects"]),
    ("assay-node-dialects-chat", &["assay-node-dialects"]),
    ("assay-node-dialects-converse", &["assay-node-dialects", "assay-node-dialects-anthropic"]),
    ("assay-node-dialects-gemini", &["assay-node-dialects"]),
    ("assay-node-dialects-responses", &["assay-node-dialects"]),
    ("assay-node-egress", &[]),
    ("assay-node-segment-store", &["assay-node-egress", "assay-storage-disk"]),
    (
        "assay-node-backups",
        &["assay-cluster", "assay-node-auth", "assay-node-secrets", "assay-node-segment-store", "assay-storage-model"],
    ),
    ("assay-node-importers", &["assay-node-otel", "assay-storage-model"]),
    ("assay-node-import-client", &["assay-node-auth", "assay-node-egress", "assay-node-importers"]),
    (
        "assay-node-http",
        &[
            "assay-node-auth",
            "assay-node-bulk-jobs",
            "assay-node-code-forwarding",
            "assay-node-connections",
            "assay-node-files",
            "assay-node-functions",
            "assay-node-gateway",
            "assay-node-identity",
            "assay-node-limits",
            "assay-node-objects",
            "assay-node-query",
            "assay-node-records",
            "assay-node-runner",
            "assay-node-usage",
            "assay-storage-model",
            "assay-storage-threads",
        ],
    ),
    (
        "assay-node-query-http",
        &[
            "assay-node-auth",
            "assay-node-btql",
            "assay-node-http",
            "assay-node-identity",
            "assay-node-limits",
            "assay-node-query",
            "assay-node-records",
            "assay-node-reviews",
            "assay-node-secrets",
            "assay-storage-model",
        ],
    ),
    (
        "assay-node-console",
        &[
            "assay-cluster",
            "assay-node-auth",
            "assay-node-comparison",
            "assay-node-http",
            "assay-node-identity",
            "assay-node-limits",
            "assay-node-query-http",
            "assay-node-records",
            "assay-storage-model",
        ],
    ),
    (
        "assay-node-api-descriptions",
        &[
            "assay-node-auth",
            "assay-node-files",
            "assay-node-functions",
            "assay-node-gateway",
            "assay-node-http",
            "assay-node-identity",
            "assay-node-query",
            "assay-node-records",
            "assay-storage-model",
        ],
    ),
    (
        "assay-node-rows-http",
        &[
            "assay-node-auth",
            "assay-node-btql",
            "assay-node-bulk-jobs",
            "assay-node-files",
            "assay-node-functions",
            "assay-node-http",
            "assay-node-limits",
            "assay-node-objects",
            "assay-node-otel",
            "assay-node-query-http",
            "assay-node-records",
            "assay-node-reviews",
            "assay-storage-model",
        ],
    ),
    (
        "assay-node-langfuse-http",
        &[
            "assay-node-auth",
            "assay-node-functions",
            "assay-node-http",
            "assay-node-langfuse",
            "assay-node-objects",
            "assay-node-otel",
            "assay-node-query-http",
            "assay-node-records",
            "assay-node-rows-http",
            "assay-storage-model",
        ],
    ),
    (
        "assay-node-invocations-http",
        &[
            "assay-node-api-descriptions",
            "assay-node-auth",
            "assay-node-code-forwarding",
            "assay-node-dialects",
            "assay-node-files",
            "assay-node-functions",
            "assay-node-gateway",
            "assay-node-guardrails",
            "assay-node-http",
            "assay-node-identity",
            "assay-node-invocations",
            "assay-node-mcp-client",
            "assay-node-models",
            "assay-node-objects",
            "assay-node-otel",
            "assay-node-prompts",
            "assay-node-query-http",
            "assay-node-records",
            "assay-node-rows-http",
            "assay-node-runner",
            "assay-node-scorers",
            "assay-node-typescript",
            "assay-storage-model",
        ],
    ),
    (
        "assay-node-evaluations-http",
        &[
            "assay-node-auth",
            "assay-node-btql",
            "assay-node-comparison",
            "assay-node-dialects",
            "assay-node-egress",
            "assay-node-evaluations",
            "assay-node-gateway",
            "assay-node-http",
            "assay-node-invocations",
            "assay-node-invocations-http",
            "assay-node-objects",
            "assay-node-otel",
            "assay-node-prompts",
            "assay-node-query",
            "assay-node-query-http",
            "assay-node-records",
            "assay-node-rows-http",
            "assay-storage-model",
        ],
    ),
    (
        "assay-node-online-scoring-executor",
        &[
            "assay-cluster",
            "assay-node-auth",
            "assay-node-btql",
            "assay-node-expressions",
            "assay-node-gateway",
            "assay-node-http",
            "assay-node-invocations",
            "assay-node-invocations-http",
            "assay-node-limits",
            "assay-node-objects",
            "assay-node-online-scoring",
            "assay-node-prompts",
            "assay-node-query-http",
            "assay-node-records",
            "assay-storage-model",
            "assay-storage-shard",
        ],
    ),
    (
        "assay-node-api",
        &[
            "assay-node-api-descriptions",
            "assay-node-auth",
            "assay-node-btql",
            "assay-node-budgets",
            "assay-node-comparison",
            "assay-node-console",
            "assay-node-evaluations-http",
            "assay-node-functions",
            "assay-node-gateway",
            "assay-node-guide",
            "assay-node-http",
            "assay-node-identity",
            "assay-node-invocations",
            "assay-node-invocations-http",
            "assay-node-langfuse-http",
            "assay-node-limits",
            "assay-node-mcp-http",
            "assay-node-objects",
            "assay-node-online-scoring-executor",
            "assay-node-otel",
            "assay-node-query",
            "assay-node-query-http",
            "assay-node-records",
            "assay-node-rows-http",
            "assay-node-usage",
            "assay-storage-model",
        ],
    ),
    ("assay", &["assay-cluster", "assay-node-", "assay-storage-"]),
    // The bench asks placement which shard an object is in, to know whose outage it sees.
    ("assay-bench", &["assay-cluster", "assay-cluster-placement", "assay-storage-"]),
    // Its simulations put objects' lines and consensus together in a shell of their own.
    (
        "assay-chaos",
        &[
            "assay-bench",
            "assay-cluster",
            "assay-cluster-raft",
            "assay-node-objects",
            "assay-storage-",
            "assay-test-clients",
        ],
    ),
    ("assay-test-api", &["assay-test-providers"]),
    ("assay-test-btql", &["assay-node-btql", "assay-storage-model"]),
    ("assay-test-clients", &["assay-node-scorers", "assay-test-api", "assay-test-providers"]),
    ("assay-test-providers", &[]),
    ("assay-test-compat", &["assay-test-api", "assay-tests-tidy"]),
    ("assay-test-escapes", &["assay-test-api"]),
    ("assay-test-guide", &["assay-node-btql", "assay-test-api", "assay-tests-tidy"]),
    ("assay-test-runner", &[]),
    ("assay-tests-tidy", &[]),
];

/// Forbidden dependencies from an area to names with a prefix, also in tests.
const NEVER: &[(&str, &[&str], &str)] = &[
    (
        "storage/",
        &["assay-cluster", "assay-bench", "assay-chaos", "assay-test"],
        "storage knows no cluster and no test",
    ),
    ("cluster", &["assay-bench", "assay-chaos", "assay-test"], "the product knows no test"),
    ("node", &["assay-bench", "assay-chaos", "assay-test"], "the product knows no test"),
];

const PROGRAM: &str = "assay";

/// Returns the forbidden dependencies.
pub fn complaints(crates: &[Crate]) -> Vec<String> {
    crates.iter().flat_map(of_crate).collect()
}

fn of_crate(member: &Crate) -> Vec<String> {
    let Some((_, allowed)) = MAY_NAME.iter().find(|(name, _)| *name == member.name) else {
        return vec![format!("{}: not in the list of who may name whom", member.name)];
    };
    let mut found = Vec::new();
    for (table, name, _) in member.dependencies() {
        if name != PROGRAM && !name.starts_with("assay-") {
            continue;
        }
        if let Some((_, _, why)) = NEVER.iter().find(|(area, names, _)| {
            member.folder.starts_with(area) && (name == PROGRAM || names.iter().any(|never| name.starts_with(never)))
        }) && !within_cluster(member, name)
        {
            found.push(format!("{} names {name}: {why}", member.name));
        } else if table != "dev-dependencies" && !allowed.iter().any(|allowed| matches(allowed, name)) {
            found.push(format!("{} names {name}: imports run downwards only", member.name));
        }
    }
    found
}

/// The area's own crates begin with its name.
fn within_cluster(member: &Crate, name: &str) -> bool {
    member.folder.starts_with("cluster") && name.starts_with("assay-cluster")
}

/// A name, or with a dash at its end every name that begins so.
fn matches(allowed: &str, name: &str) -> bool {
    name == allowed || (allowed.ends_with('-') && name.starts_with(allowed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(folder: &str, name: &str, table: &str, names: &str) -> Vec<String> {
        let manifest = format!("[package]\nname = \"{name}\"\n[{table}]\n{names}.workspace = true\n");
        complaints(&[Crate::sample(folder, &manifest)])
    }

    #[test]
    fn upwards_and_sideways_imports_are_named() {
        let shard = |names| check("storage/shard", "assay-storage-shard", "dependencies", names);
        assert!(shard("assay-storage-kv").is_empty());
        assert_eq!(
            shard("assay-storage-log"),
            ["assay-storage-shard names assay-storage-log: imports run downwards only"]
        );
        assert_eq!(
            shard("assay-cluster"),
            ["assay-storage-shard names assay-cluster: storage knows no cluster and no test"]
        );
        assert_eq!(
            check("cluster/raft", "assay-cluster-raft", "dependencies", "assay-cluster"),
            ["assay-cluster-raft names assay-cluster: imports run downwards only"]
        );
    }

    #[test]
    fn the_product_never_names_a_test_also_not_in_its_tests() {
        assert_eq!(check("cluster", "assay-cluster", "dev-dependencies", "assay-bench").len(), 1);
        assert_eq!(check("node", "assay", "dev-dependencies", "assay-chaos").len(), 1);
        assert_eq!(check("storage/kv", "assay-storage-kv", "dev-dependencies", "assay").len(), 1);
        assert!(check("cluster", "assay-cluster", "dev-dependencies", "assay-storage-kv").is_empty());
    }

    #[test]
    fn a_crate_without_a_place_is_named() {
        let found = check("storage/common", "assay-storage-common", "dependencies", "bytes");
        assert_eq!(found, ["assay-storage-common: not in the list of who may name whom"]);
    }
}
