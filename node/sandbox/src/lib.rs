//! Sandbox for processes that run code of users: namespaces, landlock, seccomp, resource limits.
//!
//! ```text
//! server ── Spawner ──▶ bwrap (namespaces, private root) ──▶ stage (uid, limits, landlock, seccomp) ──▶ interpreter
//!    │                                                                                                  │
//!    └────────────── channel: one stream socket, file descriptor 3; console: two pipes ─────────────────┘
//! ```
//! | module | contents |
//! |---|---|
//! | [`strength`] | strengths of a sandbox, and the setting that chooses one |
//! | [`jail`] | what a process sees: files, limits, command; the arguments of bubblewrap |
//! | [`stage`] | the inner stage, which restricts itself and becomes the interpreter |
//! | [`syscalls`] | system calls that the filter allows |
//! | [`landlock_rules`] | rules of landlock |
//! | [`spawner`] | starts processes from one thread, which outlives them |
//! | [`process`] | handles of a running process: its pauses between calls, and its end |
//! | [`usage`] | memory, processor time, processes and files of a sandbox |
//! | [`cgroups`] | limits of whole sandboxes that the kernel holds |
//! | [`priority`] | priority of sandboxes that have computed for long |
//! | [`removal`] | removes directories in which functions have written |
//! | [`reach`] | paths that another user reaches |
//! | [`probe`] | which strength this machine offers, found by a trial |
//!
//! The crate knows no language and no protocol. Decisions: node/decisions/0053 and 0062.

pub mod cgroups;
pub mod jail;
mod landlock_rules;
pub mod priority;
pub mod probe;
pub mod process;
pub mod reach;
pub mod removal;
pub mod spawner;
pub mod stage;
pub mod strength;
mod syscalls;
pub mod usage;

pub use cgroups::SandboxCgroups;
pub use cgroups::decision::CgroupOffer;
pub use cgroups::sandbox::{ExceededLimit, SandboxCgroup};
pub use jail::{JailBind, JailLimits, JailPlan};
pub use probe::{SandboxReport, probe};
pub use process::{SandboxedProcess, SettledProcesses};
pub use removal::{Remover, SandboxDirectory};
pub use spawner::Spawner;
pub use stage::{CHANNEL_VARIABLE, OWN_PROGRAM, STAGE_COMMAND, run_stage};
pub use strength::{CodeSetting, SandboxStrength};
