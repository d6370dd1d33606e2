//! Priority of sandboxes that have computed for long: they yield to those that only just started, and to the server.
//!
//! The kernel may share processors between sessions instead of processes. Then the niceness of a process counts within
//! its session only, and each session has one of its own.

use std::fs;

use rustix::process::{Pid, setpriority_process};

use crate::usage::{family, session_of, threads_of};

/// Niceness of what has computed for long.
const YIELDING: i32 = 19;

/// Makes the processes and sessions of a sandbox yield. Those that are left out had ended, or the kernel refused.
///
/// Call it again as long as the sandbox computes: a process may have started a session of its own meanwhile.
pub fn yield_processors(root: u32) {
    // Programs around a sandbox are in the session of the server. Its id is 0 if the leader of the session is outside of
    // the container of the server.
    let own_session = session_of(std::process::id());
    let within = family(root).into_iter().filter(|process| session_of(*process) != own_session);
    for process in within {
        for thread in threads_of(process).into_iter().filter_map(|id| Pid::from_raw(i32::try_from(id).ok()?)) {
            let _ = setpriority_process(Some(thread), YIELDING);
        }
        let group = format!("/proc/{process}/autogroup");
        let is_set = |text: String| text.trim_end().ends_with(&format!("nice {YIELDING}"));
        // Without privileges, the kernel accepts few changes in a second.
        if fs::read_to_string(&group).is_ok_and(|text| !is_set(text)) {
            let _ = fs::write(&group, YIELDING.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    use super::*;

    /// Returns the niceness of a process.
    fn niceness(process: u32) -> i32 {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).expect("a process");
        let mut fields = stat[stat.rfind(')').expect("a name")..].split_ascii_whitespace();
        fields.nth(17).and_then(|field| field.parse().ok()).expect("a number")
    }

    #[test]
    fn a_session_of_its_own_yields_and_that_of_the_caller_does_not() {
        let mut command = Command::new("sh");
        let script = "setsid sh -c 'echo $$; read end' & read end";
        command.args(["-c", &format!("exec 3<&0; {}", script.replace("& read", "<&3 & read"))]);
        let mut outer = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a shell");
        let mut line = String::new();
        BufReader::new(outer.stdout.take().expect("output")).read_line(&mut line).expect("a line");
        let inner: u32 = line.trim().parse().expect("an id");
        let before = niceness(outer.id());
        yield_processors(outer.id());
        let after = (niceness(outer.id()), niceness(inner));
        drop(outer.stdin.take());
        outer.wait().expect("a shell");
        assert_eq!(after, (before, YIELDING));
    }
}
