//! Where things are: the library beside the command, and the project's folders when it runs
//! from a checkout.

use crate::error::Result;
use crate::{failed, usage};
use std::env;
use std::path::{Path, PathBuf};

pub const LIBRARY: &str = "libhakmem.so";

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

    /// `libhakmem.so`: beside this command, in `../lib` when installed, or in the checkout's build.
    pub fn library(&self) -> Result<PathBuf> {
        let built = self
            .root
            .as_ref()
            .map(|root| root.join("build").join(LIBRARY));
        let installed =
            ["../lib", "../lib64"].map(|folder| self.binary_folder.join(folder).join(LIBRARY));
        [self.binary_folder.join(LIBRARY)]
            .into_iter()
            .chain(built)
            .chain(installed)
            .find_map(|path| path.canonicalize().ok())
            .ok_or_else(|| {
                usage!(
                    "{LIBRARY} is not beside {}: build it with make",
                    self.binary_folder.join("hakmem").display()
                )
            })
    }
}
