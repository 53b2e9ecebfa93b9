//! A control group for each run, where one can be made. The kernel then tells the peak memory of all the run's processes
//! together: shared pages count once, and files count for the process that reads them first.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Removal is tried this often: a process that has ended leaves its group slightly later.
const REMOVALS_MAX: u32 = 20;
const REMOVAL_PAUSE: Duration = Duration::from_millis(5);

/// The place where groups can be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    parent: PathBuf,
    /// The name of the file with the peak in bytes.
    peak: &'static str,
}

/// One group, which is removed when this is dropped.
#[derive(Debug)]
pub struct Group {
    folder: PathBuf,
    peak: &'static str,
}

impl Groups {
    /// None if no group with a peak can be made, as for most users without special rights.
    pub fn find() -> Option<Groups> {
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let groups = Groups::below(&own, &mounts)?;
        groups.make()?.peak_kib().map(|_| groups)
    }

    /// From the kernel's texts about this process's groups and about mounts.
    fn below(own: &str, mounts: &str) -> Option<Groups> {
        let path_of = |wanted: &dyn Fn(&str, &str) -> bool| {
            own.lines().find_map(|line| {
                let mut parts = line.splitn(3, ':');
                let (number, controllers) = (parts.next()?, parts.next()?);
                let path = parts.next()?.trim_start_matches('/');
                wanted(number, controllers).then_some(path)
            })
        };
        let is_memory =
            |_: &str, controllers: &str| controllers.split(',').any(|one| one == "memory");
        if let Some(path) = path_of(&is_memory) {
            return Some(Groups {
                parent: mount_point(mounts, "cgroup", "memory")?.join(path),
                peak: "memory.max_usage_in_bytes",
            });
        }
        let path = path_of(&|number, controllers| number == "0" && controllers.is_empty())?;
        let own_group = mount_point(mounts, "cgroup2", "")?.join(path);
        // A group with processes passes no controllers down, so the new group is made beside it.
        let parent = match own_group.parent() {
            Some(parent) if !path.is_empty() => parent.to_path_buf(),
            _ => own_group,
        };
        Some(Groups {
            parent,
            peak: "memory.peak",
        })
    }

    pub fn make(&self) -> Option<Group> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("hakmem-{}-{number}", std::process::id());
        let folder = self.parent.join(name);
        fs::create_dir(&folder).ok()?;
        Some(Group {
            folder,
            peak: self.peak,
        })
    }
}

/// The mount point of a file system of this kind with this option.
fn mount_point(mounts: &str, kind: &str, option: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut after = after.split(' ');
        let is_kind = after.next()? == kind;
        let options = after.nth(1)?;
        let is_wanted =
            is_kind && (option.is_empty() || options.split(',').any(|one| one == option));
        is_wanted.then(|| before.split(' ').nth(4).map(PathBuf::from))?
    })
}

impl Group {
    /// Moves a process into the group; processes that it starts later belong to it, too.
    pub fn take_in(&self, pid: i32) -> bool {
        fs::write(self.folder.join("cgroup.procs"), pid.to_string()).is_ok()
    }

    pub fn peak_kib(&self) -> Option<u64> {
        let text = fs::read_to_string(self.folder.join(self.peak)).ok()?;
        Some(text.trim().parse::<u64>().ok()? / 1024)
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for _ in 0..REMOVALS_MAX {
            if fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            std::thread::sleep(REMOVAL_PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: &str = "\
23 1 0:2 / /sys rw - sysfs sysfs rw
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct
33 31 0:30 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";

    #[test]
    fn the_first_version_has_a_tree_for_memory() {
        let own = "4:memory:/a/b\n3:cpuset:/c\n0::/\n";
        let found = Groups::below(own, BOTH).unwrap();
        assert_eq!(found.parent, Path::new("/sys/fs/cgroup/memory/a/b"));
        assert_eq!(found.peak, "memory.max_usage_in_bytes");
    }

    #[test]
    fn in_the_second_a_group_lies_beside_our_own() {
        let mounts = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n";
        let found = Groups::below("0::/user.slice/a.scope\n", mounts).unwrap();
        assert_eq!(found.parent, Path::new("/sys/fs/cgroup/user.slice"));
        assert_eq!(found.peak, "memory.peak");
        let at_the_top = Groups::below("0::/\n", mounts).unwrap();
        assert_eq!(at_the_top.parent, Path::new("/sys/fs/cgroup"));
    }

    #[test]
    fn without_one_there_is_none() {
        assert_eq!(Groups::below("", BOTH), None);
        assert_eq!(Groups::below("0::/\n", ""), None);
        assert_eq!(Groups::below("nonsense", "nonsense - more"), None);
    }

    #[test]
    fn a_group_knows_the_memory_of_all_its_processes_and_goes() {
        let Some(groups) = Groups::find() else {
            return; // this user may not make groups
        };
        let group = groups.make().unwrap();
        let folder = group.folder().to_path_buf();
        let script = "read line; head -c 50m /dev/zero | tail -c 40m | wc -c";
        let mut shell = std::process::Command::new("/bin/sh")
            .args(["-c", script])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        assert!(group.take_in(shell.id() as i32));
        drop(shell.stdin.take());
        assert!(shell.wait().unwrap().success());
        let peak = group.peak_kib().unwrap();
        assert!((40 << 10..200 << 10).contains(&peak), "{peak} KiB");
        drop(group);
        assert!(!folder.exists());
    }
}
