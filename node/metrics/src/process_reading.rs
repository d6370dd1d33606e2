//! Readings of the own process from files of `/proc`.

use std::fs;

use crate::family_head;

/// Ticks per second in files of `/proc`, which are the same on all supported machines (`USER_HZ`).
const TICKS_PER_SECOND: f64 = 100.0;

/// State of the process. Values that the system does not report are `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProcessReading {
    /// Physical memory, in bytes.
    pub resident_bytes: Option<u64>,
    pub threads: Option<u64>,
    /// Processor time of all threads since the start.
    pub cpu_seconds: Option<f64>,
    /// Start of the process, in seconds since 1970.
    pub start_seconds: Option<f64>,
    pub open_files: Option<u64>,
    /// Soft limit of the open files.
    pub open_files_max: Option<u64>,
}

impl ProcessReading {
    /// Reads the state of this process.
    pub fn now() -> ProcessReading {
        let file = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let mut reading = ProcessReading::of_texts(
            &file("/proc/self/status"),
            &file("/proc/self/stat"),
            &file("/proc/self/limits"),
            &file("/proc/stat"),
        );
        // The listing itself opens one file.
        reading.open_files = fs::read_dir("/proc/self/fd").ok().map(|found| (found.count() as u64).saturating_sub(1));
        reading
    }

    /// Reads the contents of `status`, `stat` and `limits` of a process, and of `stat` of the system.
    fn of_texts(status: &str, stat: &str, limits: &str, system: &str) -> ProcessReading {
        // The name of the program is in parentheses and may contain blanks. The third field follows it.
        let fields: Vec<&str> =
            stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().collect()).unwrap_or_default();
        let ticks = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let seconds = |ticks: u64| ticks as f64 / TICKS_PER_SECOND;
        let booted = line_after(system, "btime").and_then(|text| text.parse::<u64>().ok());
        ProcessReading {
            resident_bytes: line_after(status, "VmRSS:").and_then(number).map(|kilobytes| kilobytes << 10),
            threads: line_after(status, "Threads:").and_then(number),
            cpu_seconds: ticks(14).zip(ticks(15)).map(|(user, system)| seconds(user + system)),
            start_seconds: booted.zip(ticks(22)).map(|(booted, started)| booted as f64 + seconds(started)),
            open_files: None,
            open_files_max: line_after(limits, "Max open files").and_then(number),
        }
    }

    /// Returns the metrics in the text format of Prometheus, under the names that all programs use.
    pub fn text(&self) -> String {
        let whole = |value: Option<u64>| value.map(|value| value as f64);
        let rows = [
            ("process_resident_memory_bytes", "gauge", "Physical memory of the process.", whole(self.resident_bytes)),
            ("process_threads", "gauge", "Threads of the process.", whole(self.threads)),
            ("process_cpu_seconds_total", "counter", "Processor time of the process.", self.cpu_seconds),
            ("process_start_time_seconds", "gauge", "Start of the process, in seconds since 1970.", self.start_seconds),
            ("process_open_fds", "gauge", "Open files of the process.", whole(self.open_files)),
            ("process_max_fds", "gauge", "Upper bound of the open files of the process.", whole(self.open_files_max)),
        ];
        let known = rows.into_iter().filter_map(|(name, kind, help, value)| Some((name, kind, help, value?)));
        known.map(|(name, kind, help, value)| format!("{}{name} {value}\n", family_head(name, help, kind))).collect()
    }
}

fn line_after<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

/// Returns the first word as a number.
fn number(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_the_system_are_read() {
        let status = "Name:\tassay\nVmRSS:\t   2048 kB\nThreads:\t17\n";
        let stat = "7 (a) (b c) S 1 7 7 0 -1 4194560 9 0 0 0 250 150 0 0 20 0 17 0 500 1 2 3\n";
        let limits = "Limit      Soft Limit   Hard Limit  Units\nMax open files    1024    4096    files\n";
        let reading = ProcessReading::of_texts(status, stat, limits, "cpu 1 2\nbtime 1700000000\n");
        let expected = ProcessReading {
            resident_bytes: Some(2 << 20),
            threads: Some(17),
            cpu_seconds: Some(4.0),
            start_seconds: Some(1_700_000_005.0),
            open_files: None,
            open_files_max: Some(1024),
        };
        assert_eq!(reading, expected);
        let text = reading.text();
        assert!(text.contains("process_cpu_seconds_total 4\n") && !text.contains("process_open_fds"), "{text}");
    }

    #[test]
    fn what_the_system_does_not_report_is_left_out() {
        let unlimited = "Max open files    unlimited    unlimited    files\n";
        let reading = ProcessReading::of_texts("", "7 (cut", unlimited, "");
        assert_eq!(reading, ProcessReading::default());
        assert_eq!(reading.text(), "");
    }

    #[test]
    fn this_process_has_memory_threads_and_files() {
        let reading = ProcessReading::now();
        assert!(reading.resident_bytes.is_some_and(|bytes| bytes > 1 << 16), "{reading:?}");
        assert!(reading.threads.is_some_and(|threads| threads >= 1), "{reading:?}");
        assert!(reading.open_files.is_some_and(|files| files >= 3), "{reading:?}");
        assert!(reading.start_seconds.is_some_and(|start| start > 1.6e9), "{reading:?}");
        assert!(reading.cpu_seconds.is_some(), "{reading:?}");
    }
}
