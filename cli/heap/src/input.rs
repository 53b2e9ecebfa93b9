//! Opens files that the user names. Opening a pipe may wait for ever if nobody writes it, and a special file may have no end.

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::fs::{File, FileType, OpenOptions};
use std::io::{self, Cursor, ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// How long to wait for the writer of a pipe.
const TIMEOUT_MS: u16 = 1000;
/// The most bytes to read from one input.
const BYTES_MAX: u64 = 1 << 30;

/// The first bytes, which tell a file's kind. None for a pipe, whose bytes can be read only once.
pub fn first_bytes<const COUNT: usize>(path: &Path) -> Option<[u8; COUNT]> {
    let mut bytes = [0; COUNT];
    let mut file = path.is_file().then(|| File::open(path))?.ok()?;
    file.read_exact(&mut bytes).ok()?;
    Some(bytes)
}

/// A regular file, which can be read at any offset.
pub fn open(path: &Path) -> io::Result<File> {
    let (file, kind) = open_at_once(path)?;
    if !kind.is_file() {
        return Err(io::Error::other(format!(
            "it is {}, not a regular file",
            name(kind)
        )));
    }
    Ok(file)
}

/// Anything that can be read from beginning to end, including a pipe with a writer, such as a shell's `<(…)`.
pub fn open_stream(path: &Path) -> io::Result<impl Read> {
    let (mut file, kind) = open_at_once(path)?;
    if kind.is_dir() {
        return Err(io::Error::other("it is a folder"));
    }
    let start = if kind.is_fifo() {
        start_of_pipe(&mut file)?
    } else {
        Vec::new()
    };
    fcntl(&file, FcntlArg::F_SETFL(OFlag::empty()))?;
    Ok(Cursor::new(start).chain(file))
}

/// Reads a whole input.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_rest(open_stream(path)?)
}

/// Reads the rest of an input.
pub fn read_rest(stream: impl Read) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    stream.take(BYTES_MAX + 1).read_to_end(&mut content)?;
    if content.len() as u64 > BYTES_MAX {
        return Err(io::Error::other("it has more than 1 GiB"));
    }
    Ok(content)
}

pub fn read_to_string(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?)
        .map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is not text in UTF-8"))
}

/// Opens anything without waiting.
fn open_at_once(path: &Path) -> io::Result<(File, FileType)> {
    let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits())
        .open(path)?;
    let kind = file.metadata()?.file_type();
    Ok((file, kind))
}

/// The first bytes of a pipe, if any are there yet; an error if it has no writer.
fn start_of_pipe(file: &mut File) -> io::Result<Vec<u8>> {
    // Also ready if a writer has closed the pipe without writing.
    let is_ready = {
        let mut wanted = [PollFd::new(file.as_fd(), PollFlags::POLLIN)];
        poll(&mut wanted, PollTimeout::from(TIMEOUT_MS))? > 0
    };
    let mut start = vec![0; 4096];
    match file.read(&mut start) {
        Ok(0) if !is_ready => Err(io::Error::other("it is a pipe without a writer")),
        Ok(count) => {
            start.truncate(count);
            Ok(start)
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(Vec::new()), // it has a writer
        Err(error) => Err(error),
    }
}

fn name(kind: FileType) -> &'static str {
    if kind.is_dir() {
        "a folder"
    } else if kind.is_fifo() {
        "a pipe"
    } else if kind.is_char_device() || kind.is_block_device() {
        "a device"
    } else {
        "something else"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::stat::Mode;
    use std::time::{Duration, Instant};

    fn pipe(folder: &tempfile::TempDir) -> std::path::PathBuf {
        let path = folder.path().join("pipe");
        nix::unistd::mkfifo(&path, Mode::S_IRWXU).unwrap();
        path
    }

    #[test]
    fn a_pipe_that_nobody_writes_is_not_waited_for_and_one_that_somebody_writes_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = pipe(&folder);
        let error = read(&path).unwrap_err();
        assert_eq!(error.to_string(), "it is a pipe without a writer");
        let at = path.clone();
        let writer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            let mut file = OpenOptions::new().write(true).open(at).unwrap();
            for part in ["one ", "two"] {
                io::Write::write_all(&mut file, part.as_bytes()).unwrap();
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        assert_eq!(read_to_string(&path).unwrap(), "one two");
        writer.join().unwrap();
    }

    #[test]
    fn a_pipe_is_no_file_to_be_read_at_any_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = pipe(&folder);
        let begin = Instant::now();
        let error = open(&path).unwrap_err();
        assert_eq!(error.to_string(), "it is a pipe, not a regular file");
        assert!(begin.elapsed() < Duration::from_millis(500));
        let error = open(folder.path()).unwrap_err();
        assert_eq!(error.to_string(), "it is a folder, not a regular file");
    }
}
