//! `hakmem export`: a heap's figures for monitoring.

use crate::signals;
use crate::target::{end_with, open_process, process_number, read_process};
use clap::Args;
use hakmem_heap::control::Control;
use hakmem_heap::error::Error;
use hakmem_heap::figures::Figures;
use hakmem_heap::live::LiveProcess;
use hakmem_heap::memory::Memory;
use hakmem_heap::metrics::{self, Subject};
use hakmem_heap::shown::{ShownPath, shown};
use hakmem_lab::error::Result;
use hakmem_lab::whole_file::Planned;
use hakmem_lab::{failed, usage};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const EXAMPLES: &str = "\
Examples:
  hakmem export 4711 --prometheus                              print the metrics once
  hakmem export 4711 --prometheus --listen 127.0.0.1:9464      serve them to a scraper
  hakmem export 4711 --prometheus --textfile /var/lib/node_exporter/hakmem.prom --every 15

Each scrape reads the process again, which is neither stopped nor written to. When the process
ends, the command ends with exit code 0. With --every, the file is then removed, as it is when the
command is stopped.
contrib/grafana/hakmem.json is a dashboard; docs/monitoring.md says more.";

/// How long a scraper may take to send its request, and to read the answer; and how long the request may be.
const TIMEOUT: Duration = Duration::from_secs(2);
const REQUEST_BYTES_MAX: usize = 8192;
/// How soon the end of a process is noticed.
const STEP: Duration = Duration::from_secs(1);
/// How long a process that still exists may be unreadable.
const PATIENCE: Duration = Duration::from_secs(2);

/// Export a heap's figures to monitoring systems
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The process ID
    #[arg(value_parser = process_number)]
    pid: i32,
    /// Use the text format of Prometheus
    #[arg(long, required = true)]
    prometheus: bool,
    /// Serve the metrics at this loopback address; port 0 means any free port
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with = "textfile")]
    listen: Option<SocketAddr>,
    /// Write the metrics to a file for node_exporter's textfile collector, replacing it as a whole
    #[arg(long, value_name = "FILE")]
    textfile: Option<PathBuf>,
    /// Write the file again at this interval, until the process ends
    #[arg(long, value_name = "SECONDS", requires = "textfile", value_parser = clap::value_parser!(u64).range(1..))]
    every: Option<u64>,
}

pub fn execute(arguments: &Arguments) -> Result<ExitCode> {
    let pid = arguments.pid;
    let process = open_process(pid)?;
    let first = read(pid)?;
    match (arguments.listen, &arguments.textfile) {
        (Some(address), _) => serve(process, address)?,
        (None, Some(path)) => match arguments.every {
            Some(seconds) => write_on(process, path, &first, Duration::from_secs(seconds))?,
            None => store(path, &first)?,
        },
        (None, None) => print!("{first}"),
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes until the process ends, or until nothing can be read or written any more. Then removes the file, so that nobody finds
/// old figures.
fn write_on(mut process: LiveProcess, path: &Path, first: &str, every: Duration) -> Result<()> {
    // The writer of the file holds this lock.
    let writing = Arc::new(Mutex::new(()));
    remove_at_the_end(path.to_path_buf(), Arc::clone(&writing));
    let store = |text: &str| {
        let _writing = writing.lock();
        store(path, text)
    };
    store(first)?;
    let mut write = || -> Result<()> {
        loop {
            wait(&process, every);
            match read_on(&mut process)? {
                Some(text) => store(&text)?,
                None => return Ok(()),
            }
        }
    };
    let written = write();
    let _writing = writing.lock();
    remove(path).and(written)
}

/// Waits, unless the process goes away.
fn wait(process: &LiveProcess, time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time && process.lost().is_none() {
        std::thread::sleep(time.saturating_sub(begin.elapsed()).min(STEP));
    }
}

/// The current metrics of the program that the process runs now; None, with a message, if there are none any more. A process
/// that has just executed a program may not have started hakmem yet, and one that changes fast looks damaged: both are tried
/// again for some time.
fn read_on(process: &mut LiveProcess) -> Result<Option<String>> {
    let begin = Instant::now();
    loop {
        let read = read(process.pid);
        let lost = process.lost();
        match (read, lost) {
            (Ok(text), None) => return Ok(Some(text)),
            (Ok(text), Some(_)) => {
                if let Ok(now) = open_process(process.pid) {
                    *process = now;
                }
                return Ok(Some(text));
            }
            (Err(_), Some(why @ Error::Gone(_))) => return end_with(&why).map(|()| None),
            (Err(_), _) if begin.elapsed() < PATIENCE => std::thread::sleep(STEP / 10),
            (Err(_), Some(why)) => return end_with(&why).map(|()| None),
            (Err(error), None) => return Err(error),
        }
    }
}

/// The current metrics.
fn read(pid: i32) -> Result<String> {
    let process = open_process(pid)?;
    let heap = read_process(&process)?;
    let control = Control::find(&process).map_err(|error| failed!("process {pid}: {error}"))?;
    let subject = Subject {
        pid,
        program: program(&process),
        resident_bytes: resident_bytes(process.task()),
    };
    Ok(metrics::text(&subject, &Figures::of(&heap), &control))
}

/// The program's name, as ps shows it.
fn program(process: &LiveProcess) -> String {
    let name = std::fs::read(format!("/proc/{}/comm", process.pid)).unwrap_or_default();
    shown(name.strip_suffix(b"\n").unwrap_or(&name))
}

fn resident_bytes(task: i32) -> u64 {
    let text =
        String::from_utf8_lossy(&std::fs::read(format!("/proc/{task}/status")).unwrap_or_default())
            .into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let words = line.and_then(|rest| rest.split_whitespace().next());
    words.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// Replaces the file in one step: readers find the old content or the new, never a part.
fn store(path: &Path, text: &str) -> Result<()> {
    Planned::at(path)?.write(text)
}

/// Removes the file: the figures of an ended process would be taken for a running one's.
fn remove(path: &Path) -> Result<()> {
    let is_file = path.symlink_metadata().is_ok_and(|data| data.is_file());
    let removed = if is_file {
        std::fs::remove_file(path)
    } else {
        Ok(())
    };
    removed.map_err(|error| failed!("cannot remove {}: {error}", path.shown()))
}

/// Also removes it if we are told to stop, as nothing updates it then.
fn remove_at_the_end(path: PathBuf, writing: Arc<Mutex<()>>) {
    signals::before_the_end(move || {
        std::mem::forget(writing.lock()); // keeps the lock, so that nothing is written any more
        if let Err(error) = remove(&path) {
            eprintln!("hakmem: {error}");
        }
    });
}

fn serve(process: LiveProcess, address: SocketAddr) -> Result<()> {
    if !address.ip().is_loopback() {
        return Err(usage!(
            "{address} can be reached from other machines: listen on 127.0.0.1, and let a proxy \
             guard the access"
        ));
    }
    let listener = TcpListener::bind(address)
        .map_err(|error| failed!("cannot listen on {address}: {error}"))?;
    let bound = listener
        .local_addr()
        .map_err(|error| failed!("cannot listen on {address}: {error}"))?;
    println!("http://{bound}/metrics");
    let pid = process.pid;
    std::thread::spawn(move || end_with_process(process));
    for stream in listener.incoming() {
        // A slow scraper delays no other one, and one that disconnects is ignored.
        let answering = stream.and_then(|stream| {
            std::thread::Builder::new().spawn(move || answer(stream, pid).unwrap_or(()))
        });
        if answering.is_err() {
            std::thread::sleep(STEP / 10); // too many connections at once
        }
    }
    Ok(())
}

fn end_with_process(mut process: LiveProcess) {
    let code = loop {
        wait(&process, Duration::MAX);
        // If it executes another program, that may use hakmem, too.
        match read_on(&mut process) {
            Ok(Some(_)) => {}
            Ok(None) => break 0,
            Err(error) => {
                eprintln!("hakmem: {error}");
                break 1;
            }
        }
    };
    std::process::exit(code);
}

fn answer(mut stream: TcpStream, pid: i32) -> std::io::Result<()> {
    stream.set_write_timeout(Some(TIMEOUT))?;
    let request = request(&mut stream)?;
    let mut words = request.split_whitespace();
    let method = words.next();
    let path = words
        .next()
        .map(|path| path.split('?').next().unwrap_or(path));
    let (status, body) = match (method, path) {
        (Some("GET" | "HEAD"), Some("/metrics" | "/")) => match read(pid) {
            Ok(text) => ("200 OK", text),
            Err(error) => ("503 Service Unavailable", format!("{error}\n")),
        },
        (Some("GET" | "HEAD"), _) => ("404 Not Found", "the metrics are at /metrics\n".into()),
        _ => ("405 Method Not Allowed", "only GET and HEAD\n".into()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    if method == Some("HEAD") {
        return Ok(()); // as GET, without the body
    }
    stream.write_all(body.as_bytes())
}

/// The request's header, if it is not too long and comes in time.
fn request(stream: &mut TcpStream) -> std::io::Result<String> {
    let begin = Instant::now();
    let mut bytes = Vec::new();
    let mut piece = [0; 1024];
    while bytes.len() < REQUEST_BYTES_MAX && !bytes.windows(4).any(|end| end == b"\r\n\r\n") {
        let rest = TIMEOUT.saturating_sub(begin.elapsed());
        if rest.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(rest))?;
        match stream.read(&mut piece)? {
            0 => break,
            count => bytes.extend_from_slice(&piece[..count]),
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
