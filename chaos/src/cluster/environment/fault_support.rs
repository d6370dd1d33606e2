//! Support of this machine for faults. Missing support is reported, with the faults that are left out.

use std::path::PathBuf;

use crate::capabilities;

/// Paths at which the package installs the library for faked clocks.
const FAKE_TIME: [&str; 3] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/faketime/libfaketimeMT.so.1",
];

/// Requirement of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A network namespace for every node.
    Network,
    /// Rules that drop packets.
    Rules,
    /// A disk for every node.
    Disk,
    /// A clock for every node.
    Clock,
    /// A tracer of system calls.
    Trace,
}

#[derive(Clone, Debug, Default)]
pub struct FaultSupport {
    /// Missing part of each requirement, if any.
    pub network: Option<String>,
    pub rules: Option<String>,
    pub disk: Option<String>,
    pub clock: Option<String>,
    pub trace: Option<String>,
    pub fake_time: Option<PathBuf>,
}

impl FaultSupport {
    pub fn probe() -> FaultSupport {
        let missing = |root: bool, programs: &[&str]| {
            let missing = capabilities::missing(root, programs);
            (!missing.is_empty()).then(|| missing.join(", "))
        };
        let fake_time = FAKE_TIME.iter().map(PathBuf::from).find(|path| path.is_file());
        let network = missing(true, &["ip", "tc", "nsenter"]);
        FaultSupport {
            rules: network.clone().or_else(|| missing(true, &["iptables"])),
            network,
            disk: missing(true, &["mkfs.ext4", "mount", "umount", "losetup", "xfs_io"]),
            trace: missing(true, &["strace"]),
            clock: fake_time.is_none().then(|| "the library libfaketimeMT".to_owned()),
            fake_time,
        }
    }

    /// Returns the missing part of the requirement.
    pub fn lacks(&self, need: Need) -> Option<&str> {
        match need {
            Need::Network => self.network.as_deref(),
            Need::Rules => self.rules.as_deref(),
            Need::Disk => self.disk.as_deref(),
            Need::Clock => self.clock.as_deref(),
            Need::Trace => self.trace.as_deref(),
        }
    }
}
