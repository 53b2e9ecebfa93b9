//! Other allocators: where their libraries are, and how they are built.

pub mod build;
mod recipes;

use crate::error::Result;
use crate::failed;
use hakmem_heap::shown::ShownPath;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

const FILE: &str = "peers.json";

/// A peer as in `peers.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    pub version: String,
    /// The crate that it was built from; empty for a library that a user added.
    #[serde(rename = "crate", default)]
    pub source: String,
    #[serde(default)]
    pub compiler: String,
    /// Relative to the manifest's folder, or absolute.
    pub file: PathBuf,
    pub sha256: String,
    /// The variables with which its programs run best.
    #[serde(default)]
    pub environment: IndexMap<String, String>,
    /// Changes with everything that the build depends on; empty for a library that a user added.
    #[serde(default)]
    pub key: String,
}

/// All peers that exist, in the order of a table's columns.
#[derive(Debug, Default)]
pub struct Manifest {
    pub peers: IndexMap<String, Peer>,
}

impl Manifest {
    pub fn load(folder: &Path) -> Result<Manifest> {
        let path = folder.join(FILE);
        if !path.exists() {
            return Ok(Manifest::default());
        }
        let text = fs::read(&path).map_err(|error| failed!("{}: {error}", path.shown()))?;
        let peers = serde_json::from_slice(&text).map_err(|error| {
            failed!(
                "{}: {error}; delete it and run 'hakmem peers install'",
                path.shown()
            )
        })?;
        Ok(Manifest { peers })
    }

    pub fn store(&self, folder: &Path) -> Result<()> {
        let path = folder.join(FILE);
        let temporary = folder.join("peers.json.new");
        let text = serde_json::to_string_pretty(&self.peers)
            .map_err(|error| failed!("{}: {error}", path.shown()))?;
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&temporary, text + "\n"))
            .and_then(|()| fs::rename(&temporary, &path))
            .map_err(|error| failed!("{}: {error}", path.shown()))
    }
}
