//! The limit of open files, and the share of it for connections.
//!
//! A process that is out of files can neither seal rows nor open what it needs, so connections never take what the store
//! may need.

use assay_node_egress::EgressSettings;
use assay_node_http::HttpConfig;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files that the store, the log, connections to other nodes and queries that spill may need, where there are enough.
const STORE_FILES_MAX: u64 = 4_096;
/// Divisor that gives the share of the store where there are few files.
const STORE_SHARE: u64 = 2;
/// Divisor that gives the share of outbound calls in the files for connections, where there are few.
const OUTBOUND_SHARE: usize = 8;

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

/// Lowers the limits of connections and outbound calls to fit the limit of open files.
pub fn fit(limit: Option<u64>, http: &mut HttpConfig, egress: &mut EgressSettings) {
    let Some(limit) = limit else { return };
    let files = usize::try_from(for_connections(limit)).unwrap_or(usize::MAX);
    let before = (http.connections_max, http.otlp_connections_max, egress.calls_max);
    let spare = files.saturating_sub(http.connection_files() + egress.idle_max());
    egress.calls_max = egress.calls_max.min(spare.max(files / OUTBOUND_SHARE)).max(1);
    let is_less = http.fit_connections(files.saturating_sub(egress.calls_max + egress.idle_max()));
    if is_less || egress.calls_max < before.2 {
        tracing::warn!(
            open_files = limit,
            connections_max = http.connections_max,
            otlp_connections_max = http.otlp_connections_max,
            egress_calls_max = egress.calls_max,
            "this process may not open enough files, so it accepts fewer connections than the settings allow ({} and \
             {}), or makes fewer outbound calls ({}). Raise the hard limit (ulimit -Hn, LimitNOFILE=)",
            before.0,
            before.1,
            before.2
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
        let (mut http, mut egress) = (HttpConfig::default(), EgressSettings::default());
        for enough in [Some(65_536), None] {
            fit(enough, &mut http, &mut egress);
            assert_eq!((&http, &egress), (&HttpConfig::default(), &EgressSettings::default()), "{enough:?}");
        }
        fit(Some(1_024), &mut http, &mut egress);
        assert!(http.connection_files() + 2 * egress.calls_max <= 512, "{}", http.connection_files());
        assert_eq!((egress.calls_max, egress.idle_max()), (64, 64));
    }
}
