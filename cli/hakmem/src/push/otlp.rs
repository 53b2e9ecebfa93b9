//! A profile in OpenTelemetry's format (opentelemetry-proto, profiles/v1development, as of 1.9 and later): tables of what
//! samples share, whose entry 0 is empty, and a profile for each kind of figure.

use super::labels::{Labels, as_attribute};
use crate::profile::Snapshot;
use crate::profile::pprof::{Places, TYPES, Texts, values};
use crate::protobuf::Message;
use hakmem_heap::shown::{hexadecimal, shown};

/// The numbers of the dictionary's tables.
mod table {
    pub const MAPPING: u64 = 1;
    pub const LOCATION: u64 = 2;
    pub const FUNCTION: u64 = 3;
    pub const LINK: u64 = 4;
    pub const TEXT: u64 = 5;
    pub const ATTRIBUTE: u64 = 6;
    pub const STACK: u64 = 7;
}

pub fn request(snapshot: &Snapshot, labels: &Labels, begin_ns: u64) -> Vec<u8> {
    let stacks: Vec<_> = snapshot.stacks().collect();
    let places = Places::of(stacks.iter().flat_map(|stack| &stack.places));
    let mut texts = Texts::default();
    let mut dictionary = dictionary(&places, &mut texts);
    dictionary.part(table::STACK, &Message::default());
    for stack in &stacks {
        let mut of = Message::default();
        let numbers = stack.places.iter().map(|place| places.location(place));
        of.numbers(1, numbers);
        dictionary.part(table::STACK, &of);
    }
    let mut scope = Message::default();
    scope.bytes(1, b"hakmem");
    scope.bytes(2, env!("CARGO_PKG_VERSION").as_bytes());
    let mut of_scope = Message::default();
    of_scope.part(1, &scope);
    for (which, kind) in TYPES.iter().enumerate() {
        let mut profile = Message::default();
        profile.part(1, &value_type(&mut texts, *kind));
        for (number, stack) in (1..).zip(&stacks) {
            let value = values(stack)[which];
            if value > 0 {
                let mut sample = Message::default();
                sample.number(1, number);
                sample.numbers(4, [value].into_iter());
                profile.part(2, &sample);
            }
        }
        profile.fixed(3, begin_ns);
        profile.number(4, (snapshot.seconds * 1e9) as u64);
        profile.part(5, &value_type(&mut texts, ("space", "bytes")));
        profile.number(6, snapshot.every);
        profile.bytes(7, &fastrand::u128(1..).to_le_bytes());
        of_scope.part(2, &profile);
    }
    for text in &texts.all {
        dictionary.bytes(table::TEXT, text.as_bytes());
    }
    let mut resource = Message::default();
    for (name, value) in labels.all() {
        resource.part(1, &attribute(as_attribute(name), &text(value)));
    }
    let mut pid = Message::default();
    pid.number(3, labels.pid as u64);
    resource.part(1, &attribute("process.pid", &pid));
    let mut of_resource = Message::default();
    of_resource.part(1, &resource);
    of_resource.part(2, &of_scope);
    let mut request = Message::default();
    request.part(1, &of_resource);
    request.part(2, &dictionary);
    request.0
}

/// The tables except stacks and texts.
fn dictionary(places: &Places, texts: &mut Texts) -> Message {
    let nothing = Message::default();
    let mut dictionary = Message::default();
    texts.place("");
    for of in [
        table::MAPPING,
        table::LOCATION,
        table::FUNCTION,
        table::LINK,
        table::ATTRIBUTE,
    ] {
        dictionary.part(of, &nothing);
    }
    let mut attributes = 0;
    for mapped in &places.mapped {
        let code = mapped.code;
        let mut mapping = Message::default();
        mapping.number(1, code.range.start);
        mapping.number(2, code.range.end);
        mapping.number(3, code.offset.unwrap_or(0));
        mapping.number(4, texts.place(&shown(&code.path)));
        if let Some(id) = code.identity.build_id() {
            let mut build_id = Message::default();
            build_id.number(1, texts.place("process.executable.build_id.gnu"));
            build_id.part(2, &text(&hexadecimal(id)));
            dictionary.part(table::ATTRIBUTE, &build_id);
            attributes += 1;
            mapping.numbers(5, [attributes].into_iter());
        }
        dictionary.part(table::MAPPING, &mapping);
    }
    for (name, file) in &places.functions {
        let mut function = Message::default();
        function.number(1, texts.place(name));
        function.number(2, texts.place(name));
        function.number(3, texts.place(file));
        dictionary.part(table::FUNCTION, &function);
    }
    for place in &places.locations {
        let mut location = Message::default();
        location.number(1, places.mapping(place));
        location.number(2, place.address);
        places.write_frames(place, &mut location, 3);
        dictionary.part(table::LOCATION, &location);
    }
    dictionary
}

fn value_type(texts: &mut Texts, (kind, unit): (&str, &str)) -> Message {
    let mut message = Message::default();
    message.number(1, texts.place(kind));
    message.number(2, texts.place(unit));
    message
}

fn text(value: &str) -> Message {
    let mut message = Message::default();
    message.bytes(1, value.as_bytes());
    message
}

fn attribute(name: &str, value: &Message) -> Message {
    let mut message = Message::default();
    message.bytes(1, name.as_bytes());
    message.part(2, value);
    message
}
