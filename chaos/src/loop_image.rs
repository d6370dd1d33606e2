//! A small private ext4 in a file, mounted through a loop device; unmounted reliably on drop.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use tempfile::TempDir;

use crate::child_process::tool;

const UNMOUNT_TRIES: u32 = 50;
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
    pub fn unmount(&mut self) -> anyhow::Result<()> {
        let mut tries = 0;
        while let Err(why) = tool("umount", &[&self.mount.to_string_lossy()]) {
            tries += 1;
            if tries == UNMOUNT_TRIES {
                return Err(why);
            }
            std::thread::sleep(UNMOUNT_PAUSE);
        }
        self.mounted = false;
        Ok(())
    }
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
