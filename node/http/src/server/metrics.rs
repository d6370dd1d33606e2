//! HTTP metrics in Prometheus text format.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Statuses with their own counter. All others are counted as 0.
const STATUSES: [u16; 27] = [
    0, 200, 202, 204, 206, 302, 304, 400, 401, 403, 404, 405, 408, 409, 410, 413, 415, 416, 422, 429, 431, 500, 501,
    502, 503, 504, 507,
];

/// Upper bounds of the histogram buckets of response times, in milliseconds.
const BUCKETS_MILLIS: [u64; 11] = [1, 2, 5, 10, 20, 50, 100, 250, 1000, 5000, 30_000];

/// Counters of requests and responses.
#[derive(Debug, Default)]
pub struct ServerMetrics {
    answers: [AtomicU64; STATUSES.len()],
    buckets: [AtomicU64; BUCKETS_MILLIS.len()],
    answered: AtomicU64,
    micros: AtomicU64,
    under_way: AtomicU64,
    begun: AtomicU64,
    pub body_bytes: AtomicU64,
    pub slow_bodies: AtomicU64,
    pub panics: AtomicU64,
    /// Number of browser reports about violations of the console's content policy.
    pub policy_reports: AtomicU64,
}

/// Active request. Dropping it ends the count, even if the caller disconnected.
#[derive(Debug)]
pub struct UnderWay<'a>(&'a ServerMetrics);

impl ServerMetrics {
    pub fn begin(&self) -> UnderWay<'_> {
        self.under_way.fetch_add(1, Ordering::Relaxed);
        self.begun.fetch_add(1, Ordering::Relaxed);
        UnderWay(self)
    }

    /// Returns the number of requests since startup, including active ones.
    pub fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    pub fn answered(&self, status: u16, took: Duration) {
        let place = STATUSES.iter().position(|known| *known == status).unwrap_or(0);
        self.answers[place].fetch_add(1, Ordering::Relaxed);
        if let Some(place) = BUCKETS_MILLIS.iter().position(|bound| took <= Duration::from_millis(*bound)) {
            self.buckets[place].fetch_add(1, Ordering::Relaxed);
        }
        self.answered.fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub fn add(counter: &AtomicU64, more: u64) {
        counter.fetch_add(more, Ordering::Relaxed);
    }

    /// Returns the metric of disconnected slow readers.
    pub fn slow_readers(count: u64) -> String {
        const NAME: &str = "assay_http_slow_readers_total";
        format!(
            "# HELP {NAME} Readers that were left because they were too slow.\n# TYPE {NAME} counter\n{NAME} {count}\n"
        )
    }

    /// Returns all metrics in Prometheus text format.
    pub fn text(&self, body_bytes_held: u64, answer_bytes_held: u64) -> String {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "# TYPE assay_http_answers_total counter");
        for (status, counter) in STATUSES.iter().zip(&self.answers) {
            let _ = writeln!(text, "assay_http_answers_total{{status=\"{status}\"}} {}", read(counter));
        }
        let _ = writeln!(text, "# TYPE assay_http_answer_seconds histogram");
        let mut sum = 0;
        for (bound, counter) in BUCKETS_MILLIS.iter().zip(&self.buckets) {
            sum += read(counter);
            let bound = Duration::from_millis(*bound).as_secs_f64();
            let _ = writeln!(text, "assay_http_answer_seconds_bucket{{le=\"{bound}\"}} {sum}");
        }
        let answered = read(&self.answered).max(sum);
        let seconds = Duration::from_micros(read(&self.micros)).as_secs_f64();
        let _ = writeln!(text, "assay_http_answer_seconds_bucket{{le=\"+Inf\"}} {answered}");
        let _ = writeln!(text, "assay_http_answer_seconds_sum {seconds}\nassay_http_answer_seconds_count {answered}");
        for (name, kind, value) in [
            ("requests_under_way", "gauge", read(&self.under_way)),
            ("body_bytes_held", "gauge", body_bytes_held),
            ("answer_bytes_held", "gauge", answer_bytes_held),
            ("body_bytes_total", "counter", read(&self.body_bytes)),
            ("slow_bodies_total", "counter", read(&self.slow_bodies)),
            ("panics_total", "counter", read(&self.panics)),
            ("console_policy_reports_total", "counter", read(&self.policy_reports)),
        ] {
            let _ = writeln!(text, "# TYPE assay_http_{name} {kind}\nassay_http_{name} {value}");
        }
        text
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_answered_is_counted_by_status_and_time() {
        let counts = ServerMetrics::default();
        let under_way = counts.begin();
        counts.answered(200, Duration::from_millis(4));
        counts.answered(404, Duration::from_secs(90));
        counts.answered(418, Duration::ZERO);
        let text = counts.text(7, 8);
        for line in [
            "assay_http_answers_total{status=\"200\"} 1",
            "assay_http_answers_total{status=\"404\"} 1",
            "assay_http_answers_total{status=\"0\"} 1",
            "assay_http_answer_seconds_bucket{le=\"0.005\"} 2",
            "assay_http_answer_seconds_bucket{le=\"30\"} 2",
            "assay_http_answer_seconds_bucket{le=\"+Inf\"} 3",
            "assay_http_requests_under_way 1",
            "assay_http_body_bytes_held 7",
            "assay_http_answer_bytes_held 8",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
        drop(under_way);
        assert!(counts.text(0, 0).contains("assay_http_requests_under_way 0"));
    }
}
