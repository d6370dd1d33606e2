//! Readings of budgets, and their metrics in Prometheus text format.

use std::fmt::Write;
use std::time::Duration;

/// Upper bounds of the histogram's buckets, in milliseconds.
const BOUNDS_MILLIS: [u64; 9] = [1, 10, 100, 500, 1000, 2500, 5000, 10_000, 30_000];

/// Histogram of the waiting times of requests, including those that did not wait.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    counts: [u64; BOUNDS_MILLIS.len()],
    count: u64,
    sum: Duration,
}

impl Waits {
    pub fn note(&mut self, waited: Duration) {
        if let Some(place) = BOUNDS_MILLIS.iter().position(|bound| waited <= Duration::from_millis(*bound)) {
            self.counts[place] += 1;
        }
        self.count += 1;
        self.sum += waited;
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn sum(&self) -> Duration {
        self.sum
    }
}

/// State of a budget at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    pub total: u64,
    pub held: u64,
    /// Number of waiting requests, including reservations that wait to grow.
    pub waiting: u64,
    pub waiting_amount: u64,
    /// Number of requests refused since the start.
    pub refused: u64,
    pub waits: Waits,
}

/// Gauge or counter of every budget: name, help text, type and value.
type Family = (&'static str, &'static str, &'static str, fn(&Reading) -> u64);

const FAMILIES: [Family; 5] = [
    ("assay_budget_total", "Size of the budget.", "gauge", |reading| reading.total),
    ("assay_budget_held", "Part of the budget that is in use.", "gauge", |reading| reading.held),
    ("assay_budget_waiting", "Requests that wait for the budget.", "gauge", |reading| reading.waiting),
    ("assay_budget_waiting_amount", "Amount that waiting requests need.", "gauge", |reading| reading.waiting_amount),
    ("assay_budget_refused_total", "Requests refused by the budget.", "counter", |reading| reading.refused),
];

/// Returns the metrics of budgets, labelled by budget name. Organizations are not named.
pub fn metrics(budgets: &[(&str, Reading)]) -> String {
    const WAIT: &str = "assay_budget_wait_seconds";
    let mut text = String::new();
    // Writing to a String cannot fail.
    for (name, help, kind, value) in FAMILIES {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (budget, reading) in budgets {
            let _ = writeln!(text, "{name}{{budget=\"{budget}\"}} {}", value(reading));
        }
    }
    let _ = writeln!(text, "# HELP {WAIT} Time that requests waited for the budget.\n# TYPE {WAIT} histogram");
    for (budget, Reading { waits, .. }) in budgets {
        let mut sum = 0;
        for (bound, count) in BOUNDS_MILLIS.iter().zip(waits.counts) {
            sum += count;
            let bound = Duration::from_millis(*bound).as_secs_f64();
            let _ = writeln!(text, "{WAIT}_bucket{{budget=\"{budget}\",le=\"{bound}\"}} {sum}");
        }
        let (count, seconds) = (waits.count, waits.sum.as_secs_f64());
        let _ = writeln!(text, "{WAIT}_bucket{{budget=\"{budget}\",le=\"+Inf\"}} {count}");
        let _ = writeln!(text, "{WAIT}_sum{{budget=\"{budget}\"}} {seconds}");
        let _ = writeln!(text, "{WAIT}_count{{budget=\"{budget}\"}} {count}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_name_each_budget() {
        let mut waits = Waits::default();
        [Duration::ZERO, Duration::from_millis(400), Duration::from_secs(60)]
            .into_iter()
            .for_each(|one| waits.note(one));
        let reading = Reading { total: 8, held: 1, waiting: 2, waiting_amount: 3, refused: 4, waits };
        let text = metrics(&[("a", reading.clone()), ("b", reading)]);
        for line in [
            "assay_budget_held{budget=\"a\"} 1",
            "assay_budget_waiting{budget=\"b\"} 2",
            "assay_budget_refused_total{budget=\"b\"} 4",
            "assay_budget_wait_seconds_bucket{budget=\"a\",le=\"0.001\"} 1",
            "assay_budget_wait_seconds_bucket{budget=\"a\",le=\"0.5\"} 2",
            "assay_budget_wait_seconds_bucket{budget=\"a\",le=\"30\"} 2",
            "assay_budget_wait_seconds_bucket{budget=\"a\",le=\"+Inf\"} 3",
            "assay_budget_wait_seconds_sum{budget=\"a\"} 60.4",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
        assert_eq!(text.matches("# TYPE assay_budget_wait_seconds histogram").count(), 1);
    }
}
