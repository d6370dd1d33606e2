//! System calls that sandboxed processes may make; all others fail with `EPERM`.
//!
//! The lists have what interpreters, their libraries and their child processes use. They follow the profiles of container
//! engines without everything that creates namespaces, mounts, traces other processes, or configures the kernel. Shared
//! memory and queues of System V are left out too: they outlive their processes, and no measurement finds them.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

/// Bits of `clone` that create namespaces.
const NAMESPACE_FLAGS: u64 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u64;
/// Bits of `clone` that name the signal which the parent gets at the end of the child.
const END_SIGNAL: u64 = 0xff;
/// Requests of `ioctl` that push input into a terminal.
const TERMINAL_INPUT: [u64; 2] = [0x5412, 0x541C];
/// Options of `prctl` that cannot weaken the sandbox: names, memory names, privileges, timer slack.
///
/// A process that made itself no longer dumpable would hide its open files and its memory from the server.
const PROCESS_OPTIONS: [u64; 11] = [2, 3, 15, 16, 21, 27, 29, 30, 38, 39, 0x5356_4D41];
/// Argument of `personality` that only asks.
const PERSONALITY_QUERY: u64 = 0xffff_ffff;

/// Commands of `fcntl` that reach beyond the caller: leases and notices of files that others open, and signals to others.
const SHARED_FILE_COMMANDS: [u64; 5] = [
    libc::F_SETOWN as u64,
    // F_SETSIG and F_SETOWN_EX, which the library does not name.
    10,
    15,
    libc::F_SETLEASE as u64,
    libc::F_NOTIFY as u64,
];
/// Requests of `ioctl` that choose who gets the signals of a file, as `F_SETOWN` does.
const FILE_OWNER_REQUESTS: [u64; 2] = [0x8901, 0x8902];
/// Bits of the type of a socket that name the type itself.
const SOCKET_TYPE_BITS: u64 = 0xf;

/// What separates the process from others, apart from the filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterScope {
    /// Whether files, sockets and the process table that the process sees are its own.
    ///
    /// Elsewhere the process creates no sockets but connected pairs, and uses those that it inherits.
    pub has_private_root: bool,
    /// Whether no process outside of the sandbox has the same user.
    pub has_own_user: bool,
}

impl FilterScope {
    /// Returns whether rights of the user reach only what belongs to the sandbox.
    fn owns_what_it_reaches(self) -> bool {
        self.has_private_root || self.has_own_user
    }
}

/// Error of a filter.
#[derive(Debug, thiserror::Error)]
pub enum SyscallFilterError {
    #[error("the processor architecture {0} has no filter")]
    Architecture(&'static str),
    #[error(transparent)]
    Backend(#[from] seccompiler::BackendError),
    #[error(transparent)]
    Install(#[from] seccompiler::Error),
}

/// Installs the filters for this thread and all that it starts.
pub fn install(scope: FilterScope) -> Result<(), SyscallFilterError> {
    // The last filter that is installed is asked too: the strictest answer counts. `ENOSYS` makes libraries fall back to
    // calls whose arguments a filter can see, so the filter with that answer comes first.
    for filter in [missing_calls()?, allowed_calls(scope)?] {
        seccompiler::apply_filter(&filter)?;
    }
    Ok(())
}

fn architecture() -> Result<TargetArch, SyscallFilterError> {
    std::env::consts::ARCH.try_into().map_err(|_| SyscallFilterError::Architecture(std::env::consts::ARCH))
}

/// Returns the filter of calls whose arguments lie in memory, where no filter can see them.
fn missing_calls() -> Result<BpfProgram, SyscallFilterError> {
    let rules = [libc::SYS_clone3].into_iter().map(|call| (call, Vec::new())).collect();
    let missing = SeccompAction::Errno(libc::ENOSYS as u32);
    Ok(SeccompFilter::new(rules, SeccompAction::Allow, missing, architecture()?)?.try_into()?)
}

fn allowed_calls(scope: FilterScope) -> Result<BpfProgram, SyscallFilterError> {
    let mut rules = BTreeMap::new();
    allow(&mut rules, ALWAYS);
    allow(&mut rules, OF_ARCHITECTURE);
    // Answered by the other filter; `EPERM` would win over `ENOSYS`.
    allow(&mut rules, &[libc::SYS_clone3]);
    // A parent that asks for another signal than the usual one could be continued by it while the server has stopped it.
    // For the same reason there are no timers that send any signal.
    let flags = |signal| {
        Ok::<_, SyscallFilterError>(vec![condition(0, SeccompCmpOp::MaskedEq(NAMESPACE_FLAGS | END_SIGNAL), signal)?])
    };
    let signals = [0, libc::SIGCHLD as u64].into_iter().map(|signal| Ok(SeccompRule::new(flags(signal)?)?));
    rules.insert(libc::SYS_clone, signals.collect::<Result<_, SyscallFilterError>>()?);
    let requests: Vec<u64> = TERMINAL_INPUT.into_iter().chain(FILE_OWNER_REQUESTS).collect();
    rules.insert(libc::SYS_ioctl, none_of(1, &requests)?);
    rules.insert(libc::SYS_fcntl, none_of(1, &SHARED_FILE_COMMANDS)?);
    rules.insert(libc::SYS_prctl, any_of(0, &PROCESS_OPTIONS)?);
    rules.insert(libc::SYS_personality, any_of(0, &[0, PERSONALITY_QUERY])?);
    allow_sockets(&mut rules, scope)?;
    if scope.has_private_root {
        allow(&mut rules, WITHIN_PROCESS_TABLE);
    } else {
        // Without a process table of its own, a process may signal only itself and its group. It cannot leave its
        // group, by which the server ends all.
        let own = u64::from(std::process::id());
        rules.insert(libc::SYS_kill, any_of(0, &[own, 0])?);
        rules.insert(libc::SYS_tgkill, any_of(0, &[own])?);
    }
    if scope.owns_what_it_reaches() {
        allow(&mut rules, ON_OWN_FILES);
        allow(&mut rules, ON_OWN_FILES_OF_ARCHITECTURE);
        allow(&mut rules, ON_OWN_PROCESSES);
        allow(&mut rules, &[libc::SYS_setpriority]);
    } else {
        // The caller itself, which is zero: others of the same user are the server and the functions of other tenants.
        for call in ON_OWN_PROCESSES {
            rules.insert(*call, any_of(0, &[0])?);
        }
        let (this, process) = (condition(1, SeccompCmpOp::Eq, 0)?, u64::from(libc::PRIO_PROCESS));
        rules.insert(libc::SYS_setpriority, one(vec![condition(0, SeccompCmpOp::Eq, process)?, this])?);
    }
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    Ok(SeccompFilter::new(rules, refused, SeccompAction::Allow, architecture()?)?.try_into()?)
}

type CallRules = BTreeMap<c_long, Vec<SeccompRule>>;

/// Allows calls with any arguments.
fn allow(rules: &mut CallRules, calls: &[c_long]) {
    rules.extend(calls.iter().map(|call| (*call, Vec::new())));
}

/// Allows Unix sockets in a private root, where only the server's tunnel can be reached.
///
/// Elsewhere there are connected pairs of streams. A pair of datagram sockets could send to any socket of the machine.
fn allow_sockets(rules: &mut CallRules, scope: FilterScope) -> Result<(), SyscallFilterError> {
    let unix = libc::AF_UNIX as u64;
    if scope.has_private_root {
        rules.insert(libc::SYS_socketpair, any_of(0, &[unix])?);
        rules.insert(libc::SYS_socket, any_of(0, &[unix])?);
        allow(rules, WITH_NAMED_SOCKETS);
    } else {
        let stream = condition(1, SeccompCmpOp::MaskedEq(SOCKET_TYPE_BITS), libc::SOCK_STREAM as u64)?;
        rules.insert(libc::SYS_socketpair, one(vec![condition(0, SeccompCmpOp::Eq, unix)?, stream])?);
    }
    Ok(())
}

fn condition(argument: u8, compare: SeccompCmpOp, value: u64) -> Result<SeccompCondition, SyscallFilterError> {
    Ok(SeccompCondition::new(argument, SeccompCmpArgLen::Dword, compare, value)?)
}

fn one(conditions: Vec<SeccompCondition>) -> Result<Vec<SeccompRule>, SyscallFilterError> {
    Ok(vec![SeccompRule::new(conditions)?])
}

/// Returns rules that allow a call if an argument has one of the values.
fn any_of(argument: u8, values: &[u64]) -> Result<Vec<SeccompRule>, SyscallFilterError> {
    let rule = |value: &u64| Ok(SeccompRule::new(vec![condition(argument, SeccompCmpOp::Eq, *value)?])?);
    values.iter().map(rule).collect()
}

/// Returns rules that allow a call if an argument has none of the values.
fn none_of(argument: u8, values: &[u64]) -> Result<Vec<SeccompRule>, SyscallFilterError> {
    one(values.iter().map(|value| condition(argument, SeccompCmpOp::Ne, *value)).collect::<Result<_, _>>()?)
}

/// Calls that reach processes by the process table.
const WITHIN_PROCESS_TABLE: &[c_long] =
    &[libc::SYS_kill, libc::SYS_pidfd_open, libc::SYS_setpgid, libc::SYS_setsid, libc::SYS_tgkill, libc::SYS_tkill];

/// Calls that give sockets a name, or connect them by one.
const WITH_NAMED_SOCKETS: &[c_long] =
    &[libc::SYS_accept, libc::SYS_accept4, libc::SYS_bind, libc::SYS_connect, libc::SYS_listen];

/// Calls that change a file whose owner the caller is, also if landlock lets nobody write to it.
const ON_OWN_FILES: &[c_long] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_fsetxattr,
    libc::SYS_lsetxattr,
    libc::SYS_removexattr,
    libc::SYS_setxattr,
    libc::SYS_utimensat,
];

/// Calls whose first argument is a process, which they change if it has the same user.
const ON_OWN_PROCESSES: &[c_long] = &[
    libc::SYS_prlimit64,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
];

/// Calls that every architecture has.
const ALWAYS: &[c_long] = &[
    libc::SYS_brk,
    libc::SYS_capget,
    libc::SYS_chdir,
    libc::SYS_clock_getres,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_copy_file_range,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_eventfd2,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_fadvise64,
    libc::SYS_fallocate,
    libc::SYS_fchdir,
    libc::SYS_fdatasync,
    libc::SYS_fgetxattr,
    libc::SYS_flistxattr,
    libc::SYS_flock,
    libc::SYS_fstat,
    libc::SYS_fstatfs,
    libc::SYS_fsync,
    libc::SYS_ftruncate,
    libc::SYS_futex,
    libc::SYS_get_robust_list,
    libc::SYS_getcpu,
    libc::SYS_getcwd,
    libc::SYS_getdents64,
    libc::SYS_getegid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getgroups,
    libc::SYS_getitimer,
    libc::SYS_getpeername,
    libc::SYS_getpgid,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_getpriority,
    libc::SYS_getrandom,
    libc::SYS_getresgid,
    libc::SYS_getresuid,
    libc::SYS_getrlimit,
    libc::SYS_getrusage,
    libc::SYS_getsid,
    libc::SYS_getsockname,
    libc::SYS_getsockopt,
    libc::SYS_gettid,
    libc::SYS_gettimeofday,
    libc::SYS_getuid,
    libc::SYS_getxattr,
    libc::SYS_inotify_add_watch,
    libc::SYS_inotify_init1,
    libc::SYS_inotify_rm_watch,
    libc::SYS_landlock_add_rule,
    libc::SYS_landlock_create_ruleset,
    libc::SYS_landlock_restrict_self,
    libc::SYS_lgetxattr,
    libc::SYS_linkat,
    libc::SYS_listxattr,
    libc::SYS_llistxattr,
    libc::SYS_lseek,
    libc::SYS_madvise,
    libc::SYS_membarrier,
    libc::SYS_mincore,
    libc::SYS_mkdirat,
    libc::SYS_mlock,
    libc::SYS_mlock2,
    libc::SYS_mlockall,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_msync,
    libc::SYS_munlock,
    libc::SYS_munlockall,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    libc::SYS_newfstatat,
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_pipe2,
    libc::SYS_ppoll,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_preadv2,
    libc::SYS_pselect6,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_pwritev2,
    libc::SYS_read,
    libc::SYS_readahead,
    libc::SYS_readlinkat,
    libc::SYS_readv,
    libc::SYS_recvfrom,
    libc::SYS_recvmmsg,
    libc::SYS_recvmsg,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigpending,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigsuspend,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_sched_get_priority_max,
    libc::SYS_sched_get_priority_min,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_getattr,
    libc::SYS_sched_getparam,
    libc::SYS_sched_getscheduler,
    libc::SYS_sched_rr_get_interval,
    libc::SYS_sched_yield,
    libc::SYS_seccomp,
    libc::SYS_sendfile,
    libc::SYS_sendmmsg,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_set_robust_list,
    libc::SYS_set_tid_address,
    libc::SYS_setitimer,
    libc::SYS_setsockopt,
    libc::SYS_shutdown,
    libc::SYS_sigaltstack,
    libc::SYS_signalfd4,
    libc::SYS_splice,
    libc::SYS_statfs,
    libc::SYS_statx,
    libc::SYS_symlinkat,
    libc::SYS_sync_file_range,
    libc::SYS_sysinfo,
    libc::SYS_tee,
    libc::SYS_timer_delete,
    libc::SYS_timer_getoverrun,
    libc::SYS_timer_gettime,
    libc::SYS_timer_settime,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_gettime,
    libc::SYS_timerfd_settime,
    libc::SYS_times,
    libc::SYS_truncate,
    libc::SYS_umask,
    libc::SYS_uname,
    libc::SYS_unlinkat,
    libc::SYS_vmsplice,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_write,
    libc::SYS_writev,
];

/// Older calls that programs for this architecture still make.
#[cfg(target_arch = "x86_64")]
const OF_ARCHITECTURE: &[c_long] = &[
    libc::SYS_access,
    libc::SYS_arch_prctl,
    libc::SYS_creat,
    libc::SYS_dup2,
    libc::SYS_epoll_create,
    libc::SYS_epoll_wait,
    libc::SYS_eventfd,
    libc::SYS_fork,
    libc::SYS_getdents,
    libc::SYS_getpgrp,
    libc::SYS_inotify_init,
    libc::SYS_link,
    libc::SYS_lstat,
    libc::SYS_mkdir,
    libc::SYS_open,
    libc::SYS_pause,
    libc::SYS_pipe,
    libc::SYS_poll,
    libc::SYS_readlink,
    libc::SYS_rename,
    libc::SYS_rmdir,
    libc::SYS_select,
    libc::SYS_signalfd,
    libc::SYS_stat,
    libc::SYS_symlink,
    libc::SYS_time,
    libc::SYS_unlink,
    libc::SYS_vfork,
];

/// Older calls that programs for this architecture still make: it has none.
#[cfg(not(target_arch = "x86_64"))]
const OF_ARCHITECTURE: &[c_long] = &[];

/// Older forms of [`ON_OWN_FILES`] for this architecture.
#[cfg(target_arch = "x86_64")]
const ON_OWN_FILES_OF_ARCHITECTURE: &[c_long] =
    &[libc::SYS_chmod, libc::SYS_chown, libc::SYS_futimesat, libc::SYS_lchown, libc::SYS_utime, libc::SYS_utimes];

/// Older forms of [`ON_OWN_FILES`] for this architecture: it has none.
#[cfg(not(target_arch = "x86_64"))]
const ON_OWN_FILES_OF_ARCHITECTURE: &[c_long] = &[];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_filters_compile() {
        for (has_private_root, has_own_user) in [(true, true), (true, false), (false, true), (false, false)] {
            let filter = allowed_calls(FilterScope { has_private_root, has_own_user }).expect("a filter");
            assert!(filter.len() > ALWAYS.len(), "{}", filter.len());
        }
        assert!(missing_calls().expect("a filter").len() > 3);
    }

    #[test]
    fn calls_that_open_the_sandbox_are_in_no_list() {
        let dangerous = [
            libc::SYS_ptrace,
            libc::SYS_mount,
            libc::SYS_umount2,
            libc::SYS_pivot_root,
            libc::SYS_chroot,
            libc::SYS_unshare,
            libc::SYS_setns,
            libc::SYS_bpf,
            libc::SYS_keyctl,
            libc::SYS_add_key,
            libc::SYS_request_key,
            libc::SYS_perf_event_open,
            libc::SYS_io_uring_setup,
            libc::SYS_io_uring_enter,
            libc::SYS_io_uring_register,
            libc::SYS_userfaultfd,
            libc::SYS_kexec_load,
            libc::SYS_init_module,
            libc::SYS_finit_module,
            libc::SYS_delete_module,
            libc::SYS_process_vm_readv,
            libc::SYS_process_vm_writev,
            libc::SYS_pidfd_getfd,
            libc::SYS_kcmp,
            libc::SYS_open_by_handle_at,
            libc::SYS_name_to_handle_at,
            libc::SYS_fanotify_init,
            libc::SYS_syslog,
            libc::SYS_reboot,
            libc::SYS_swapon,
            libc::SYS_acct,
            libc::SYS_settimeofday,
            libc::SYS_clock_settime,
            libc::SYS_socket,
            libc::SYS_open_tree,
            libc::SYS_move_mount,
            libc::SYS_fsopen,
            libc::SYS_pidfd_send_signal,
            // Memory that belongs to no process, which no measurement would find.
            libc::SYS_memfd_create,
            libc::SYS_memfd_secret,
            libc::SYS_shmget,
            libc::SYS_msgget,
            libc::SYS_semget,
            // Acts on files and processes by their user.
            libc::SYS_connect,
            libc::SYS_fchmod,
            libc::SYS_prlimit64,
            libc::SYS_setpriority,
            // Sends any signal to the caller itself, also while it is stopped.
            libc::SYS_timer_create,
        ];
        for call in dangerous {
            assert!(!ALWAYS.contains(&call) && !OF_ARCHITECTURE.contains(&call), "{call}");
        }
    }
}
