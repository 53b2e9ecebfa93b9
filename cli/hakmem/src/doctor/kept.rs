//! The part of a visit that a snapshot keeps. The judgement is left out, as it follows from the rest.

use super::which::Used;
use super::{Moment, Visit};
use hakmem_foreign::map::Map;
use hakmem_heap::ledger::Account;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
pub struct Kept {
    pub pid: Option<i32>,
    pub is_core: bool,
    #[serde(default)]
    pub cut: Option<String>,
    pub allocators: Vec<Used>,
    pub runtimes: Vec<String>,
    pub threads: Option<u64>,
    pub read_ms: f64,
    now: Moment,
    map: Map,
}

impl Kept {
    pub fn of(visit: Visit) -> Kept {
        Kept {
            pid: visit.pid,
            is_core: visit.is_core,
            cut: visit.cut,
            allocators: visit.allocators,
            runtimes: visit.runtimes,
            threads: visit.threads,
            read_ms: visit.read_ms,
            map: visit.now.map.clone(),
            now: visit.now,
        }
    }

    pub fn account(&self) -> Option<&Account> {
        self.now.hakmem.as_ref()
    }

    pub fn moment(&self) -> Moment {
        Moment {
            map: self.map.clone(),
            ..self.now.clone()
        }
    }
}
