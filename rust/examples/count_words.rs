//! Counts the words of its input, and shows at the end what its heap consists of:
//!
//!     cargo run --release --example count_words < README.md

use std::collections::HashMap;
use std::io::{BufRead, stdin};

#[global_allocator]
static ALLOCATOR: hakmem::Hakmem = hakmem::Hakmem;

fn main() {
    let mut counts: HashMap<String, u64> = HashMap::new();
    for line in stdin().lock().lines().map_while(Result::ok) {
        for word in line.split_whitespace() {
            *counts.entry(word.to_lowercase()).or_default() += 1;
        }
    }
    let mut words: Vec<_> = counts.iter().collect();
    words.sort_by_key(|(word, count)| (u64::MAX - **count, *word));
    for (word, count) in words.iter().take(10) {
        println!("{count:>6} {word}");
    }
    eprintln!("hakmem {}: {}", hakmem::version(), hakmem::stats_json());
}
