//! Reading a snapshot, whatever it contains, ends with figures or with an error line.
#![no_main]

use hakmem_heap::control::Control;
use hakmem_heap::error::Result;
use hakmem_heap::failures::Failures;
use hakmem_heap::figures::Figures;
use hakmem_heap::heap::Heap;
use hakmem_heap::options;
use hakmem_heap::profile::Profile;
use hakmem_heap::snapshot::Image;
use libfuzzer_sys::fuzz_target;

fn read_all(image: &Image) -> Result<()> {
    let control = Control::find(image)?;
    Figures::of(&Heap::read_by(image, &control)?);
    Failures::read_by(image, &control)?;
    options::read(&control, image)?;
    Profile::read_by(&control, image)?;
    Ok(())
}

fuzz_target!(|bytes: &[u8]| {
    if let Err(why) = Image::decode(bytes) {
        assert!(!why.contains('\n'));
    }
    // The input is the uncompressed part, so no checksum protects it.
    let Some(image) = Image::parse(bytes) else {
        return;
    };
    if let Err(error) = read_all(&image) {
        assert!(!error.to_string().contains('\n'));
    }
});
