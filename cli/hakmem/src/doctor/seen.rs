//! For commands that show a heap: finds out whose it is. They show hakmem's heap themselves; another allocator's heap is a
//! visit, and the words for it are here.

use super::picture;
use super::words::{besides, how_it_was_read, resident, tables, totals, uses};
use super::{Patient, Visit};
use crate::target::Opened;
use hakmem_heap::heap::Heap;
use hakmem_lab::error::Result;
use hakmem_lab::render::number::{bytes, grouped};
use hakmem_lab::render::{Form, Tone};

pub enum Seen {
    Ours { opened: Opened, heap: Heap },
    Others(Box<Visit>),
}

impl Seen {
    /// If no known heap is found, returns the error for programs without hakmem.
    pub fn of(opened: Opened, with_map: bool) -> Result<Seen> {
        if opened.uses_hakmem() {
            let heap = opened.heap()?;
            return Ok(Seen::Ours { opened, heap });
        }
        let refused = opened.heap().err();
        let patient = Patient::of(opened);
        let patient = if with_map {
            patient.with_map()
        } else {
            patient
        };
        let visit = Visit::pay(&patient, None)?;
        match refused {
            Some(error) if !visit.has_heap() => Err(error),
            _ => Ok(Seen::Others(Box::new(visit))),
        }
    }
}

fn parts(visit: &Visit, form: Form, middle: Vec<String>) -> String {
    let mut parts = vec![format!("{}\n{}", form.strong(&visit.title), uses(visit))];
    parts.extend(middle);
    parts.push(form.toned(&how_it_was_read(visit), Tone::Faint));
    parts.join("\n\n") + "\n"
}

/// The heap's figures.
pub fn stats(visit: &Visit, form: Form) -> String {
    let mut middle = vec![totals(visit).render(form)];
    let more = tables(visit).into_iter();
    middle.extend(more.map(|(_, table)| table.render(form)));
    parts(visit, form, middle)
}

/// All resident memory.
pub fn ledger(visit: &Visit, form: Form) -> String {
    let mut table = resident(visit, form);
    for line in besides(visit) {
        table += &format!("\n{line}");
    }
    parts(visit, form, vec![table])
}

/// "glibc 2.36"
pub fn name(visit: &Visit) -> String {
    let malloc = visit.allocators.iter().find(|used| used.is_malloc);
    match (malloc, visit.now.others.first()) {
        (Some(used), _) => used.name(),
        (None, Some(heap)) => heap.allocator.clone(),
        (None, None) => "glibc".into(),
    }
}

/// "glibc 2.36: 15.8 MiB in use in 7,699 blocks, 250 MiB free, of 266 MiB resident"
pub fn summary(visit: &Visit) -> String {
    let look = visit.now.look();
    format!(
        "{}: {} in use in {} blocks, {} free, of {} resident",
        name(visit),
        bytes(look.live()),
        grouped(look.blocks()),
        bytes(look.free()),
        bytes(visit.now.ledger.all_heap_bytes())
    )
}

/// A picture of at most `lines` lines.
pub fn map(visit: &Visit, form: Form, lines: usize) -> String {
    parts(
        visit,
        form,
        vec![picture::draw(&visit.now.map, form, lines)],
    )
}
