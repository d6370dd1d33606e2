//! Watch over a running call: its time, and what its sandbox uses.
//!
//! The watch does not depend on the exchange with the worker. A call whose events nobody reads has the same limits.

use std::sync::Arc;
use std::time::Duration;

use assay_node_sandbox::priority::yield_processors;
use assay_node_sandbox::usage::{
    SandboxUsage, count_open_files, count_temporary_files, measure, measure_shared_memory,
};
use assay_node_sandbox::{ExceededLimit, JailLimits, SandboxCgroup};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

use crate::error::CodeError;

/// Interval between two measurements of a running worker.
const MEASURE_EVERY: Duration = Duration::from_millis(50);
/// Processor time of a call after which it yields to others.
pub const CALL_YIELDS_AFTER: Duration = Duration::from_millis(500);
/// Processor time of a load after which it yields to others. Imports of a bundle take seconds, once for many calls.
pub const LOAD_YIELDS_AFTER: Duration = Duration::from_secs(5);

/// Limits of one exchange with a worker, and the process that they hold for.
#[derive(Clone, Debug)]
pub struct CallWatch {
    pub process: u32,
    pub limits: JailLimits,
    pub until: Instant,
    /// Time that `until` stands for, for the error.
    pub time_max: Duration,
    /// Processor time after which the process yields to others, until its end.
    pub yields_after: Duration,
    /// Cgroup of the process, where the kernel holds limits.
    pub cgroup: Option<Arc<SandboxCgroup>>,
}

impl CallWatch {
    /// Waits until a limit is passed, and returns the error that names it.
    pub async fn broken(self) -> CodeError {
        let until = self.until;
        let seconds = self.time_max.as_secs_f64();
        tokio::select! {
            error = self.overused() => error,
            () = sleep_until(until) => {
                CodeError::ended("TimeoutError", format!("the function ran for more than {seconds} seconds"))
            }
        }
    }

    async fn overused(self) -> CodeError {
        let mut ticks = interval_at(Instant::now() + MEASURE_EVERY, MEASURE_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut processor_at_start = None;
        loop {
            ticks.tick().await;
            let watch = self.clone();
            // Reading may wait for the kernel.
            let looked = tokio::task::spawn_blocking(move || {
                let usage = measure(watch.process, watch.limits.processes);
                let start = *processor_at_start.get_or_insert(usage.processor);
                let processor = usage.processor.saturating_sub(start);
                if processor > watch.yields_after {
                    watch.yield_processors();
                }
                (watch.complaint(usage, processor), start)
            });
            match looked.await {
                Ok((Some(complaint), _)) => return CodeError::ended("LimitError", complaint),
                Ok((None, start)) => processor_at_start = Some(start),
                Err(why) => return CodeError::Node(format!("a function could not be measured: {why}")),
            }
        }
    }

    fn yield_processors(&self) {
        yield_processors(self.process);
        // Niceness counts within a cgroup only.
        if let Some(cgroup) = &self.cgroup {
            cgroup.yield_processors();
        }
    }

    /// Returns the sentence on the first limit that is passed.
    fn complaint(&self, usage: SandboxUsage, processor: Duration) -> Option<String> {
        let limits = &self.limits;
        if let Some(exceeded) = self.cgroup.as_ref().and_then(|cgroup| cgroup.exceeded()) {
            return Some(sentence(exceeded, limits));
        }
        // First of all: looking at each of many processes takes long, and they become more meanwhile.
        if usage.threads > limits.processes {
            return Some(sentence(ExceededLimit::Processes, limits));
        }
        // Pages that several processes share count once, which the kernel tells only with some effort.
        let is_large = usage.memory_bytes > limits.memory_bytes;
        if is_large && measure_shared_memory(self.process) > limits.memory_bytes {
            return Some(sentence(ExceededLimit::Memory, limits));
        }
        if processor > self.time_max {
            let seconds = self.time_max.as_secs_f64();
            return Some(format!("the function used more than {seconds} seconds of processor time"));
        }
        let may_pass = usage.processes.saturating_mul(limits.open_files) > limits.all_open_files;
        if may_pass && count_open_files(self.process) > limits.all_open_files {
            let max = limits.all_open_files;
            return Some(format!("the function opened more than {max} files and sockets in all its processes"));
        }
        if count_temporary_files(self.process, limits.temp_bytes) > limits.temp_files {
            return Some(format!("the function made more than {} temporary files", limits.temp_files));
        }
        None
    }
}

/// Returns the sentence on a limit, whether the kernel or a measurement found that it is passed.
pub fn sentence(exceeded: ExceededLimit, limits: &JailLimits) -> String {
    match exceeded {
        ExceededLimit::Memory => format!("the function used more than {} MiB of memory", limits.memory_bytes >> 20),
        ExceededLimit::Processes => {
            format!("the function started more than {} processes and threads", limits.processes)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(time_max: Duration) -> CallWatch {
        let until = Instant::now() + time_max;
        let yields_after = CALL_YIELDS_AFTER;
        let limits = JailLimits::default();
        CallWatch { process: u32::MAX, limits, until, time_max, yields_after, cgroup: None }
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_uses_nothing_ends_with_its_time() {
        let error = watch(Duration::from_millis(1500)).broken().await;
        assert_eq!(error.to_string(), "the function ran for more than 1.5 seconds");
    }

    #[test]
    fn each_limit_is_named() {
        let watch = watch(Duration::from_secs(2));
        let none = Duration::ZERO;
        let usage = |threads| SandboxUsage { threads, processes: 1, ..SandboxUsage::default() };
        assert_eq!(watch.complaint(usage(128), none), None);
        let complaint = watch.complaint(usage(129), none).expect("too many");
        assert_eq!(complaint, "the function started more than 128 processes and threads");
        let memory = sentence(ExceededLimit::Memory, &watch.limits);
        assert_eq!(memory, "the function used more than 512 MiB of memory");
        let complaint = watch.complaint(usage(1), Duration::from_secs(3)).expect("too long");
        assert_eq!(complaint, "the function used more than 2 seconds of processor time");
    }
}
