//! Compiles the library's race, so that `hakmem tune` decides as the learner does.

fn main() {
    for file in ["race.c", "race.h", "sequence.c", "sequence.h"] {
        println!("cargo::rerun-if-changed=../../src/policy/{file}");
    }
    cc::Build::new()
        .std("gnu11")
        .include("../../src")
        .file("../../src/policy/race.c")
        .file("../../src/policy/sequence.c")
        .compile("hakmem_race");
}
