//! Frames of a Python program: the functions that the process has noted, and how places refer to them.

use crate::control::Control;
use crate::error::Result;
use crate::fields::{Function as FunctionFields, FunctionTable, Functions as FunctionsFields};
use crate::memory::{Memory, read_addresses, read_all};
use std::collections::HashMap;

/// Limits: more than any release keeps.
const FUNCTIONS_MAX: usize = 1 << 20;
const TEXT_MAX: usize = 1 << 12;

/// A function of the Python program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Function {
    pub file: String,
    /// With its enclosing classes and functions: "Orders.export", "main.<locals>.<lambda>".
    pub name: String,
    pub first_line: u64,
}

/// A function and its current line when a sample was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// A key of `Python::functions`; 0: there was no room for the function.
    pub function: u64,
    /// 0: unknown.
    pub line: u64,
    /// The caller is native code, not another function of the program.
    pub is_called: bool,
    /// It had callers that were not recorded.
    pub is_cut: bool,
}

/// How a place encodes a function.
#[derive(Clone, Copy, Debug)]
struct Bits {
    place_log2: u64,
    of_function: u64,
    line: u64,
    number: u64,
    called: u64,
    cut: u64,
}

/// Decodes places that are functions.
#[derive(Clone, Debug, Default)]
pub struct Python {
    /// None: the library knows no functions.
    bits: Option<Bits>,
    functions: HashMap<u64, Function>,
}

impl Python {
    /// How places are encoded; without the functions themselves.
    pub fn of(control: &Control) -> Result<Python> {
        if control.root("hak_functions").is_err() {
            return Ok(Python::default());
        }
        let bits = Bits {
            place_log2: control.constant("place_code_log2")?,
            of_function: control.constant("place_of_function")?,
            line: control.constant("function_line_bits")?,
            number: control.constant("function_number_bits")?,
            called: control.constant("function_called_bit")?,
            cut: control.constant("function_cut_bit")?,
        };
        Ok(Python {
            bits: Some(bits),
            functions: HashMap::new(),
        })
    }

    /// With all functions that the process has noted so far.
    pub fn with_functions(&self, control: &Control, memory: &dyn Memory) -> Result<Python> {
        let Ok(root) = control.root("hak_functions") else {
            return Ok(Python::default());
        };
        let all = FunctionsFields::find(control)?;
        let entries = FunctionTable::find(control)?.entries;
        let record = memory.read_vec(root.address, all.size)?;
        let count = usize::try_from(all.count.number(&record)).unwrap_or(0);
        let count = count
            .saturating_add(1)
            .min(entries.count)
            .min(FUNCTIONS_MAX);
        let entries = match all.table.number(&record) {
            0 => Vec::new(),
            table => read_addresses(memory, table.wrapping_add(entries.offset as u64), count)?,
        };
        Ok(Python {
            bits: self.bits,
            functions: functions(memory, &FunctionFields::find(control)?, &entries),
        })
    }

    /// The function at a place; None: the place is a code address.
    pub fn frame(&self, place: u64) -> Option<Frame> {
        let bits = self.bits?;
        let part = |from: u64, count: u64| place >> from.min(63) & ((1 << count.min(63)) - 1);
        (part(bits.place_log2, 16) == bits.of_function).then(|| Frame {
            function: part(bits.line, bits.number),
            line: part(0, bits.line),
            is_called: part(bits.called, 1) != 0,
            is_cut: part(bits.cut, 1) != 0,
        })
    }

    pub fn function(&self, frame: Frame) -> Option<&Function> {
        self.functions.get(&frame.function)
    }
}

/// Reads all functions: first their text lengths, then the texts. A record ends with its text.
fn functions(
    memory: &dyn Memory,
    fields: &FunctionFields,
    entries: &[(u64, u64)],
) -> HashMap<u64, Function> {
    let heads = read_all(
        memory,
        entries
            .iter()
            .map(|(_, address)| (*address, fields.text.offset)),
    );
    let texts = entries.iter().zip(&heads).map(|((_, address), head)| {
        let bytes = head.as_ref().map_or(0, |head| {
            fields.file_bytes.number(head) + fields.name_bytes.number(head)
        });
        let bytes = usize::try_from(bytes).unwrap_or(0).min(TEXT_MAX);
        (address + fields.text.offset as u64, bytes)
    });
    let texts = read_all(memory, texts);
    let all = entries.iter().zip(heads.iter().zip(texts));
    all.filter_map(|((number, _), (head, text))| {
        let (head, text) = (head.as_ref()?, text?);
        let bytes = usize::try_from(fields.file_bytes.number(head)).ok()?;
        let (file, name) = text.split_at_checked(bytes)?;
        let function = Function {
            file: String::from_utf8_lossy(file).into_owned(),
            name: String::from_utf8_lossy(name).into_owned(),
            first_line: fields.first_line.number(head),
        };
        Some((*number, function))
    })
    .collect()
}
