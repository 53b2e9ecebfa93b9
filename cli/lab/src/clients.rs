//! The clients of a measured server: what they request, and when the server's memory is read.

use crate::interrupt;
use crate::launch::Running;
use crate::meter::Stop;
use crate::workload::{Ready, Server, Workload};
use nix::libc;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How long a server may take to be ready, unless a user knows better: one that never is should be reported soon.
pub const SERVER_START: Duration = Duration::from_secs(10);
const SERVER_POLL: Duration = Duration::from_millis(5);
const CLIENT_POLL: Duration = Duration::from_millis(100);

/// What was found out about a server while its clients ran.
pub struct Driven {
    pub clients_s: f64,
    /// When each moment was over, in seconds since the start, and the resident KiB then.
    pub moments: Vec<(String, (f64, u64))>,
    pub answers: Vec<u8>,
}

/// Drives a server from the moment it is ready until it was asked to end.
pub fn drive(running: &Running, server: &Server, workload: &Workload) -> Result<Driven, Stop> {
    let deadline = Instant::now() + server.start;
    while !is_ready(&server.ready) {
        if !running.is_running() {
            return Err(Stop::Refused("the server ended before it was ready".into()));
        }
        if Instant::now() > deadline || interrupt::requested() {
            return Err(Stop::Refused(format!(
                "the server was not ready after {} s{}",
                server.start.as_secs(),
                server.start_advice
            )));
        }
        std::thread::sleep(SERVER_POLL);
    }
    let started = Instant::now();
    run_unmeasured(workload, &server.drive, "client")?;
    let mut clients = started.elapsed();
    let mut moments = Vec::new();
    for moment in &server.moments {
        let begun = Instant::now();
        run_unmeasured(workload, &moment.commands, "client")?;
        clients += begun.elapsed();
        wait(moment.wait)?;
        moments.push((moment.name.clone(), running.moment()));
    }
    let answers = run_unmeasured(workload, &server.ask, "client")?;
    run_unmeasured(workload, &server.stop, "client")?;
    if server.stop.is_empty() {
        running.terminate();
    }
    Ok(Driven {
        clients_s: clients.as_secs_f64(),
        moments,
        answers,
    })
}

fn wait(time: Duration) -> Result<(), Stop> {
    let until = Instant::now() + time;
    while Instant::now() < until {
        if interrupt::requested() {
            return Err(Stop::Interrupted);
        }
        std::thread::sleep(SERVER_POLL);
    }
    Ok(())
}

pub fn is_ready(ready: &Ready) -> bool {
    match ready {
        Ready::Socket(path) => path.exists(),
        Ready::Port(port) => {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, *port));
            TcpStream::connect_timeout(&address, Duration::from_millis(200)).is_ok()
        }
    }
}

/// Removes a socket file at which nobody listens: the last server that was ended left it there. The next one would be taken
/// for ready before it is, or could not use that address.
pub fn clear(ready: &Ready) {
    if let Ready::Socket(path) = ready
        && std::fs::symlink_metadata(path).is_ok_and(|data| data.file_type().is_socket())
        && UnixStream::connect(path)
            .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    {
        let _ = std::fs::remove_file(path);
    }
}

/// Returns a child's output and status, or None if it took longer than the limit. Its process group is killed then, and by an
/// interrupt: the child may need hours, and the processes that it started are in the group.
pub fn until_stopped(child: Child, limit: Option<Duration>) -> io::Result<Option<Output>> {
    let group = child.id().cast_signed();
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let (done, waits) = mpsc::channel::<()>();
        let watch = scope.spawn(move || {
            let mut is_late = false;
            while waits.recv_timeout(CLIENT_POLL) == Err(RecvTimeoutError::Timeout) {
                is_late |= limit.is_some_and(|limit| begun.elapsed() > limit);
                if is_late || interrupt::requested() {
                    // SAFETY: a signal to other processes touches no memory of ours.
                    unsafe { libc::kill(-group, libc::SIGKILL) };
                }
            }
            is_late
        });
        let output = child.wait_with_output();
        drop(done);
        let is_late = watch.join().unwrap_or(false);
        output.map(|output| (!is_late).then_some(output))
    })
}

/// Runs commands without preload; returns everything that they print.
pub fn run_unmeasured(
    workload: &Workload,
    commands: &[Vec<String>],
    what: &str,
) -> Result<Vec<u8>, Stop> {
    let mut printed = Vec::new();
    for command in commands {
        let Some((program, arguments)) = command.split_first() else {
            continue;
        };
        // For a shell command, the command line says more than the shell's name.
        let shown = if program == "/bin/sh" {
            arguments.last().unwrap_or(program)
        } else {
            program
        };
        let done = Command::new(program)
            .args(arguments)
            .env_clear()
            .envs(
                workload
                    .environment
                    .iter()
                    .filter(|(name, _)| *name != "LD_PRELOAD"),
            )
            .current_dir(&workload.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .and_then(|child| until_stopped(child, workload.timeout))
            .map_err(|error| Stop::Refused(format!("{what} '{shown}' cannot be run: {error}")))?;
        if interrupt::requested() {
            return Err(Stop::Interrupted);
        }
        let Some(done) = done else {
            let limit = workload.timeout.unwrap_or_default().as_secs();
            return Err(Stop::Refused(format!(
                "{what} '{shown}' had not finished after {limit} s"
            )));
        };
        if !done.status.success() {
            let text = String::from_utf8_lossy(&done.stderr);
            let last = text.trim().lines().next_back().unwrap_or("no message");
            return Err(Stop::Refused(format!(
                "{what} '{shown}' failed ({}): {last}",
                done.status
            )));
        }
        printed.extend(done.stdout);
    }
    Ok(printed)
}
