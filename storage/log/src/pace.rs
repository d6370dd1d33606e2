//! Detection of a slow disk under the log, from the duration of write rounds with their syncs.
//!
//! A node with a slow disk leads no group, because every entry that it leads waits for that disk. One slow write means
//! little. A disk counts as slow until it was fast for a while, so that leads do not oscillate.

use std::time::{Duration, Instant};

/// Duration from which a round of writes with its sync is slow. Disks of servers take 0.1 to 30 ms.
pub const SLOW_WRITE: Duration = Duration::from_millis(250);
/// Duration of uninterrupted slow writes after which a disk is slow.
pub const SLOW_FOR: Duration = Duration::from_secs(5);
/// Time after its last slow write during which a slow disk still counts as slow.
pub const FAST_FOR: Duration = Duration::from_secs(30);
/// Number of fast writes since the last slow one, below which a slow disk still counts as slow.
pub const FAST_WRITES: u32 = 20;
/// Number of consecutive fast writes that end a series of slow ones.
const SERIES_ENDS_AFTER: u32 = 3;

#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// Start of the current round.
    began: Option<Instant>,
    /// Start of the current series of slow writes.
    slow_since: Option<Instant>,
    last_slow: Option<Instant>,
    fast_writes: u32,
    slow: bool,
}

impl Pace {
    pub fn begin(&mut self, now: Instant) {
        self.began = Some(now);
    }

    pub fn end(&mut self, now: Instant) {
        let Some(began) = self.began.take() else { return };
        if now - began >= SLOW_WRITE {
            // Two slow writes an hour apart are not a series.
            let goes_on = self.last_slow.is_some_and(|last| began.saturating_duration_since(last) < SLOW_FOR);
            let since = self.slow_since.filter(|_| goes_on).unwrap_or(began);
            (self.slow_since, self.last_slow, self.fast_writes) = (Some(since), Some(now), 0);
            self.slow |= now - since >= SLOW_FOR;
            return;
        }
        self.fast_writes = self.fast_writes.saturating_add(1);
        if self.fast_writes >= SERIES_ENDS_AFTER {
            self.slow_since = None;
        }
        let fast_for_long = self.last_slow.is_none_or(|last| now - last >= FAST_FOR);
        self.slow &= !(fast_for_long && self.fast_writes >= FAST_WRITES);
    }

    pub fn is_slow(&self, now: Instant) -> bool {
        let under_way = self.began.filter(|began| now.saturating_duration_since(*began) >= SLOW_WRITE);
        let series = |began: Instant| {
            let goes_on = self.last_slow.is_some_and(|last| began.saturating_duration_since(last) < SLOW_FOR);
            self.slow_since.filter(|_| goes_on).unwrap_or(began)
        };
        self.slow || under_way.is_some_and(|began| now.saturating_duration_since(series(began)) >= SLOW_FOR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Disk {
        pace: Pace,
        now: Instant,
    }

    impl Disk {
        fn new() -> Disk {
            Disk { pace: Pace::default(), now: Instant::now() }
        }

        fn write(&mut self, takes: Duration) -> bool {
            self.pace.begin(self.now);
            self.now += takes;
            self.pace.end(self.now);
            self.pace.is_slow(self.now)
        }

        fn writes(&mut self, count: u32, takes: Duration) -> bool {
            (0..count).map(|_| self.write(takes)).last().expect("some")
        }
    }

    const FAST: Duration = Duration::from_millis(5);

    #[test]
    fn a_disk_is_slow_after_five_seconds_of_slow_writes_and_not_before() {
        for takes in [SLOW_WRITE, Duration::from_millis(400), Duration::from_secs(2)] {
            let (mut disk, mut spent) = (Disk::new(), Duration::ZERO);
            disk.writes(100, FAST);
            while spent + takes < SLOW_FOR {
                assert!(!disk.write(takes), "{spent:?} of {takes:?}");
                spent += takes;
            }
            assert!(disk.write(takes));
        }
    }

    #[test]
    fn a_write_under_way_counts_before_it_ends() {
        let mut disk = Disk::new();
        disk.pace.begin(disk.now);
        assert!(!disk.pace.is_slow(disk.now + SLOW_FOR - FAST));
        assert!(disk.pace.is_slow(disk.now + SLOW_FOR));
    }

    #[test]
    fn slow_writes_among_fast_ones_and_long_after_each_other_are_no_series() {
        let mut disk = Disk::new();
        for _ in 0..100 {
            assert!(!disk.write(SLOW_WRITE));
            assert!(!disk.writes(SERIES_ENDS_AFTER, FAST));
        }
        for _ in 0..10 {
            assert!(!disk.write(SLOW_WRITE * 2));
            disk.now += SLOW_FOR;
        }
    }

    #[test]
    fn a_disk_that_was_slow_is_fast_again_after_many_fast_writes_and_a_while() {
        let mut disk = Disk::new();
        assert!(disk.writes(10, SLOW_WRITE * 4));
        assert!(disk.writes(FAST_WRITES * 10, FAST), "too soon");
        disk.now += FAST_FOR;
        assert!(!disk.write(FAST));
        assert!(disk.writes(10, SLOW_WRITE * 4));
        disk.now += FAST_FOR * 10;
        assert!(disk.pace.is_slow(disk.now), "an idle disk shows nothing");
        assert!(!disk.writes(FAST_WRITES, FAST));
    }
}
