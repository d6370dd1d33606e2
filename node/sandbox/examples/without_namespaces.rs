//! Program that starts another one without the right to make namespaces, as default profiles of containers do.

use std::collections::BTreeMap;
use std::error::Error;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

/// Calls that a container without `CAP_SYS_ADMIN` cannot make.
const REFUSED: [i64; 8] = [
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
];
/// Flags of `clone` that make namespaces.
const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let Some(program) = words.next() else {
        eprintln!("usage: without_namespaces PROGRAM [ARGUMENT...]");
        return ExitCode::from(2);
    };
    if let Err(why) = refuse() {
        eprintln!("the filter of system calls: {why}");
        return ExitCode::FAILURE;
    }
    let failed = Command::new(&program).args(words).exec();
    eprintln!("{}: {failed}", program.display());
    ExitCode::FAILURE
}

/// Installs the filters for this process and all that it starts.
fn refuse() -> Result<(), Box<dyn Error>> {
    let missing = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    let mut refused: BTreeMap<i64, Vec<SeccompRule>> = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    let with_flag = |flag: &libc::c_int| {
        let flag = u64::from(flag.unsigned_abs());
        let has = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(flag), flag)?;
        SeccompRule::new(vec![has])
    };
    refused.insert(libc::SYS_clone, NAMESPACES.iter().map(with_flag).collect::<Result<_, _>>()?);
    for (rules, answer) in [(missing, libc::ENOSYS), (refused, libc::EPERM)] {
        let answer = SeccompAction::Errno(answer.unsigned_abs());
        let architecture: TargetArch = std::env::consts::ARCH.try_into()?;
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, answer, architecture)?;
        let program: BpfProgram = filter.try_into()?;
        seccompiler::apply_filter(&program)?;
    }
    Ok(())
}
