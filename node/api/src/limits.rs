//! Warnings about rate limit rules for paths that do not exist.

use assay_node_limits::LimitsConfig;

use crate::openapi::api_table::patterns;
use crate::openapi::suggestions::nearest;

/// Returns warnings about rate limit rules for unknown paths.
pub fn limits_warnings(limits: &LimitsConfig) -> Vec<String> {
    limits.warnings(&patterns().collect::<Vec<_>>(), nearest)
}

#[cfg(test)]
mod tests {
    use assay_node_limits::{Per, RateRule};

    use super::*;

    #[test]
    fn a_rule_about_no_path_is_pointed_out() {
        let warned = |endpoint: &str| {
            let rule = RateRule {
                endpoint: endpoint.into(),
                methods: Vec::new(),
                per: Per::Organization,
                requests: 10,
                seconds: 1,
                burst: None,
                organizations: Vec::new(),
            };
            limits_warnings(&LimitsConfig { rates: vec![rule], ..LimitsConfig::default() })
        };
        let why = warned("/logs4").concat();
        assert!(why.contains("`/logs4`") && why.contains("did you mean `/logs3`?"), "{why}");
        assert_eq!(warned("/v1/nonsense/*").len(), 1);
        for right in [
            "*",
            "/logs3",
            "/v1/*",
            "/v1/project_logs/*/insert",
            "/v1/dataset/*",
            "/v1/traces",
            "/v1/proxy/chat/completions",
        ] {
            assert!(warned(right).is_empty(), "{right}");
        }
    }
}
