//! Where files are: the library beside the command and, in a checkout, the project's folders.

use crate::error::Result;
use crate::{failed, usage};
use std::env;
use std::path::{Path, PathBuf};

/// The library's names: for the linker, and for the dynamic linker.
const LIBRARY: [&str; 2] = [
    "libhakmem.so",
    concat!("libhakmem.so.", env!("CARGO_PKG_VERSION_MAJOR")),
];
const RECORDER: &str = "libhakmem_record.so";
const REPORT_PAGE: &str = "report.html";

#[derive(Clone, Debug)]
pub struct Places {
    binary_folder: PathBuf,
    /// The checkout that this command was built in, if it is one.
    root: Option<PathBuf>,
}

impl Places {
    pub fn find() -> Result<Places> {
        let binary = env::current_exe()
            .and_then(|path| path.canonicalize())
            .map_err(|error| failed!("cannot find this command's own path: {error}"))?;
        let binary_folder = binary.parent().unwrap_or(Path::new("/")).to_path_buf();
        let root = binary_folder
            .ancestors()
            .find(|folder| folder.join("bench/workloads").is_dir() && folder.join("src").is_dir())
            .map(Path::to_path_buf);
        Ok(Places {
            binary_folder,
            root,
        })
    }

    pub fn root(&self) -> Option<&Path> {
        self.root.as_deref()
    }

    /// The checkout; an error if there is none.
    pub fn need_root(&self) -> Result<&Path> {
        self.root.as_deref().ok_or_else(|| {
            usage!("this needs the project's sources: run the build/hakmem of a checkout")
        })
    }

    /// Where peers are built: in the build folder, or in the user's cache.
    pub fn peers(&self) -> PathBuf {
        match &self.root {
            Some(root) => root.join("build/peers"),
            None => cache_folder().join("hakmem/peers"),
        }
    }

    pub fn results(&self) -> Result<PathBuf> {
        Ok(self
            .need_root()?
            .join("bench/results")
            .join(crate::machine::folder_name()))
    }

    /// A text with paths in the checkout made relative: results are compared between machines.
    pub fn relative(&self, text: &str) -> String {
        match &self.root {
            Some(root) => text.replace(&format!("{}/", root.display()), ""),
            None => text.to_string(),
        }
    }

    /// `libhakmem.so`: beside this command, in `../lib` when installed, or in the checkout's build.
    pub fn library(&self) -> Result<PathBuf> {
        self.find_built(&LIBRARY, &library_folders())
    }

    /// `libhakmem_record.so`, in the same places.
    pub fn recorder(&self) -> Result<PathBuf> {
        self.find_built(&[RECORDER], &library_folders())
    }

    /// The page that `hakmem report` fills in.
    pub fn report_page(&self) -> Result<PathBuf> {
        self.find_built(&[REPORT_PAGE], &["../share/hakmem".into()])
    }

    /// Where the documents are installed; None in a checkout.
    pub fn documents(&self) -> Option<PathBuf> {
        let installed = self.binary_folder.join("../share/doc/hakmem");
        let is_installed = self.root.is_none() && installed.join("docs").is_dir();
        is_installed
            .then(|| installed.canonicalize().ok())
            .flatten()
    }

    /// Finds a file of the build: beside this command, in the build folder, or where it is installed.
    fn find_built(&self, names: &[&str], installed: &[String]) -> Result<PathBuf> {
        let own = self.binary_folder.clone();
        let built = self.root.as_ref().map(|root| root.join("build"));
        let installed = installed.iter().map(|folder| own.join(folder));
        [own.clone()]
            .into_iter()
            .chain(built)
            .chain(installed)
            .flat_map(|folder| names.iter().map(move |name| folder.join(name)))
            .find_map(|path| path.canonicalize().ok())
            .ok_or_else(|| {
                usage!(
                    "{} is not beside {}: build it with make",
                    names[0],
                    own.join("hakmem").display()
                )
            })
    }
}

/// Where libraries are installed, relative to the command's folder. Debian has a folder for each processor, and in it one for
/// libraries of a single package.
fn library_folders() -> [String; 4] {
    let debian = format!("../lib/{}-linux-gnu", env::consts::ARCH);
    let private = format!("{debian}/hakmem");
    ["../lib".into(), "../lib64".into(), debian, private]
}

fn cache_folder() -> PathBuf {
    let given = env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute());
    given.unwrap_or_else(|| {
        PathBuf::from(env::var_os("HOME").unwrap_or_else(|| "/tmp".into())).join(".cache")
    })
}
