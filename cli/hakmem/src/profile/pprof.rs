//! A profile in the format of pprof (github.com/google/pprof, proto/profile.proto), compressed as its tools
//! like it. Only what is used of protocol buffers: numbers, and parts with a length.

use super::Snapshot;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::collections::HashMap;
use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

/// Numbers of fields.
mod field {
    pub const SAMPLE_TYPE: u64 = 1;
    pub const SAMPLE: u64 = 2;
    pub const LOCATION: u64 = 4;
    pub const FUNCTION: u64 = 5;
    pub const TEXT: u64 = 6;
    pub const TIME_NS: u64 = 9;
    pub const DURATION_NS: u64 = 10;
    pub const PERIOD_TYPE: u64 = 11;
    pub const PERIOD: u64 = 12;
    pub const DEFAULT_TYPE: u64 = 14;
}

#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7F) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn number(&mut self, field: u64, value: u64) {
        if value != 0 {
            self.varint(field << 3);
            self.varint(value);
        }
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn part(&mut self, field: u64, part: &Message) {
        self.bytes(field, &part.0);
    }

    fn numbers(&mut self, field: u64, values: impl Iterator<Item = u64>) {
        let mut packed = Message::default();
        values.for_each(|value| packed.varint(value));
        self.part(field, &packed);
    }
}

/// Every text once; the first is the empty one.
#[derive(Default)]
struct Texts {
    all: Vec<String>,
    places: HashMap<String, u64>,
}

impl Texts {
    fn place(&mut self, text: &str) -> u64 {
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

/// The names that Go's own heap profiles have, so that pprof and what understands it know them.
const TYPES: [(&str, &str); 4] = [
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
    let mut functions: HashMap<&str, u64> = HashMap::new();
    for site in &snapshot.sites {
        let mut places = Vec::new();
        for frame in &site.frames {
            let next = functions.len() as u64 + 1;
            let number = *functions.entry(frame).or_insert(next);
            if number == next {
                add_function(&mut profile, &mut texts, number, frame);
            }
            places.push(number);
        }
        let mut sample = Message::default();
        sample.numbers(1, places.into_iter());
        let values = [
            site.allocated.blocks,
            site.allocated.bytes,
            site.live.blocks,
            site.live.bytes,
        ];
        sample.numbers(2, values.iter().map(|value| value.round() as u64));
        profile.part(field::SAMPLE, &sample);
    }
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

/// A function, and the one place in it that we speak of, under the same number. "name (file.c:12)" has its
/// line apart.
fn add_function(profile: &mut Message, texts: &mut Texts, number: u64, frame: &str) {
    let (name, place) = match frame
        .strip_suffix(')')
        .and_then(|text| text.rsplit_once(" ("))
    {
        Some((name, place)) => (name, place),
        None => (frame, ""),
    };
    let (file, line) = match place.rsplit_once(':') {
        Some((file, line)) => (file, line.parse().unwrap_or(0)),
        None => (place, 0),
    };
    let mut function = Message::default();
    function.number(1, number);
    function.number(2, texts.place(name));
    function.number(3, texts.place(name));
    function.number(4, texts.place(file));
    profile.part(field::FUNCTION, &function);
    let mut at = Message::default();
    at.number(1, number);
    at.number(2, line);
    let mut location = Message::default();
    location.number(1, number);
    location.part(4, &at);
    profile.part(field::LOCATION, &location);
}

fn compress(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    match encoder.write_all(bytes).and_then(|()| encoder.finish()) {
        Ok(compressed) => compressed,
        Err(_) => bytes.to_vec(), // into memory that does not fail; and uncompressed it is read as well
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_short_as_they_can_be() {
        let mut message = Message::default();
        message.number(1, 1);
        message.number(2, 300);
        message.number(3, 0); // as good as absent
        message.bytes(4, b"ab");
        assert_eq!(message.0, [8, 1, 16, 0xAC, 2, 0x22, 2, b'a', b'b']);
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
