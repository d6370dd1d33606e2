//! Operations that a running function may call with the credential of its invocation (F-44).
//!
//! The credential has the rights of the caller for rows, models and functions, and none to administer: with it a function
//! cannot make another credential, change access, or read secrets.

/// Error of an operation that is closed to functions.
pub(crate) const NOT_OPEN_TO_FUNCTIONS: &str = "the credential of a running function may read and write rows, and call models and functions, but not this operation";

/// Operations of exactly these paths.
const PATHS: [&str; 15] = [
    "/logs3",
    "/btql",
    "/version",
    "/ping",
    "/api/apikey/login",
    "/api/self/me",
    "/v1/insert",
    "/v1/traces",
    "/otel/v1/traces",
    "/api/project",
    "/attachment",
    "/attachment/status",
    "/logs3/overflow",
    "/xact-id",
    "/function/invoke",
];
/// Operations of all paths that begin so.
const BELOW: [&str; 12] = [
    "/v1/proxy",
    "/proxy",
    "/v1/project_logs/",
    "/v1/experiment",
    "/v1/dataset",
    "/v1/function",
    "/v1/prompt",
    "/api/project/",
    "/api/experiment/",
    "/api/dataset/",
    "/api/base_experiment/",
    "/api/dataset_snapshot/",
];
/// Operations that read records.
const READ: [&str; 2] = ["/v1/project", "/v1/project_score"];

/// Returns whether functions may call an operation. The path is decoded as for routing.
pub(crate) fn is_open_to_functions(method: &str, path: &str) -> bool {
    let is_record = |name: &str| path == name || path.strip_prefix(name).is_some_and(|rest| rest.starts_with('/'));
    match method {
        "GET" | "HEAD" => is_open_path(path) || READ.into_iter().any(is_record),
        "POST" | "PUT" => is_open_path(path),
        _ => false,
    }
}

fn is_open_path(path: &str) -> bool {
    // A temporary credential of the gateway would outlive the call.
    if path.trim_end_matches('/').ends_with("/credentials") {
        return false;
    }
    PATHS.contains(&path) || BELOW.into_iter().any(|prefix| path.starts_with(prefix)) || is_model_path(path)
}

fn is_model_path(path: &str) -> bool {
    assay_node_gateway::paths::is_gateway_path(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_work_with_rows_models_and_functions_and_administer_nothing() {
        for (method, path) in [
            ("POST", "/logs3"),
            ("POST", "/btql"),
            ("POST", "/v1/proxy/chat/completions"),
            ("POST", "/function/invoke"),
            ("POST", "/v1/function/00000000-0000-4000-8000-000000000001/invoke"),
            ("POST", "/v1/experiment"),
            ("GET", "/v1/project"),
            ("GET", "/v1/project/00000000-0000-4000-8000-000000000001"),
            ("POST", "/api/project/register"),
        ] {
            assert!(is_open_to_functions(method, path), "{method} {path}");
        }
        for (method, path) in [
            ("POST", "/v1/api_key"),
            ("POST", "/v1/service_token"),
            ("GET", "/v1/env_var"),
            ("POST", "/v1/env_var"),
            ("POST", "/v1/acl"),
            ("GET", "/v1/ai_secret"),
            ("PATCH", "/v1/project/00000000-0000-4000-8000-000000000001"),
            ("DELETE", "/v1/experiment/00000000-0000-4000-8000-000000000001"),
            ("POST", "/v1/project"),
            ("POST", "/v1/project_automation"),
            ("POST", "/oauth/token"),
            ("POST", "/v1/proxy/credentials"),
            ("POST", "/v1/proxy/v1/credentials"),
            ("POST", "/gateway/credentials"),
            ("POST", "/gateway/v1/credentials/"),
            ("POST", "/console/session"),
            ("POST", "/api/organization/patch_id"),
            ("GET", "/metrics"),
        ] {
            assert!(!is_open_to_functions(method, path), "{method} {path}");
        }
    }
}
