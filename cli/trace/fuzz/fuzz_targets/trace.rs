//! Reading a file, whatever it contains, ends with events or with an error line.
#![no_main]

use hakmem_trace::format::{self, mend_checksums};
use hakmem_trace::order::Ordered;
use hakmem_trace::reader::Reader;
use libfuzzer_sys::fuzz_target;
use std::fs;

fuzz_target!(|bytes: &[u8]| {
    let mut file = format::MAGIC.to_vec();
    file.extend(format::VERSION.to_le_bytes());
    file.extend([0; 4]);
    file.extend(bytes);
    mend_checksums(&mut file);
    let path = format!("/dev/shm/hakmem-fuzz-{}", std::process::id());
    fs::write(&path, &file).expect("/dev/shm has room");
    let Ok(reader) = Reader::open(path.as_ref()) else {
        return;
    };
    let mut processes: Vec<u32> = reader.chunks.iter().map(|chunk| chunk.head.process).collect();
    processes.dedup();
    for process in processes {
        let _ = reader.stacks(process);
        let _ = reader.code(process);
        if let Ok(mut ordered) = Ordered::new(&reader, process) {
            while let Ok(Some(_)) = ordered.step() {}
        }
    }
});
