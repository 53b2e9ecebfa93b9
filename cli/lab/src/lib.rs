//! What measuring an allocator takes, apart from any command line.

pub mod allocator;
pub mod answer;
pub mod c_library;
pub mod campaign;
pub mod control;
pub mod control_group;
pub mod declared;
pub mod document;
pub mod elf;
pub mod error;
pub mod executable;
pub mod family;
pub mod fingerprint;
pub mod history;
pub mod inherited;
pub mod interrupt;
pub mod launch;
pub mod machine;
pub mod meter;
pub mod peers;
pub mod places;
pub mod probe;
pub mod process;
pub mod proof;
pub mod race;
pub mod render;
pub mod statistics;
pub mod summary;
pub mod tournament;
pub mod tree;
pub mod trust;
pub mod watch;
pub mod whole_file;
pub mod workload;

pub use hakmem_heap::input;
