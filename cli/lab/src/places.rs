//! Where things are: the library beside the command, and the project's folders when it runs
//! from a checkout.

use crate::error::Result;
use crate::{failed, usage};
use std::env;
use std::path::{Path, PathBuf};

pub const LIBRARY: &str = "libhakmem.so";
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

    /// The checkout, for what only makes sense in one.
    pub fn need_root(&self) -> Result<&Path> {
        self.root.as_deref().ok_or_else(|| {
            usage!("this needs the project's sources: run the build/hakmem of a checkout")
        })
    }

    /// Where peers are built: with the rest of the build, or in the user's cache.
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

    /// The same text, with paths below the checkout made relative to it: results are compared
    /// between machines.
    pub fn relative(&self, text: &str) -> String {
        match &self.root {
            Some(root) => text.replace(&format!("{}/", root.display()), ""),
            None => text.to_string(),
        }
    }

    /// `libhakmem.so`: beside this command, in `../lib` when installed, or in the checkout's build.
    pub fn library(&self) -> Result<PathBuf> {
        self.find_library(LIBRARY)
    }

    /// `libhakmem_record.so`, which lies beside it.
    pub fn recorder(&self) -> Result<PathBuf> {
        self.find_library(RECORDER)
    }

    /// The page that `hakmem report` fills in.
    pub fn report_page(&self) -> Result<PathBuf> {
        self.find_built(REPORT_PAGE, &["../share/hakmem"])
    }

    /// Where the documents are installed; None in a checkout, where they are called as in every text.
    pub fn documents(&self) -> Option<PathBuf> {
        let installed = self.binary_folder.join("../share/doc/hakmem");
        let is_installed = self.root.is_none() && installed.join("docs").is_dir();
        is_installed
            .then(|| installed.canonicalize().ok())
            .flatten()
    }

    fn find_library(&self, name: &str) -> Result<PathBuf> {
        self.find_built(name, &["../lib", "../lib64"])
    }

    /// A file that the build makes: beside this command, where it is installed, or in the build.
    fn find_built(&self, name: &str, installed: &[&str]) -> Result<PathBuf> {
        let built = self.root.as_ref().map(|root| root.join("build").join(name));
        let installed = installed
            .iter()
            .map(|folder| self.binary_folder.join(folder).join(name));
        [self.binary_folder.join(name)]
            .into_iter()
            .chain(built)
            .chain(installed)
            .find_map(|path| path.canonicalize().ok())
            .ok_or_else(|| {
                usage!(
                    "{name} is not beside {}: build it with make",
                    self.binary_folder.join("hakmem").display()
                )
            })
    }
}

fn cache_folder() -> PathBuf {
    let given = env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute());
    given.unwrap_or_else(|| {
        PathBuf::from(env::var_os("HOME").unwrap_or_else(|| "/tmp".into())).join(".cache")
    })
}
