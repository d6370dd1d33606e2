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
//! | [`usage`] | memory, processor time and number of processes of a sandbox |
//! | [`probe`] | which strength this machine offers, found by a trial |
//!
//! The crate knows no language and no protocol. Decisions: node/decisions/0053.

pub mod jail;
mod landlock_rules;
pub mod probe;
pub mod spawner;
pub mod stage;
pub mod strength;
mod syscalls;
pub mod usage;

pub use jail::{JailBind, JailLimits, JailPlan};
pub use probe::{SandboxReport, probe};
pub use spawner::{SandboxedProcess, Spawner};
pub use stage::{CHANNEL_VARIABLE, STAGE_COMMAND, run_stage};
pub use strength::{CodeSetting, SandboxStrength};
