//! One call of malloc's family, as recorded in a trace.

/// The function that was called. The numbers are those of `record/channel.h` and of the trace format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    Malloc = 1,
    Calloc = 2,
    /// Any of the functions that take an alignment.
    Aligned = 3,
    Free = 4,
    /// The start of a realloc, with the block that was passed to it.
    ReallocFrom = 5,
    /// The end of a realloc, with the block that it returned. Follows its `ReallocFrom` in the same thread.
    ReallocTo = 6,
}

impl Kind {
    pub const ALL: [Kind; 6] = [
        Kind::Malloc,
        Kind::Calloc,
        Kind::Aligned,
        Kind::Free,
        Kind::ReallocFrom,
        Kind::ReallocTo,
    ];

    #[inline]
    pub fn from_number(number: u8) -> Option<Kind> {
        Some(match number {
            1 => Kind::Malloc,
            2 => Kind::Calloc,
            3 => Kind::Aligned,
            4 => Kind::Free,
            5 => Kind::ReallocFrom,
            6 => Kind::ReallocTo,
            _ => return None,
        })
    }

    /// Does it return a block? Other kinds take one.
    pub fn gives(self) -> bool {
        !matches!(self, Kind::Free | Kind::ReallocFrom)
    }

    pub fn name(self) -> &'static str {
        match self {
            Kind::Malloc => "malloc",
            Kind::Calloc => "calloc",
            Kind::Aligned => "aligned",
            Kind::Free => "free",
            Kind::ReallocFrom => "realloc_from",
            Kind::ReallocTo => "realloc",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// In units of the trace's clock; not before the thread's previous event.
    pub time: u64,
    /// The block that was returned or freed; 0 for a failed allocation.
    pub address: u64,
    /// The requested size; 0 if a block is freed.
    pub size: u64,
    /// The call stack's number within the process; 0: not recorded.
    pub stack: u32,
    pub kind: Kind,
    /// The log2 of the alignment; only for `Aligned`.
    pub alignment_log2: u8,
}
