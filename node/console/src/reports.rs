//! Handler of `POST /console/csp`, which counts browser reports of policy violations and logs a few of them.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use assay_node_http::requests::admission::anonymous;
use assay_node_http::requests::body;
use assay_node_http::responses::HandlerResult;
use assay_node_http::server::edge::Edge;
use assay_node_http::server::metrics::ServerMetrics;
use assay_node_http::web::{Data, HttpRequest, HttpResponse, Payload};
use serde_json::Value;

const REPORT_BYTES_MAX: usize = 16 << 10;
/// Upper bound of the number of logged reports per period, because anyone can send reports.
const LOGGED_MAX: u32 = 10;
const PERIOD: Duration = Duration::from_secs(60);
/// Upper bound of the number of logged characters of each field.
const LETTERS_LOGGED: usize = 200;

/// Start of the current period, and the number of reports in it.
static LOGGED: Mutex<Option<(Instant, u32)>> = Mutex::new(None);

pub async fn report(edge: Data<Edge>, request: HttpRequest, payload: Payload) -> HandlerResult {
    let body = body::read(&edge, &anonymous(&request), &request, payload, REPORT_BYTES_MAX).await?;
    ServerMetrics::add(&edge.counts.policy_reports, 1);
    if may_log(Instant::now()) {
        let report: Value = serde_json::from_slice(&body.bytes).unwrap_or_default();
        let field = |name: &str| -> String {
            let text = report["csp-report"][name].as_str().unwrap_or_default();
            text.chars().filter(|letter| !letter.is_control()).take(LETTERS_LOGGED).collect()
        };
        tracing::warn!(
            directive = field("violated-directive"),
            blocked = field("blocked-uri"),
            page = field("document-uri"),
            "a browser reported a violation of the console's policy"
        );
    }
    Ok(HttpResponse::NoContent().finish())
}

fn may_log(now: Instant) -> bool {
    let mut logged = LOGGED.lock().unwrap_or_else(PoisonError::into_inner);
    let (since, count) = logged.filter(|(since, _)| now - *since < PERIOD).unwrap_or((now, 0));
    *logged = Some((since, count + 1));
    count < LOGGED_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_reports_fills_no_log() {
        let now = Instant::now();
        let logged = (0..100).filter(|_| may_log(now)).count();
        assert_eq!(logged, LOGGED_MAX as usize);
        assert!(may_log(now + PERIOD));
    }
}
