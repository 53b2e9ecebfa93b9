//! Adds up sites by function, line, file, module or thread.

use super::Site;
use super::threads::by_thread;
use crate::frames::{By, Folded};
use hakmem_heap::code_files::file_name;
use hakmem_trace::symbols::Place;
use std::collections::HashMap;
use std::rc::Rc;

/// One site for each group; by stack, sites stay as they are.
pub fn grouped(sites: &[&Site], by: By, folded: &Folded) -> Vec<Site> {
    if by == By::Thread {
        return by_thread(sites);
    }
    if by == By::Stack {
        return sites.iter().copied().cloned().collect();
    }
    let mut groups: Vec<Site> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    for site in sites {
        let label = folded.label(by, &site.frames, |frame| {
            module(&site.stacks.first()?.places, frame)
        });
        match known.get(&label) {
            Some(index) => groups[*index].add(site),
            None => {
                known.insert(label.clone(), groups.len());
                groups.push(Site {
                    frames: vec![label],
                    stacks: Vec::new(),
                    ..(*site).clone()
                });
            }
        }
    }
    groups
}

/// The module of a frame of these places.
pub fn module(places: &[Rc<Place>], frame: usize) -> Option<String> {
    let mut places = places.iter();
    let mut end = 0;
    let place = places.find(|place| {
        end += place.frames.len();
        frame < end
    })?;
    Some(file_name(&place.code.as_ref()?.path))
}
