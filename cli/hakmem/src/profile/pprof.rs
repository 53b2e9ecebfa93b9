//! Writes a profile in the format of pprof (github.com/google/pprof, proto/profile.proto), compressed with gzip as its tools
//! expect.

use super::{Snapshot, Stack};
use crate::protobuf::Message;
use flate2::Compression;
use flate2::write::GzEncoder;
use hakmem_heap::code::Code;
use hakmem_heap::shown::{hexadecimal, shown};
use hakmem_trace::symbols::Place;
use std::collections::HashMap;
use std::io::Write;
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

/// The numbers of fields.
mod field {
    pub const SAMPLE_TYPE: u64 = 1;
    pub const SAMPLE: u64 = 2;
    pub const MAPPING: u64 = 3;
    pub const LOCATION: u64 = 4;
    pub const FUNCTION: u64 = 5;
    pub const TEXT: u64 = 6;
    pub const TIME_NS: u64 = 9;
    pub const DURATION_NS: u64 = 10;
    pub const PERIOD_TYPE: u64 = 11;
    pub const PERIOD: u64 = 12;
    pub const DEFAULT_TYPE: u64 = 14;
}

/// Every text once; the first is the empty text.
#[derive(Default)]
pub struct Texts {
    pub all: Vec<String>,
    places: HashMap<String, u64>,
}

impl Texts {
    pub fn place(&mut self, text: &str) -> u64 {
        if let Some(place) = self.places.get(text) {
            return *place;
        }
        let place = self.all.len() as u64;
        self.all.push(text.into());
        self.places.insert(text.into(), place);
        place
    }
}

fn value_type(texts: &mut Texts, kind: &str, unit: &str) -> Message {
    let mut message = Message::default();
    message.number(1, texts.place(kind));
    message.number(2, texts.place(unit));
    message
}

/// The same names as in Go's heap profiles, so that pprof and similar tools know them.
pub const TYPES: [(&str, &str); 4] = [
    ("alloc_objects", "count"),
    ("alloc_space", "bytes"),
    ("inuse_objects", "count"),
    ("inuse_space", "bytes"),
];

pub fn encode(snapshot: &Snapshot) -> Vec<u8> {
    let mut texts = Texts::default();
    texts.place("");
    let mut profile = Message::default();
    for (kind, unit) in TYPES {
        let part = value_type(&mut texts, kind, unit);
        profile.part(field::SAMPLE_TYPE, &part);
    }
    let places = Places::of(snapshot.stacks().flat_map(|stack| &stack.places));
    for stack in snapshot.stacks() {
        let mut sample = Message::default();
        let numbers = stack.places.iter().map(|place| places.location(place));
        sample.numbers(1, numbers);
        sample.numbers(2, values(stack).into_iter());
        profile.part(field::SAMPLE, &sample);
    }
    places.write(&mut profile, &mut texts);
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    profile.number(field::TIME_NS, now.map_or(0, |now| now.as_nanos() as u64));
    profile.number(field::DURATION_NS, (snapshot.seconds * 1e9) as u64);
    let period = value_type(&mut texts, "space", "bytes");
    profile.part(field::PERIOD_TYPE, &period);
    profile.number(field::PERIOD, snapshot.every);
    profile.number(field::DEFAULT_TYPE, texts.place("inuse_space"));
    for text in &texts.all {
        profile.bytes(field::TEXT, text.as_bytes());
    }
    compress(&profile.0)
}

/// The values of a stack, in the order of `TYPES`.
pub fn values(stack: &Stack) -> [u64; 4] {
    let (allocated, live) = (&stack.allocated, &stack.live);
    [allocated.blocks, allocated.bytes, live.blocks, live.bytes].map(|value| value.round() as u64)
}

impl Snapshot {
    /// The stacks with samples.
    pub fn stacks(&self) -> impl Iterator<Item = &Stack> {
        let stacks = self.sites.iter().flat_map(|site| &site.stacks);
        stacks.filter(|stack| stack.allocated.samples + stack.live.samples > 0)
    }
}

/// Mappings, and the places in them. Everything is numbered from 1.
pub struct Places<'a> {
    pub mapped: Vec<Mapped<'a>>,
    pub locations: Vec<&'a Place>,
    /// Pairs of name and file.
    pub functions: Vec<(&'a str, &'a str)>,
    numbers: HashMap<*const Place, u64>,
    function_numbers: HashMap<(&'a str, &'a str), u64>,
}

/// A mapping, and what its places tell about it.
pub struct Mapped<'a> {
    pub code: &'a Code,
    has_functions: bool,
    has_lines: bool,
    has_inlined: bool,
    has_main: bool,
}

impl<'a> Places<'a> {
    /// Readers take the first mapping for the program's own file: it is the one with main, or else the one at the lowest
    /// address.
    pub fn of(all: impl Iterator<Item = &'a Rc<Place>>) -> Places<'a> {
        let mut places = Places {
            mapped: Vec::new(),
            locations: Vec::new(),
            functions: Vec::new(),
            numbers: HashMap::new(),
            function_numbers: HashMap::new(),
        };
        for place in all {
            let next = places.locations.len() as u64 + 1;
            if *places.numbers.entry(Rc::as_ptr(place)).or_insert(next) == next {
                places.locations.push(place);
                places.map(place);
                places.number_functions(place);
            }
        }
        let order = |mapped: &Mapped| (!mapped.has_main, mapped.code.range.start);
        places.mapped.sort_by_key(order);
        places
    }

    fn map(&mut self, place: &'a Place) {
        let Some(code) = &place.code else {
            return;
        };
        let has_lines = place.frames.iter().all(|frame| parts(frame).2 > 0);
        let has_inlined = place.frames.len() > 1;
        let is_main = |frame: &String| matches!(parts(frame).0, "main" | "_start");
        let has_main = place.frames.iter().any(is_main);
        match self.mapped.iter_mut().find(|known| known.code == code) {
            Some(known) => {
                known.has_functions &= place.has_names;
                known.has_lines &= has_lines;
                known.has_inlined |= has_inlined;
                known.has_main |= has_main;
            }
            None => self.mapped.push(Mapped {
                code,
                has_functions: place.has_names,
                has_lines,
                has_inlined,
                has_main,
            }),
        }
    }

    fn number_functions(&mut self, place: &'a Place) {
        for frame in &place.frames {
            let (name, file, _) = parts(frame);
            let next = self.functions.len() as u64 + 1;
            let number = self.function_numbers.entry((name, file)).or_insert(next);
            if *number == next {
                self.functions.push((name, file));
            }
        }
    }

    /// Writes the place's frames into a location: each has a function and a line. Only the field's number differs between pprof
    /// and OTLP.
    pub fn write_frames(&self, place: &Place, location: &mut Message, field: u64) {
        for frame in &place.frames {
            let (name, file, line) = parts(frame);
            let number = self.function_numbers.get(&(name, file)).copied();
            let mut at = Message::default();
            at.number(1, number.unwrap_or(0));
            at.number(2, line);
            location.part(field, &at);
        }
    }

    /// 0: no mapping.
    pub fn mapping(&self, place: &Place) -> u64 {
        let mut mapped = (1..).zip(&self.mapped);
        let whose = mapped.find(|(_, mapped)| Some(mapped.code) == place.code.as_ref());
        whose.map_or(0, |(number, _)| number)
    }

    pub fn location(&self, place: &Rc<Place>) -> u64 {
        self.numbers.get(&Rc::as_ptr(place)).copied().unwrap_or(0)
    }

    fn write(&self, profile: &mut Message, texts: &mut Texts) {
        for (number, mapped) in (1..).zip(&self.mapped) {
            profile.part(field::MAPPING, &mapping(texts, number, mapped));
        }
        for (number, (name, file)) in (1..).zip(&self.functions) {
            profile.part(field::FUNCTION, &function(texts, number, name, file));
        }
        for (number, place) in (1..).zip(&self.locations) {
            let mut location = Message::default();
            location.number(1, number);
            location.number(2, self.mapping(place));
            location.number(3, place.address);
            self.write_frames(place, &mut location, 4);
            profile.part(field::LOCATION, &location);
        }
    }
}

/// Tools do not look up what a mapping claims to have, so all of its places must have it.
fn mapping(texts: &mut Texts, number: u64, mapped: &Mapped) -> Message {
    let code = mapped.code;
    let id = code.identity.build_id().map(hexadecimal);
    let mut message = Message::default();
    message.number(1, number);
    message.number(2, code.range.start);
    message.number(3, code.range.end);
    message.number(4, code.offset.unwrap_or(0));
    message.number(5, texts.place(&shown(&code.path)));
    message.number(6, id.map_or(0, |id| texts.place(&id)));
    message.number(7, mapped.has_functions.into());
    message.number(8, (mapped.has_functions && mapped.has_lines).into());
    message.number(9, (mapped.has_functions && mapped.has_lines).into());
    message.number(10, (mapped.has_functions && mapped.has_inlined).into());
    message
}

fn function(texts: &mut Texts, number: u64, name: &str, file: &str) -> Message {
    let mut message = Message::default();
    message.number(1, number);
    message.number(2, texts.place(name));
    message.number(3, texts.place(name));
    message.number(4, texts.place(file));
    message
}

/// The function, its file and the line of "name (file.c:12)"; "name (library.so)" has no line.
fn parts(frame: &str) -> (&str, &str, u64) {
    let parts = frame.strip_suffix(')');
    let Some((name, place)) = parts.and_then(|text| text.rsplit_once(" (")) else {
        return (frame, "", 0);
    };
    let line = place.rsplit_once(':');
    match line.and_then(|(file, line)| Some((file, line.parse().ok()?))) {
        Some((file, line)) => (name, file, line),
        None => (name, place, 0),
    }
}

fn compress(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    match encoder.write_all(bytes).and_then(|()| encoder.finish()) {
        Ok(compressed) => compressed,
        Err(_) => bytes.to_vec(), // memory writes do not fail; readers also accept uncompressed data
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_has_its_line_apart() {
        assert_eq!(parts("f(int) (a.c:12)"), ("f(int)", "a.c", 12));
        assert_eq!(parts("f (lib:3.so)"), ("f", "lib:3.so", 0));
        assert_eq!(parts("lib.so+0x12"), ("lib.so+0x12", "", 0));
    }

    #[test]
    fn a_text_stands_once() {
        let mut texts = Texts::default();
        assert_eq!(
            [
                texts.place(""),
                texts.place("a"),
                texts.place("b"),
                texts.place("a")
            ],
            [0, 1, 2, 1]
        );
    }
}
