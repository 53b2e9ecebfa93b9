//! Writes a result completely, or keeps the old file. Checks that the file can be written before the work begins; if it cannot
//! be written afterwards, saves the result elsewhere.

use crate::error::{Error, Result};
use crate::{failed, usage};
use hakmem_heap::shown::ShownPath;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use std::env;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Cursor, ErrorKind, Read, Seek, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::NamedTempFile;

/// How long to wait for the reader of a pipe.
const TIMEOUT: Duration = Duration::from_secs(1);
const STEP: Duration = Duration::from_millis(20);

/// A file for a result; it was checked that it can be written to.
#[derive(Debug)]
pub struct Planned {
    path: PathBuf,
    to: To,
}

#[derive(Debug)]
enum To {
    /// It is replaced in one step.
    File,
    /// It is overwritten: its folder accepts no new file.
    InPlace,
    /// A pipe or a device; it stays open from now on.
    Open(File),
}

impl Planned {
    /// Call this before a measurement, so that no work is wasted.
    pub fn at(path: &Path) -> Result<Planned> {
        let to = look(path).map_err(|error| refused(path, &error))?;
        Ok(Planned {
            path: path.to_path_buf(),
            to,
        })
    }

    /// The same; makes missing folders.
    pub fn in_new_folders(path: &Path) -> Result<Planned> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|error| refused(path, &error))?;
        }
        Planned::at(path)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// If the content does not fit there, it is saved in another folder, and the error says where.
    pub fn write(self, content: impl AsRef<[u8]>) -> Result<()> {
        let content = content.as_ref();
        let written = match self.to {
            To::File => replace_file(&self.path, |mut file| file.write_all(content)),
            To::InPlace => fs::write(&self.path, content),
            To::Open(mut file) => file.write_all(content),
        };
        written.map_err(|error| kept_elsewhere(&self.path, &error, content))
    }
}

/// Replaces a file in one step; makes missing folders.
pub fn replace(path: &Path, text: &str) -> Result<()> {
    Planned::in_new_folders(path)?.write(text)
}

/// The same, with a function that writes to the given file.
pub fn replace_by<T>(path: &Path, write: impl FnOnce(File) -> Result<T>) -> Result<T> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| unwritten(path, &error))?;
    }
    let beside = beside(path).map_err(|error| unwritten(path, &error))?;
    let file = beside.reopen().map_err(|error| unwritten(path, &error))?;
    let answer = write(file)?;
    let kept = beside.persist(path);
    kept.map_err(|error| unwritten(path, &error.error))?;
    Ok(answer)
}

/// For files that are written step by step, and are too large to be lost by a mistyped name.
pub fn refuse_existing(path: &Path) -> Result<()> {
    match path.metadata() {
        Ok(status) if status.is_file() && path.is_symlink() => Err(usage!(
            "{} is a link to a file that exists: name another one",
            path.shown()
        )),
        Ok(status) if status.is_file() => Err(usage!(
            "{} exists: remove it, or name another file",
            path.shown()
        )),
        Ok(status) => Err(usage!(
            "{} is {}, and no file can be created there: name another one",
            path.shown(),
            if status.is_dir() {
                "a folder"
            } else {
                "a device or a pipe"
            }
        )),
        Err(_) => Ok(()),
    }
}

/// Makes such a new file, open from now on. If two processes want the same one, only one gets it.
pub fn create_new(path: &Path) -> Result<File> {
    let opened = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .open(target(path));
    match opened {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            refuse_existing(path)?;
            Err(refused(path, &error))
        }
        Err(error) => Err(refused(path, &error)),
        Ok(file) => Ok(file),
    }
}

/// The kernel follows this many links, too.
const LINKS_MAX: usize = 40;

/// The file that a chain of links leads to, even if it does not exist yet.
fn target(path: &Path) -> PathBuf {
    let mut target = path.to_path_buf();
    for _ in 0..LINKS_MAX {
        let Ok(next) = fs::read_link(&target) else {
            break;
        };
        target = target.parent().unwrap_or(Path::new("")).join(next);
    }
    fs::canonicalize(&target).unwrap_or(target)
}

/// The error if there is no file at `path`, or if it cannot be made.
pub fn unwritten(path: &Path, error: &io::Error) -> Error {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            failed!("cannot write {}: the disk is full", path.shown())
        }
        _ => failed!("cannot write {}: {error}", path.shown()),
    }
}

/// Saves content elsewhere that did not fit; returns where.
pub fn keep(content: &[u8]) -> Option<PathBuf> {
    keep_from(&mut Cursor::new(content))
}

/// The same for a file, which may have lost its name.
pub fn keep_from(content: &mut (impl Read + Seek)) -> Option<PathBuf> {
    [env::temp_dir(), PathBuf::from(".")]
        .iter()
        .find_map(|folder| {
            let mut file = tempfile::Builder::new()
                .prefix("hakmem-kept-")
                .tempfile_in(folder)
                .ok()?;
            content.rewind().ok()?;
            io::copy(content, &mut file).ok()?;
            Some(file.keep().ok()?.1)
        })
}

fn kept_elsewhere(path: &Path, error: &io::Error, content: &[u8]) -> Error {
    match keep(content) {
        Some(kept) => failed!(
            "cannot write {}: {error}; it is kept in {}",
            path.shown(),
            kept.shown()
        ),
        None => failed!(
            "cannot write {}: {error}; and {} has no room for it either",
            path.shown(),
            env::temp_dir().shown()
        ),
    }
}

fn refused(path: &Path, error: &io::Error) -> Error {
    usage!("cannot write {}: {error}", path.shown())
}

/// Can the file be written to, and how?
fn look(path: &Path) -> io::Result<To> {
    let status = match path.metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return beside(&target(path)).map(|_| To::File);
        }
        status => status?, // for example for a name that is too long
    };
    if status.is_dir() {
        return Err(io::Error::other("it is a folder"));
    }
    if !status.is_file() {
        let mut file = open_at_once(path)?;
        // A device that is always full reports that even for an empty write.
        match file.write(&[]) {
            Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
            _ => {}
        }
        fcntl(&file, FcntlArg::F_SETFL(OFlag::empty()))?;
        return Ok(To::Open(file));
    }
    OpenOptions::new().write(true).open(path)?;
    Ok(match beside(&target(path)) {
        Ok(_) => To::File,
        Err(_) => To::InPlace,
    })
}

/// Opens a pipe only if it has a reader.
fn open_at_once(path: &Path) -> io::Result<File> {
    let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let mut waited = Duration::ZERO;
    loop {
        let opened = OpenOptions::new()
            .write(true)
            .custom_flags(flags.bits())
            .open(path);
        match opened {
            Err(error) if error.raw_os_error() == Some(nix::libc::ENXIO) => {
                if waited >= TIMEOUT {
                    return Err(io::Error::other("it is a pipe without a reader"));
                }
            }
            other => return other,
        }
        std::thread::sleep(STEP);
        waited += STEP;
    }
}

/// A file in the same folder that removes itself, with the permissions of a new file.
fn beside(path: &Path) -> io::Result<NamedTempFile> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    tempfile::Builder::new()
        .prefix(".hakmem-")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder)
        .map_err(plain)
}

/// A file without a name, if the system supports that.
pub(crate) fn temporary() -> Result<File> {
    tempfile::tempfile().map_err(|error| {
        let folder = env::temp_dir();
        let folder = folder.shown();
        let why = plain(error);
        failed!("no temporary file in {folder}: {why}; TMPDIR names another folder")
    })
}

/// The error without the temporary file's path, which means nothing to the user.
fn plain(error: io::Error) -> io::Error {
    let text = error.to_string();
    let why = text.split(" at path ").next().unwrap_or_default();
    io::Error::new(error.kind(), why)
}

fn replace_file(path: &Path, write: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
    // A link stays a link.
    let target = target(path);
    let beside = beside(&target)?;
    write(beside.as_file())?;
    if let Ok(status) = target.metadata() {
        beside.as_file().set_permissions(status.permissions())?;
    }
    beside.persist(&target).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_written_is_said_before_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let said = |path: &Path| Planned::at(path).unwrap_err().to_string();
        let missing = folder.path().join("no/file");
        assert_eq!(
            said(&missing),
            format!(
                "cannot write {}: No such file or directory (os error 2)",
                missing.display()
            )
        );
        assert!(said(folder.path()).ends_with("it is a folder"));
        let long = folder.path().join("n".repeat(300));
        assert!(said(&long).ends_with("File name too long (os error 36)"));
        assert!(said(Path::new("/dev/full")).contains("No space left on device"));
        drop(Planned::at(&folder.path().join("file")).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_file_is_replaced_through_its_link_with_its_permissions() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        Planned::at(&link).unwrap().write("new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert!(link.is_symlink());
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_link_that_leads_nowhere_leads_to_what_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("inside");
        fs::create_dir(&inside).unwrap();
        for link in ["one", "two"] {
            std::os::unix::fs::symlink(format!("inside/{link}.file"), folder.path().join(link))
                .unwrap();
        }
        let (one, two) = (folder.path().join("one"), folder.path().join("two"));
        Planned::at(&one).unwrap().write("new").unwrap();
        create_new(&two).unwrap().write_all(b"new").unwrap();
        for link in [&one, &two] {
            assert!(link.is_symlink());
            assert_eq!(fs::read(link).unwrap(), b"new");
        }
        assert_eq!(fs::read_dir(&inside).unwrap().count(), 2);
        let again = create_new(&two).unwrap_err().to_string();
        assert!(again.contains("is a link to a file that exists"), "{again}");
    }

    #[test]
    fn what_finds_no_room_is_kept_elsewhere() {
        let planned = Planned {
            path: "/dev/full".into(),
            to: To::InPlace,
        };
        let said = planned.write("measured").unwrap_err().to_string();
        let kept = said.rsplit("it is kept in ").next().unwrap();
        assert_eq!(fs::read(kept).unwrap(), b"measured", "{said}");
        fs::remove_file(kept).unwrap();
    }
}
