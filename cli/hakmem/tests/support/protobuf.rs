//! Reads protocol buffers.

/// A message's fields: a number's value, or a part's bytes.
pub type Message = Vec<(u64, u64, Vec<u8>)>;

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let byte = bytes[0];
        *bytes = &bytes[1..];
        value |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            break;
        }
    }
    value
}

pub fn message(mut bytes: &[u8]) -> Message {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        if key & 7 == 1 {
            let (fixed, rest) = bytes.split_first_chunk().unwrap();
            fields.push((key >> 3, u64::from_le_bytes(*fixed), Vec::new()));
            bytes = rest;
            continue;
        }
        let value = varint(&mut bytes);
        let length = match key & 7 {
            0 => 0,
            2 => usize::try_from(value).unwrap(),
            other => panic!("type {other}"),
        };
        fields.push((key >> 3, value, bytes[..length].to_vec()));
        bytes = &bytes[length..];
    }
    fields
}

pub fn number(message: &Message, field: u64) -> u64 {
    let found = message.iter().find(|(number, ..)| *number == field);
    found.map_or(0, |(_, value, _)| *value)
}

pub fn parts(of: &Message, field: u64) -> Vec<Message> {
    let found = of.iter().filter(|(number, ..)| *number == field);
    found.map(|(.., bytes)| message(bytes)).collect()
}

/// The first field with this number, as text.
pub fn content(of: &Message, field: u64) -> String {
    let found = of.iter().find(|(number, ..)| *number == field);
    found.map_or(String::new(), |(.., bytes)| {
        String::from_utf8_lossy(bytes).into_owned()
    })
}

pub fn texts(of: &Message, field: u64) -> Vec<String> {
    let found = of.iter().filter(|(number, ..)| *number == field);
    found
        .map(|(.., bytes)| String::from_utf8(bytes.clone()).unwrap())
        .collect()
}
