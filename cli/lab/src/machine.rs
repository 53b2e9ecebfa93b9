//! What a result says about where and when it was made, and what else ran there at the time.

use hakmem_heap::shown::ShownPath;
use indexmap::IndexMap;
use nix::libc;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Machine {
    pub cpu: String,
    pub cpus: usize,
    pub usable_cpus: usize,
    pub memory_kib: u64,
    pub architecture: String,
    pub kernel: String,
    pub system: String,
    pub page_bytes: u64,
    pub transparent_huge_pages: String,
    pub overcommit: String,
    pub load_before: f64,
    /// None if the kernel does not tell it, as in most virtual machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frequency_governor: Option<String>,
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The rest of the first line that begins with `start`.
fn line_after(text: &str, start: &str) -> Option<String> {
    let line = text.lines().find_map(|line| line.strip_prefix(start))?;
    Some(line.trim_matches([':', '=', ' ', '\t', '"']).to_string())
}

fn cpu_model() -> String {
    line_after(&read("/proc/cpuinfo"), "model name").unwrap_or(std::env::consts::ARCH.into())
}

fn cpu_count() -> usize {
    read("/proc/cpuinfo")
        .lines()
        .filter(|line| line.starts_with("processor"))
        .count()
        .max(1)
}

/// A folder name made from the machine's properties, not from its host name.
pub fn folder_name() -> String {
    let mut name = String::new();
    for letter in cpu_model().to_lowercase().chars() {
        if letter.is_ascii_alphanumeric() {
            name.push(letter);
        } else if !name.ends_with('-') && !name.is_empty() {
            name.push('-');
        }
    }
    format!("{}-{}cpu", name.trim_end_matches('-'), cpu_count())
}

pub fn describe() -> Machine {
    let memory = line_after(&read("/proc/meminfo"), "MemTotal").unwrap_or_default();
    let huge_pages = read("/sys/kernel/mm/transparent_hugepage/enabled");
    let chosen = huge_pages.split(['[', ']']).nth(1).unwrap_or("unknown");
    let load = read("/proc/loadavg");
    let governor = read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    Machine {
        cpu: cpu_model(),
        cpus: cpu_count(),
        usable_cpus: std::thread::available_parallelism().map_or(1, usize::from),
        memory_kib: memory
            .split(' ')
            .next()
            .and_then(|text| text.parse().ok())
            .unwrap_or(0),
        architecture: std::env::consts::ARCH.into(),
        kernel: read("/proc/sys/kernel/osrelease").trim().into(),
        system: line_after(&read("/etc/os-release"), "PRETTY_NAME").unwrap_or("unknown".into()),
        page_bytes: procfs::page_size(),
        transparent_huge_pages: chosen.into(),
        overcommit: read("/proc/sys/vm/overcommit_memory").trim().into(),
        load_before: load
            .split(' ')
            .next()
            .and_then(|text| text.parse().ok())
            .unwrap_or(0.0),
        frequency_governor: Some(governor.trim().to_string()).filter(|text| !text.is_empty()),
    }
}

/// The CPU seconds that the whole machine has spent, including those that the host took away.
pub fn busy_s() -> f64 {
    let text = read("/proc/stat");
    let fields: Vec<f64> = text
        .lines()
        .next()
        .unwrap_or_default()
        .split_ascii_whitespace()
        .skip(1)
        .filter_map(|field| field.parse().ok())
        .collect();
    // user nice system (idle iowait) irq softirq steal
    let ticks: f64 = [0, 1, 2, 5, 6, 7]
        .iter()
        .filter_map(|at| fields.get(*at))
        .sum();
    ticks / procfs::ticks_per_second() as f64
}

/// The CPU seconds of this process and of its children that were waited for.
pub fn own_s() -> f64 {
    [libc::RUSAGE_SELF, libc::RUSAGE_CHILDREN]
        .into_iter()
        .map(|whose| {
            // SAFETY: all zeros is a valid rusage, and the kernel fills it in.
            let usage = unsafe {
                let mut usage: libc::rusage = std::mem::zeroed();
                libc::getrusage(whose, &raw mut usage);
                usage
            };
            [usage.ru_utime, usage.ru_stime]
                .iter()
                .map(|time| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6)
                .sum::<f64>()
        })
        .sum()
}

/// The fastest CPU's clock at this moment, if the kernel tells it.
pub fn frequency_khz() -> Option<u64> {
    (0..cpu_count())
        .filter_map(|cpu| {
            let path = format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq");
            read(&path).trim().parse().ok()
        })
        .max()
}

/// Touches free memory in a process of its own, which ends at once. The host of a virtual machine may give free pages to
/// others; to touch such a page again costs 3 to 15 times as much as touching a present one. After this, no run pays for that.
/// Errors are ignored.
pub fn warm_memory(kib: u64) {
    let available = line_after(&read("/proc/meminfo"), "MemAvailable").unwrap_or_default();
    let available: u64 = available
        .split(' ')
        .next()
        .and_then(|text| text.parse().ok())
        .unwrap_or(0);
    let bytes = usize::try_from(kib.min(available / 2) * 1024).unwrap_or(0);
    if bytes == 0 {
        return;
    }
    // SAFETY: the child only makes system calls, and writes to memory that it has just mapped.
    unsafe {
        match libc::fork() {
            0 => {
                touch(bytes);
                libc::_exit(0);
            }
            child if child > 0 => {
                libc::waitpid(child, std::ptr::null_mut(), 0);
            }
            _ => {}
        }
    }
}

/// Writes to every page of new memory.
///
/// # Safety
/// The memory stays mapped: only for a process that ends soon.
unsafe fn touch(bytes: usize) {
    const TOUCH_EVERY: usize = 4096;
    // SAFETY: a new mapping, written to within its length.
    unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let memory = libc::mmap(std::ptr::null_mut(), bytes, protection, kind, -1, 0);
        if memory == libc::MAP_FAILED {
            return;
        }
        libc::madvise(memory, bytes, libc::MADV_HUGEPAGE); // the fastest way to get many pages
        for offset in (0..bytes).step_by(TOUCH_EVERY) {
            memory.cast::<u8>().add(offset).write_volatile(1);
        }
    }
}

fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let done = Command::new("git")
        .arg("-C")
        .arg(root)
        .args(arguments)
        .output()
        .ok()?;
    done.status
        .success()
        .then(|| String::from_utf8_lossy(&done.stdout).trim().to_string())
}

/// The commit that is measured, with a mark if the sources differ from it.
pub fn commit(root: &Path) -> Option<String> {
    let name = git(root, &["rev-parse", "--short=10", "HEAD"])?;
    let changes = git(root, &["status", "--porcelain", "--", "src", "include"])?;
    Some(if changes.is_empty() {
        name
    } else {
        format!("{name}-dirty")
    })
}

fn broken_down(seconds: u64) -> libc::tm {
    let now = seconds.try_into().unwrap_or(0);
    // SAFETY: all zeros is a valid tm, and gmtime_r fills it in.
    unsafe {
        let mut parts: libc::tm = std::mem::zeroed();
        libc::gmtime_r(&raw const now, &raw mut parts);
        parts
    }
}

fn now() -> libc::tm {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    broken_down(since.map_or(0, |since| since.as_secs()))
}

/// "2026-11-21", in UTC.
pub fn date() -> String {
    let now = now();
    format!(
        "{:04}-{:02}-{:02}",
        now.tm_year + 1900,
        now.tm_mon + 1,
        now.tm_mday
    )
}

/// "2026-11-21T09:54:29Z".
pub fn timestamp() -> String {
    let now = now();
    format!(
        "{}T{:02}:{:02}:{:02}Z",
        date(),
        now.tm_hour,
        now.tm_min,
        now.tm_sec
    )
}

/// The caller's environment without values that look like secrets, so that it can be written down.
pub fn shown_environment<'a>(
    environment: impl IntoIterator<Item = (&'a OsString, &'a OsString)>,
) -> IndexMap<String, String> {
    const SECRET: [&str; 9] = [
        "KEY",
        "TOKEN",
        "SECRET",
        "PASS",
        "CREDENTIAL",
        "AUTH",
        "COOKIE",
        "SESSION",
        "PRIVATE",
    ];
    let mut shown: IndexMap<String, String> = environment
        .into_iter()
        .map(|(name, value)| {
            let (name, value) = (name.shown(), value.shown());
            let upper = name.to_uppercase();
            let is_secret = SECRET.iter().any(|part| upper.contains(part))
                || (value.contains("://") && value.contains('@'));
            let value = if is_secret {
                "(not recorded)".into()
            } else {
                value
            };
            (name, value)
        })
        .collect();
    shown.sort_keys();
    shown
}

/// Does the variable change what an allocator does?
pub fn is_tuning(name: &str) -> bool {
    [
        "MALLOC_",
        "GLIBC_TUNABLES",
        "LD_AUDIT",
        "HAKMEM_",
        "MIMALLOC_",
        "TCMALLOC_",
        "_RJEM_",
        "JE_",
    ]
    .iter()
    .any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_written_down() {
        let variables = [
            ("GITHUB_TOKEN", "abc"),
            ("DATABASE", "postgres://me:pass@host/db"),
            ("LANG", "C"),
        ]
        .map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let shown = shown_environment(variables.iter().map(|(name, value)| (name, value)));
        assert_eq!(shown["GITHUB_TOKEN"], "(not recorded)");
        assert_eq!(shown["DATABASE"], "(not recorded)");
        assert_eq!(shown["LANG"], "C");
    }

    #[test]
    fn the_date_is_that_of_the_epoch_at_zero() {
        let parts = broken_down(0);
        assert_eq!((parts.tm_year, parts.tm_mon, parts.tm_mday), (70, 0, 1));
    }

    #[test]
    fn the_machine_is_described() {
        let machine = describe();
        assert!(machine.cpus >= 1 && machine.memory_kib > 0 && !machine.kernel.is_empty());
        assert!(folder_name().ends_with("cpu"));
    }
}
