//! Finds debugging information by build id, from a debuginfod server or from its client's cache.
//!
//! The client (debuginfod-find, of elfutils) handles servers, proxies and the cache. It is only started if the user has set
//! servers, and only for a limited time.

use hakmem_heap::shown::hexadecimal;
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Without an answer within this many seconds, there is no network or no server.
const WAIT_FOR_ANSWER: &str = "5";
/// The time limit for one file.
const WAIT_FOR_FILE: Duration = Duration::from_secs(60);

/// Asks for a file's debugging information, not for its code.
const KIND: &str = "debuginfo";

/// Finds the debugging information of the file with this build id.
pub fn find(build_id: &[u8]) -> Option<PathBuf> {
    let id = hexadecimal(build_id);
    if id.is_empty() {
        return None;
    }
    kept(&id).or_else(|| ask(&id))
}

/// The file in the client's cache, as described in debuginfod_find_debuginfo(3).
fn kept(id: &str) -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let cache = folder("DEBUGINFOD_CACHE_PATH").map(PathBuf::from);
    let cache = cache.or_else(|| {
        let base = folder("XDG_CACHE_HOME").map(PathBuf::from);
        let base = base.or_else(|| Some(PathBuf::from(folder("HOME")?).join(".cache")));
        Some(base?.join("debuginfod_client"))
    });
    let file = cache?.join(id).join(KIND);
    // An empty file means that no server had it.
    let is_there = file
        .metadata()
        .is_ok_and(|data| data.is_file() && data.len() > 0);
    is_there.then_some(file)
}

fn ask(id: &str) -> Option<PathBuf> {
    static HAS_NO_ANSWER: AtomicBool = AtomicBool::new(false);
    let servers = std::env::var_os("DEBUGINFOD_URLS")?;
    if servers.as_encoded_bytes().trim_ascii().is_empty() || HAS_NO_ANSWER.load(Ordering::Relaxed) {
        return None;
    }
    let started = Instant::now();
    let mut command = Command::new("debuginfod-find");
    command.args([KIND, id]);
    if std::env::var_os("DEBUGINFOD_TIMEOUT").is_none() {
        command.env("DEBUGINFOD_TIMEOUT", WAIT_FOR_ANSWER);
    }
    let null = Stdio::null;
    let child = command.stdin(null()).stderr(null()).stdout(Stdio::piped());
    let Ok(child) = child.spawn() else {
        HAS_NO_ANSWER.store(true, Ordering::Relaxed);
        return None; // the client is not installed
    };
    let found = answer(child, started + WAIT_FOR_FILE);
    if found.is_none() && started.elapsed() >= Duration::from_secs(4) {
        HAS_NO_ANSWER.store(true, Ordering::Relaxed);
    }
    found
}

/// The path that the client prints, if it does so in time.
fn answer(mut child: Child, until: Instant) -> Option<PathBuf> {
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(10)),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    };
    let mut path = Vec::new();
    child.stdout.take()?.read_to_end(&mut path).ok()?;
    let path = path.strip_suffix(b"\n").unwrap_or(&path).to_vec();
    let path = PathBuf::from(std::ffi::OsString::from_vec(path));
    let is_path = status.success() && path.as_os_str() != OsStr::new("") && path.is_file();
    is_path.then_some(path)
}
