use super::*;
use fastrand::Rng;

/// A memory whose bytes are computed from their addresses; it ends at some address.
struct Made {
    end: u64,
    reads: RefCell<Vec<u64>>,
}

fn made(address: u64) -> u8 {
    (address ^ address >> 8) as u8
}

impl Memory for Made {
    fn read(&self, address: u64, target: &mut [u8]) -> bool {
        self.reads.borrow_mut().push(address);
        for (byte, at) in target.iter_mut().zip(address..) {
            *byte = made(at);
        }
        address + target.len() as u64 <= self.end
    }

    fn data_areas(&self) -> Vec<Range<u64>> {
        Vec::new()
    }

    fn explain(&self, _: u64) -> Error {
        Error::NotHakmem
    }
}

fn recorder(memory: &Made) -> Recorder<'_> {
    Recorder {
        memory,
        control: 0..16,
        variables: 16..32,
        seen: RefCell::default(),
    }
}

#[test]
fn what_was_read_is_there_and_nothing_else() {
    let memory = Made {
        end: 5000,
        reads: RefCell::default(),
    };
    let recorder = recorder(&memory);
    let mut generator = Rng::with_seed(7);
    let mut read = Vec::new();
    for _ in 0..300 {
        let (start, bytes) = (generator.u64(0..5100), generator.usize(1..90));
        let mut target = vec![0; bytes];
        if recorder.read(start, &mut target) {
            read.push((start, target));
        }
    }
    let asked = memory.reads.borrow().len();
    assert!(recorder.read(read[0].0, &mut vec![0; read[0].1.len()]));
    assert_eq!(memory.reads.borrow().len(), asked, "it was read again");
    let image = recorder.finish(&[(0, 5000)], "text".into());
    let image = Image::decode(&image.encode().unwrap()).unwrap();
    assert_eq!(image.text, "text");
    assert_eq!(image.data_areas().first(), Some(&(0..16)));
    let known: std::collections::HashSet<u64> = read
        .iter()
        .flat_map(|(start, bytes)| *start..start + bytes.len() as u64)
        .collect();
    assert_eq!(image.memory_bytes(), known.len() as u64);
    for at in 0..5200 {
        let mut byte = [0];
        assert_eq!(image.read(at, &mut byte), known.contains(&at), "{at}");
        assert!(!known.contains(&at) || byte[0] == made(at));
    }
    for (start, bytes) in read {
        let mut target = vec![0; bytes.len()];
        assert!(image.read(start, &mut target));
        assert_eq!(target, bytes);
    }
}

#[test]
fn what_lies_elsewhere_is_not_kept() {
    let memory = Made {
        end: 5000,
        reads: RefCell::default(),
    };
    let recorder = recorder(&memory);
    for start in [0, 20, 100, 196, 1000] {
        assert!(recorder.read(start, &mut [0; 8]));
    }
    let image = recorder.finish(&[(100, 100)], String::new());
    let kept: Vec<u64> = image.stretches.0.keys().copied().collect();
    assert_eq!(kept, [0, 20, 100], "196 is in part elsewhere");
}

fn small() -> Vec<u8> {
    let stretches = [(64, vec![1; 8]), (100, vec![2; 300])];
    let image = Image {
        path: PathBuf::new(),
        text: "{\"some\": \"text\"}".into(),
        control: 64..72,
        stretches: Stretches(stretches.into_iter().collect()),
    };
    image.encode().unwrap()
}

#[test]
fn what_is_wrong_with_a_file_is_said() {
    let whole = small();
    let why = |file: &[u8]| Image::decode(file).err().unwrap();
    assert_eq!(why(b"text"), "it does not begin like a snapshot");
    for bytes in [8, 23, 24, whole.len() - 1] {
        assert!(why(&whole[..bytes]).contains("cut short, at"), "{bytes}");
    }
    let mut longer = whole.clone();
    longer.push(0);
    assert!(why(&longer).contains("checksum"));
    let mut other = whole.clone();
    other[8] = 2;
    assert!(why(&other).starts_with("it is of version 2, and this command reads version 1"));
}

#[test]
fn no_damaged_file_ends_the_reader() {
    let whole = small();
    let mut generator = Rng::with_seed(11);
    for _ in 0..20_000 {
        let mut file = whole.clone();
        for _ in 0..generator.usize(1..4) {
            let at = generator.usize(HEAD_BYTES..file.len());
            file[at] = generator.u8(..);
        }
        // The damage comes with a correct checksum.
        let sum = crc32fast::hash(&file[HEAD_BYTES..]);
        file[12..16].copy_from_slice(&sum.to_le_bytes());
        if let Ok(image) = Image::decode(&file) {
            let _ = Control::find(&image);
        }
    }
}

#[test]
fn no_damaged_content_ends_the_reader() {
    let packed = &small()[HEAD_BYTES..];
    let whole = zstd::stream::decode_all(packed).unwrap();
    assert!(Image::parse(&whole).is_some());
    let mut generator = Rng::with_seed(13);
    for _ in 0..50_000 {
        let mut content = whole.clone();
        for _ in 0..generator.usize(1..3) {
            let at = generator.usize(..content.len());
            content[at] = generator.choice([0, 1, 7, 64, 128, 255]).unwrap();
        }
        content.truncate(generator.usize(..=content.len()).max(content.len() / 2));
        if let Some(image) = Image::parse(&content) {
            let mut target = [0; 64];
            for address in [0, 64, 100, 390, u64::MAX - 7, u64::MAX] {
                image.read(address, &mut target);
            }
            let _ = Control::find(&image);
        }
    }
}
