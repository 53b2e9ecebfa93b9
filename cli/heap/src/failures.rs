//! Refused allocations: the latest of them, and why they were refused.

use crate::control::Control;
use crate::error::Result;
use crate::fields::{Failure as FailureFields, Failures as FailuresFields};
use crate::memory::Memory;
use serde::Serialize;

/// Limit: more failures than any release keeps.
const KEPT_MAX: usize = 1 << 16;

#[derive(Clone, Debug, Default, Serialize)]
pub struct Failures {
    /// All failures since the start of the process.
    pub count: u64,
    /// The failures that the process still keeps, the oldest first.
    pub latest: Vec<Failure>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Failure {
    /// The first failure has number 1.
    pub number: u64,
    /// Since 1970.
    pub date_ns: u64,
    pub thread_id: u64,
    pub bytes: u64,
    pub alignment: u64,
    /// The return address of the program's call.
    pub site: u64,
    /// The same address with the number of its file.
    #[serde(skip)]
    pub place: u64,
    /// "threshold", "exhaustion", "map_fail" or "injected"; a number if this release does not know the kind.
    pub kind: String,
    /// The kernel's error, 0 if it was not asked; and how many bytes it was asked for.
    pub error: u64,
    pub asked_bytes: u64,
    /// The limit that was reached, if it is known; its value, and how much of it was in use.
    pub limit: Option<String>,
    pub limit_value: u64,
    pub limit_use: u64,
}

impl Failures {
    pub fn read(memory: &dyn Memory) -> Result<Failures> {
        Failures::read_by(memory, &Control::find(memory)?)
    }

    pub fn read_by(memory: &dyn Memory, control: &Control) -> Result<Failures> {
        let all = FailuresFields::find(control)?;
        let root = control.root("hak_failures")?;
        let record = memory.read_vec(root.address, all.size)?;
        let one = FailureFields::find(control)?;
        let parts =
            (0..all.latest.count.min(KEPT_MAX)).map(|index| all.latest.part(&record, index));
        let mut latest: Vec<Failure> = parts
            .filter(|part| one.number.number(part) != 0)
            .map(|part| failure(control, &one, part))
            .collect();
        latest.sort_by_key(|failure| failure.number);
        Ok(Failures {
            count: all.count.number(&record),
            latest,
        })
    }
}

fn failure(control: &Control, fields: &FailureFields, part: &[u8]) -> Failure {
    let kind = fields.kind.number(part);
    let limit = fields.limit.number(part);
    Failure {
        number: fields.number.number(part),
        date_ns: fields.date_ns.number(part),
        thread_id: fields.thread_id.number(part),
        bytes: fields.bytes.number(part),
        alignment: fields.alignment.number(part),
        site: fields.site.number(part),
        place: fields.place.number(part),
        kind: control
            .word("failure_", kind)
            .map_or(kind.to_string(), str::to_string),
        error: fields.error.number(part),
        asked_bytes: fields.asked_bytes.number(part),
        limit: control.word("limit_", limit).map(str::to_string),
        limit_value: fields.limit_value.number(part),
        limit_use: fields.limit_use.number(part),
    }
}
