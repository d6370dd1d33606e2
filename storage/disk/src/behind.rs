//! Threads whose work can wait: others have the processor, and with it the disk, before them.

/// A third of the share of a usual thread where both want a processor: queries and inserts hardly notice it, and it is
/// never left standing while they come without end.
#[cfg(target_os = "linux")]
const NICER: i32 = 5;

/// This thread stands behind the others from now on. Of other systems than Linux nothing is asked: there a priority is a
/// whole process'.
pub fn stands_behind() -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::nice(NICER)?;
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn only_the_thread_that_says_so_stands_behind() {
        let own = || rustix::process::getpriority_process(None).expect("a priority");
        let before = own();
        let behind = std::thread::spawn(move || {
            super::stands_behind().expect("a thread may always give way");
            own()
        });
        assert_eq!(behind.join().expect("it ends"), (before + super::NICER).min(19));
        assert_eq!(own(), before);
    }
}
