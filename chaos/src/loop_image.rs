//! A small private ext4 in a file, mounted through a loop device; unmounted reliably on drop.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use tempfile::TempDir;

use crate::child_process::tool;

const UNMOUNT_TRIES: u32 = 100;
const UNMOUNT_PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub struct LoopImage {
    mounted: bool,
    image: PathBuf,
    mount: PathBuf,
    // Last, so that it goes after the unmount.
    _work: TempDir,
}

impl LoopImage {
    /// Makes and mounts an empty file system of this size.
    pub fn create(bytes: u64) -> anyhow::Result<LoopImage> {
        let work =
            tempfile::Builder::new().prefix("assay-chaos-disk-").tempdir().context("making a temporary directory")?;
        let image = work.path().join("image");
        let mount = work.path().join("mount");
        File::create(&image)?.set_len(bytes).context("making the image")?;
        std::fs::create_dir(&mount)?;
        tool("mkfs.ext4", &["-q", "-F", "-m", "0", &image.to_string_lossy()])?;
        let mut made = LoopImage { mounted: false, image, mount, _work: work };
        made.mount()?;
        Ok(made)
    }

    pub fn path(&self) -> &Path {
        &self.mount
    }

    /// The kernel's loop device goes with the mount.
    pub fn mount(&mut self) -> anyhow::Result<()> {
        tool("mount", &["-o", "loop", &self.image.to_string_lossy(), &self.mount.to_string_lossy()])?;
        self.mounted = true;
        Ok(())
    }

    /// Nothing more reaches the file system, its own journal included: as if the power had gone (the ioctl's flag 2).
    pub fn cut_power(&self) -> anyhow::Result<()> {
        tool("xfs_io", &["-x", "-c", "shutdown", &self.mount.to_string_lossy()]).map(drop)
    }

    /// Unmounts it; unsynced data is lost. Processes with open files must be gone.
    ///
    /// Returns only once the loop device is free. A copy of the mount in another mount namespace, such as that of a
    /// sandbox that is starting, keeps the file system alive, and a new mount would be the same one again.
    pub fn unmount(&mut self) -> anyhow::Result<()> {
        retry(|| tool("umount", &[&self.mount.to_string_lossy()]).map(drop))?;
        self.mounted = false;
        retry(|| {
            let devices = tool("losetup", &["--associated", &self.image.to_string_lossy()])?;
            anyhow::ensure!(devices.trim().is_empty(), "another process still uses the unmounted image: {devices}");
            Ok(())
        })
    }
}

/// Repeats a step of unmounting until it succeeds, at most [`UNMOUNT_TRIES`] times.
fn retry(mut step: impl FnMut() -> anyhow::Result<()>) -> anyhow::Result<()> {
    for _ in 1..UNMOUNT_TRIES {
        if step().is_ok() {
            return Ok(());
        }
        std::thread::sleep(UNMOUNT_PAUSE);
    }
    step()
}

impl Drop for LoopImage {
    fn drop(&mut self) {
        if self.mounted && self.unmount().is_err() {
            // Detached from the tree at once; from the device when the last file is closed.
            if let Err(why) = tool("umount", &["--lazy", &self.mount.to_string_lossy()]) {
                eprintln!("{} stays mounted: {why:#}", self.mount.display());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::capabilities;

    /// The namespace copies the mount for a second, as a sandbox does for some milliseconds.
    #[test]
    fn a_copy_of_the_mount_in_another_namespace_does_not_survive_the_unmount() {
        let missing = capabilities::missing(true, &["xfs_io", "mkfs.ext4", "mount", "umount", "losetup", "unshare"]);
        if !missing.is_empty() {
            eprintln!("not covered: {missing:?}");
            return;
        }
        let mut disk = LoopImage::create(16 << 20).unwrap();
        let file = disk.path().join("file");
        std::fs::write(&file, "text").unwrap();
        File::open(&file).unwrap().sync_all().unwrap();
        File::open(disk.path()).unwrap().sync_all().unwrap();
        let mut namespace = Command::new("unshare")
            .args(["--mount", "--propagation", "private", "sh", "-c", "echo; exec sleep 1"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut started = [0];
        std::io::Read::read_exact(namespace.stdout.as_mut().unwrap(), &mut started).unwrap();
        disk.cut_power().unwrap();
        disk.unmount().unwrap();
        disk.mount().unwrap();
        let read = std::fs::read_to_string(&file);
        namespace.wait().unwrap();
        assert_eq!(read.unwrap(), "text");
    }
}
