//! Finds our number for a process that states its own.
//!
//! A process in another PID namespace has another number there, and that number may be another process here. The right process
//! has the channel mapped, and its status has the number inside.

use std::fs;

/// The process that has mapped `inode`, the channel's memory, and whose own number is `id`.
pub fn outer_pid(id: i32, inode: u64) -> Option<i32> {
    let is_it = |pid: &i32| has_mapped(*pid, inode);
    if inner_id(id) == Some(id) && is_it(&id) {
        return Some(id);
    }
    let entries = fs::read_dir("/proc").ok()?;
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|pid| inner_id(*pid) == Some(id)).find(is_it)
}

/// A process's number in its innermost namespace.
fn inner_id(pid: i32) -> Option<i32> {
    let status = fs::read(format!("/proc/{pid}/status")).ok()?;
    let status = String::from_utf8_lossy(&status);
    let ids = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))?;
    ids.split_whitespace().last()?.parse().ok()
}

fn has_mapped(pid: i32, inode: u64) -> bool {
    let maps = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    let inode = inode.to_string();
    maps.split(|byte| *byte == b'\n').any(|line| {
        let mut words = line.split(|byte| *byte == b' ').skip(4);
        words.next() == Some(inode.as_bytes()) && line.ends_with(b"/memfd:hakmem-record (deleted)")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::Channel;

    #[test]
    fn who_has_the_channel_mapped_is_found_by_its_own_number() {
        let channel = Channel::create(0, 0).unwrap();
        let own = std::process::id() as i32;
        assert_eq!(outer_pid(own, channel.inode()), Some(own));
        assert_eq!(outer_pid(own, channel.inode() + 1), None);
        assert_eq!(outer_pid(1, channel.inode()), None);
    }
}
