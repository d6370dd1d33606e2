//! Measurements of a process from the kernel: memory, bytes written, CPU time by the kind of work of its threads. Also
//! runs a part of a command as a process of its own, so that such figures are of that part alone.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, bail};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Ticks of a second in /proc; fixed on Linux for the machines we run on.
pub const TICKS_PER_SECOND: f64 = 100.0;

/// A process as /proc names it.
#[derive(Clone, Debug)]
pub struct Process(String);

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    pub resident_bytes: u64,
    /// The most there ever was.
    pub peak_bytes: u64,
}

/// CPU seconds by kind of work. Threads that ended are under "ended": in the bench, mostly its clients.
pub type CpuSeconds = BTreeMap<String, f64>;

impl Process {
    pub fn myself() -> Process {
        Process("self".into())
    }

    pub fn of(child: &Child) -> Process {
        Process(child.id().to_string())
    }

    fn read(&self, file: &str) -> anyhow::Result<String> {
        let path = format!("/proc/{}/{file}", self.0);
        std::fs::read_to_string(&path).with_context(|| format!("reading {path}"))
    }

    pub fn memory(&self) -> anyhow::Result<Memory> {
        let status = self.read("status")?;
        Ok(Memory { resident_bytes: kib(&status, "VmRSS:")?, peak_bytes: kib(&status, "VmHWM:")? })
    }

    /// Bytes this process caused to be written to storage (and not only to the page cache's owner).
    pub fn write_bytes(&self) -> anyhow::Result<u64> {
        number(&self.read("io")?, "write_bytes:")
    }

    pub fn cpu(&self) -> anyhow::Result<CpuSeconds> {
        let mut groups = CpuSeconds::new();
        let tasks = format!("/proc/{}/task", self.0);
        for task in std::fs::read_dir(&tasks).with_context(|| format!("listing {tasks}"))? {
            // A thread may end while we look; its time is then under "ended".
            if let Ok(stat) = std::fs::read_to_string(task?.path().join("stat"))
                && let Some((name, seconds)) = cpu_of_stat(&stat)
            {
                *groups.entry(group_of(name)).or_default() += seconds;
            }
        }
        let whole = self.read("stat")?;
        let (_, whole) = cpu_of_stat(&whole).context("/proc/self/stat in an unknown form")?;
        let living: f64 = groups.values().sum();
        groups.insert("ended".into(), (whole - living).max(0.0));
        Ok(groups)
    }
}

/// Returns the usage from `before` to `after`.
pub fn cpu_between(before: &CpuSeconds, after: &CpuSeconds) -> CpuSeconds {
    let used = |(name, seconds): (&String, &f64)| (name.clone(), seconds - before.get(name).unwrap_or(&0.0));
    after.iter().map(used).filter(|(_, seconds)| *seconds > 0.0).collect()
}

fn kib(text: &str, label: &str) -> anyhow::Result<u64> {
    Ok(number(text, label)? * 1024)
}

fn number(text: &str, label: &str) -> anyhow::Result<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(label));
    let line = line.with_context(|| format!("/proc has no {label}"))?;
    let digits = line.split_ascii_whitespace().next().unwrap_or_default();
    digits.parse().with_context(|| format!("/proc says {label} {line}"))
}

/// Name and CPU seconds of a `stat` line: `pid (name) state ...`, user and system ticks being fields 14 and 15.
fn cpu_of_stat(stat: &str) -> Option<(&str, f64)> {
    let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace().skip(11);
    let (user, system): (f64, f64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some((name, (user + system) / TICKS_PER_SECOND))
}

/// Returns the kind of work of a thread, from its name.
fn group_of(name: &str) -> String {
    const GROUPS: [(&str, &str); 11] = [
        ("bench-client", "client"),
        ("bench", "harness"),
        ("assay-bench", "harness"),
        ("compact", "compaction"),
        ("seal", "seal"),
        ("upkeep", "seal"),
        ("apply", "apply"),
        ("sled", "seal"),
        ("raft", "consensus"),
        ("consensus", "consensus"),
        ("log", "log"),
    ];
    let found = GROUPS.iter().find(|(part, _)| name.contains(part)).map(|(_, group)| (*group).to_owned());
    found.unwrap_or_else(|| name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '-').to_owned())
}

/// A part of a command that runs as a process of its own and reports its results as lines of JSON on stdout. It is
/// killed on drop.
#[derive(Debug)]
pub struct ProcessPart {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl ProcessPart {
    /// Runs this program again with `name` and the part's task.
    pub fn start(name: &str, task: &impl Serialize) -> anyhow::Result<ProcessPart> {
        let program = std::env::current_exe().context("finding this program's own file")?;
        let mut child = Command::new(program)
            .arg(name)
            .arg(serde_json::to_string(task)?)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting the part {name}"))?;
        let stdout = child.stdout.take().context("the part's output")?;
        Ok(ProcessPart { child, lines: BufReader::new(stdout).lines() })
    }

    pub fn process(&self) -> Process {
        Process::of(&self.child)
    }

    /// Returns its next message; none when it has ended successfully.
    pub fn next<T: DeserializeOwned>(&mut self) -> anyhow::Result<Option<T>> {
        if let Some(line) = self.lines.next() {
            let line = line?;
            return serde_json::from_str(&line).map(Some).with_context(|| format!("the part said {line}"));
        }
        let status = self.child.wait()?;
        if status.success() { Ok(None) } else { bail!("the part ended with {status}") }
    }

    /// Returns its only message.
    pub fn only<T: DeserializeOwned>(mut self) -> anyhow::Result<T> {
        let said = self.next()?.context("the part ended without a word")?;
        match self.next::<serde_json::Value>()? {
            None => Ok(said),
            Some(more) => bail!("the part went on to say {more}"),
        }
    }

    /// `kill -9`, and waits until it is gone.
    pub fn kill(mut self) -> anyhow::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for ProcessPart {
    fn drop(&mut self) {
        // Both fail when it has ended already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a message to the command that started this part.
pub fn say(what: &impl Serialize) -> anyhow::Result<()> {
    println!("{}", serde_json::to_string(what)?);
    Ok(())
}

/// Bytes of all files below `dir`.
pub fn bytes_below(dir: &Path) -> anyhow::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(dir).with_context(|| format!("listing {}", dir.display()))? {
        let entry = entry?;
        // Files come and go while a store is open.
        let Ok(about) = entry.metadata() else { continue };
        bytes += if about.is_dir() { bytes_below(&entry.path()).unwrap_or(0) } else { about.len() };
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_gives_the_name_and_the_time() {
        let line = "12 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 1 0 1 1 1";
        assert_eq!(cpu_of_stat(line), Some(("a) b (c", 2.0)));
        assert_eq!(cpu_of_stat("nothing"), None);
    }

    #[test]
    fn this_process_has_memory_time_and_writes() {
        let me = Process::myself();
        assert!(me.memory().expect("status").peak_bytes > 0);
        assert!(me.cpu().expect("stat").contains_key("ended"));
        me.write_bytes().expect("io");
    }

    #[test]
    fn threads_are_grouped_by_what_they_do() {
        for (name, group) in
            [("assay-log", "log"), ("assay-apply-03", "apply"), ("bench-client-2", "client"), ("tokio-9", "tokio")]
        {
            assert_eq!(group_of(name), group);
        }
    }
}
