// Four threads that make strings and pass them on; then waits until its input ends.
use std::io::Read;
use std::sync::mpsc;
use std::thread;

fn main() {
    let (sender, receiver) = mpsc::sync_channel::<Vec<u8>>(1000);
    let makers: Vec<_> = (0..4usize)
        .map(|maker| {
            let sender = sender.clone();
            thread::spawn(move || {
                for n in 0..50_000usize {
                    sender.send(vec![(n % 251) as u8; 600 + (n * (maker + 7)) % 4400]).unwrap();
                }
            })
        })
        .collect();
    drop(sender);
    let mut kept: Vec<Vec<u8>> = Vec::new();
    let mut sum = 0u64;
    for made in receiver {
        sum += made.iter().map(|&byte| u64::from(byte)).sum::<u64>();
        kept.push(made);
        if kept.len() > 4000 {
            kept.drain(..2000);
        }
    }
    makers.into_iter().for_each(|maker| maker.join().unwrap());
    println!("{sum:x}");
    let _ = std::io::stdin().read(&mut [0]);
}
