//! The limit of open files, and the share of it for connections.
//!
//! A process that is out of files can neither seal rows nor open what it needs, so connections never take what the store
//! may need.

use assay_node_http::HttpConfig;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files that the store, the log, connections to other nodes and queries that spill may need, where there are enough.
const STORE_FILES_MAX: u64 = 4_096;
/// Divisor that gives the share of the store where there are few files.
const STORE_SHARE: u64 = 2;

/// Raises the limit of open files as far as possible without privileges. Returns the new limit.
pub fn raise() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some() && limit.current != limit.maximum {
        let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            tracing::warn!(%error, "the limit of open files could not be raised");
        }
    }
    getrlimit(Resource::Nofile).current
}

/// Lowers the limits of connections to fit the limit of open files.
pub fn fit(limit: Option<u64>, http: &mut HttpConfig) {
    let Some(limit) = limit else { return };
    let before = (http.connections_max, http.otlp_connections_max);
    if http.fit_connections(usize::try_from(for_connections(limit)).unwrap_or(usize::MAX)) {
        tracing::warn!(
            open_files = limit,
            connections_max = http.connections_max,
            otlp_connections_max = http.otlp_connections_max,
            "this process may not open enough files, so it accepts fewer connections than the settings allow ({} and \
             {}). Raise the hard limit (ulimit -Hn, LimitNOFILE=)",
            before.0,
            before.1
        );
    }
}

/// Returns the share of connections.
fn for_connections(limit: u64) -> u64 {
    limit - (limit / STORE_SHARE).min(STORE_FILES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_store_keeps_files_of_its_own() {
        assert_eq!(for_connections(256), 128);
        assert_eq!(for_connections(1_024), 512);
        assert_eq!(for_connections(65_536), 61_440);
        let mut http = HttpConfig::default();
        fit(Some(65_536), &mut http);
        assert_eq!(http, HttpConfig::default(), "the usual limit is enough");
        fit(None, &mut http);
        assert_eq!(http, HttpConfig::default());
        fit(Some(1_024), &mut http);
        assert!(http.connection_files() <= 512, "{}", http.connection_files());
    }
}
