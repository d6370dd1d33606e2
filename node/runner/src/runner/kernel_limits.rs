//! Limits that the kernel holds for whole workers, where the server has a cgroup of its own.

use assay_node_sandbox::{CgroupOffer, SandboxCgroups, SandboxReport};

/// Parent of the cgroups of workers, and what a report says about it.
#[derive(Debug)]
pub(super) struct KernelLimits {
    pub cgroups: Option<SandboxCgroups>,
    pub report: String,
}

impl KernelLimits {
    /// Takes what the machine offers. A machine that offers nothing is no error: workers are measured then.
    ///
    /// A server that runs no code stays in its cgroup.
    pub fn take(sandbox: &SandboxReport, runs_code: bool) -> KernelLimits {
        let offered = sandbox.cgroups.to_string();
        let CgroupOffer::Available(plan) = &sandbox.cgroups else {
            return KernelLimits { cgroups: None, report: offered };
        };
        if !runs_code {
            return KernelLimits { cgroups: None, report: offered };
        }
        match SandboxCgroups::arrange(plan) {
            Ok(cgroups) => KernelLimits { cgroups: Some(cgroups), report: offered },
            Err(why) => KernelLimits { cgroups: None, report: CgroupOffer::Missing(why.to_string()).to_string() },
        }
    }
}
