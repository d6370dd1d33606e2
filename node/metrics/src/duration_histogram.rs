//! Histogram of durations with fixed buckets.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the buckets, in milliseconds.
const BOUNDS_MILLIS: [u64; 15] = [1, 2, 5, 10, 20, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 120_000];

/// Histogram of durations, which threads may change concurrently.
#[derive(Debug, Default)]
pub struct DurationHistogram {
    counts: [AtomicU64; BOUNDS_MILLIS.len()],
    beyond: AtomicU64,
    micros: AtomicU64,
}

impl DurationHistogram {
    pub fn observe(&self, took: Duration) {
        let place = BOUNDS_MILLIS.iter().position(|bound| took <= Duration::from_millis(*bound));
        let counter = place.map_or(&self.beyond, |place| &self.counts[place]);
        counter.fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Appends the values of the histogram. `labels` is empty or ends with a comma.
    pub fn write(&self, text: &mut String, name: &str, labels: &str) {
        let mut sum = 0;
        // Writing to a String cannot fail.
        for (bound, count) in BOUNDS_MILLIS.iter().zip(&self.counts) {
            sum += count.load(Ordering::Relaxed);
            let bound = Duration::from_millis(*bound).as_secs_f64();
            let _ = writeln!(text, "{name}_bucket{{{labels}le=\"{bound}\"}} {sum}");
        }
        sum += self.beyond.load(Ordering::Relaxed);
        let seconds = Duration::from_micros(self.micros.load(Ordering::Relaxed)).as_secs_f64();
        let alone = labels.trim_end_matches(',');
        let braced = if alone.is_empty() { String::new() } else { format!("{{{alone}}}") };
        let _ = writeln!(text, "{name}_bucket{{{labels}le=\"+Inf\"}} {sum}");
        let _ = writeln!(text, "{name}_sum{braced} {seconds}\n{name}_count{braced} {sum}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_duration_is_in_its_bucket_and_in_all_larger_ones() {
        let histogram = DurationHistogram::default();
        for millis in [1, 4, 700, 200_000] {
            histogram.observe(Duration::from_millis(millis));
        }
        let mut text = String::new();
        histogram.write(&mut text, "waits", "kind=\"a\",");
        for line in [
            "waits_bucket{kind=\"a\",le=\"0.001\"} 1",
            "waits_bucket{kind=\"a\",le=\"0.005\"} 2",
            "waits_bucket{kind=\"a\",le=\"0.5\"} 2",
            "waits_bucket{kind=\"a\",le=\"1\"} 3",
            "waits_bucket{kind=\"a\",le=\"120\"} 3",
            "waits_bucket{kind=\"a\",le=\"+Inf\"} 4",
            "waits_sum{kind=\"a\"} 200.705",
            "waits_count{kind=\"a\"} 4",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
        let mut alone = String::new();
        histogram.write(&mut alone, "waits", "");
        assert!(alone.contains("waits_bucket{le=\"1\"} 3\n") && alone.ends_with("waits_count 4\n"), "{alone}");
    }
}
