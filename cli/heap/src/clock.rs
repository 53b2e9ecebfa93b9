//! The time by CLOCK_MONOTONIC, as a process reads it.

use crate::live::LiveProcess;
use nix::time::{ClockId, clock_gettime};
use std::time::Duration;

const NS_PER_S: i128 = 1_000_000_000;

impl LiveProcess {
    /// The time by which the process dates samples and slabs: in a time namespace it can be days from ours.
    pub fn now_ns(&self) -> Option<u64> {
        let ours = clock_gettime(ClockId::CLOCK_MONOTONIC).ok()?;
        let ours = i128::try_from(Duration::from(ours).as_nanos()).ok()?;
        let task = self.task().to_string();
        let namespace = |task: &str| std::fs::read_link(format!("/proc/{task}/ns/time")).ok();
        // The kernel shows the offset of a task's next children, which may have another clock than the task.
        let ahead = if namespace(&task) == namespace("self") {
            0
        } else {
            offset_ns(&task) - offset_ns("self")
        };
        u64::try_from(ours + ahead).ok()
    }
}

/// How far the clock is ahead of the system's. Zero if the kernel has no time namespaces.
fn offset_ns(task: &str) -> i128 {
    let text = std::fs::read_to_string(format!("/proc/{task}/timens_offsets"));
    parse(&text.unwrap_or_default()).unwrap_or(0)
}

fn parse(text: &str) -> Option<i128> {
    let line = text.lines().find(|line| line.starts_with("monotonic"))?;
    let mut numbers = line.split_whitespace().skip(1);
    let seconds: i128 = numbers.next()?.parse().ok()?;
    let rest: i128 = numbers.next()?.parse().ok()?;
    Some(seconds * NS_PER_S + rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_read_as_the_kernel_writes_them() {
        let text = "monotonic      -20000   5\nboottime            0         0\n";
        assert_eq!(parse(text), Some(-20000 * NS_PER_S + 5));
        assert_eq!(parse(""), None);
    }
}
