//! Finds out which allocator this process itself uses.

use hakmem_lab::error::Result;
use hakmem_lab::failed;
use std::ffi::{CStr, c_void};

/// The file that defines the function to which this name resolves.
pub fn owner_of(name: &CStr) -> Result<String> {
    // SAFETY: dladdr fills in what it is given; the name that it finds lives as long as the library.
    unsafe {
        let address = libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr());
        let mut info: libc::Dl_info = std::mem::zeroed();
        if address.is_null() || libc::dladdr(address, &mut info) == 0 {
            return Err(failed!("no library defines {name:?}"));
        }
        Ok(CStr::from_ptr(info.dli_fname)
            .to_string_lossy()
            .into_owned())
    }
}

/// Does hakmem know a block of malloc? None if hakmem is not loaded.
pub fn owned_by_hakmem() -> Option<bool> {
    // SAFETY: the function's type is that of hakmem.h; the block is freed once.
    unsafe {
        let function = libc::dlsym(libc::RTLD_DEFAULT, c"hak_owns".as_ptr());
        if function.is_null() {
            return None;
        }
        let owns: extern "C" fn(*const c_void) -> bool = std::mem::transmute(function);
        let block = libc::malloc(100);
        let answer = owns(block);
        libc::free(block);
        Some(answer)
    }
}
