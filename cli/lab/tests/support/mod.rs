//! Small programs and libraries, compiled for a test.

use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

pub struct Workshop {
    folder: TempDir,
}

impl Workshop {
    pub fn open() -> Workshop {
        Workshop {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Compiles C source with further compiler arguments.
    pub fn compile(&self, name: &str, source: &str, arguments: &[&str]) -> PathBuf {
        let file = self.folder().join(format!("{name}.c"));
        std::fs::write(&file, source).unwrap();
        let output = self.folder().join(name);
        let made = Command::new("cc")
            .args(["-O1", "-w", "-fno-builtin", "-o"])
            .args([&output, &file])
            .args(arguments)
            .current_dir(self.folder())
            .status()
            .unwrap();
        assert!(made.success(), "{name} does not compile");
        output
    }
}
