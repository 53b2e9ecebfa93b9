//! The parts of protocol buffers that are needed here: numbers, and fields with a length.

#[derive(Default)]
pub struct Message(pub Vec<u8>);

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const LENGTH: u64 = 2;
const FIXED32: u64 = 5;

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7F) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    pub fn number(&mut self, field: u64, value: u64) {
        if value != 0 {
            self.varint(field << 3 | VARINT);
            self.varint(value);
        }
    }

    pub fn fixed(&mut self, field: u64, value: u64) {
        self.varint(field << 3 | FIXED64);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | LENGTH);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    pub fn part(&mut self, field: u64, part: &Message) {
        self.bytes(field, &part.0);
    }

    pub fn numbers(&mut self, field: u64, values: impl Iterator<Item = u64>) {
        let mut packed = Message::default();
        values.for_each(|value| packed.varint(value));
        self.part(field, &packed);
    }
}

/// A field that was read.
pub enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message, as far as it can be read.
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    fn varint(&mut self) -> Option<u64> {
        let length = self.0.iter().position(|byte| byte & 0x80 == 0)? + 1;
        let (digits, rest) = self.0.split_at(length);
        self.0 = rest;
        let digits = digits.iter().rev().take(10);
        Some(digits.fold(0, |value, byte| value << 7 | u64::from(byte & 0x7F)))
    }

    fn take(&mut self, length: u64) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        Some(bytes)
    }

    /// The value of the first field with this number: a part's content, or a number.
    pub fn find(mut self, wanted: u64) -> Option<Value<'a>> {
        self.find_map(|(field, value)| (field == wanted).then_some(value))
    }

    pub fn number(self, wanted: u64) -> u64 {
        match self.find(wanted) {
            Some(Value::Number(value)) => value,
            _ => 0,
        }
    }

    pub fn part(self, wanted: u64) -> &'a [u8] {
        match self.find(wanted) {
            Some(Value::Bytes(bytes)) => bytes,
            _ => &[],
        }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (u64, Value<'a>);

    fn next(&mut self) -> Option<(u64, Value<'a>)> {
        let key = self.varint()?;
        let value = match key & 7 {
            VARINT => Value::Number(self.varint()?),
            FIXED64 => Value::Bytes(self.take(8)?),
            LENGTH => {
                let length = self.varint()?;
                Value::Bytes(self.take(length)?)
            }
            FIXED32 => Value::Bytes(self.take(4)?),
            _ => return None,
        };
        Some((key >> 3, value))
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
        message.number(3, 0); // the same as an absent field
        message.bytes(4, b"ab");
        assert_eq!(message.0, [8, 1, 16, 0xAC, 2, 0x22, 2, b'a', b'b']);
    }

    #[test]
    fn what_was_written_is_read() {
        let mut message = Message::default();
        message.number(1, u64::MAX);
        message.fixed(2, 5);
        message.bytes(3, b"abc");
        message.number(17, 300);
        let fields = || Fields(&message.0);
        assert_eq!((fields().number(1), fields().number(17)), (u64::MAX, 300));
        assert_eq!(fields().part(2), 5u64.to_le_bytes());
        assert_eq!(fields().part(3), b"abc");
        assert_eq!((fields().number(9), fields().part(9)), (0, &b""[..]));
        let cut = Fields(&message.0[..message.0.len() - 1]);
        assert_eq!(cut.count(), 3);
    }
}
