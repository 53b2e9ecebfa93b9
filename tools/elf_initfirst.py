#!/usr/bin/env python3
"""Mark shared libraries to be initialised first, as `ld -z initfirst` does: elf_initfirst.py LIBRARY…

For linkers that do not know the flag. The dynamic section must already have an entry for such flags, as it has with
`-z now` or `-z nodelete`; 64-bit files of this machine's byte order only.
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path

PT_DYNAMIC = 2
DT_NULL = 0
DT_FLAGS_1 = 0x6FFFFFFB
DF_1_INITFIRST = 0x20


def marked(image: bytes) -> bytes:
    """The file with the mark. A ValueError says what is wrong with the file."""
    if image[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not a 64-bit, little-endian ELF file")
    (headers,) = struct.unpack_from("<Q", image, 32)
    size, count = struct.unpack_from("<HH", image, 54)
    for at in range(headers, headers + size * count, size):
        kind, _, offset, _, _, length = struct.unpack_from("<IIQQQQ", image, at)
        if kind != PT_DYNAMIC:
            continue
        for entry in range(offset, offset + length, 16):
            tag, value = struct.unpack_from("<QQ", image, entry)
            if tag == DT_NULL:
                break
            if tag == DT_FLAGS_1:
                return image[: entry + 8] + struct.pack("<Q", value | DF_1_INITFIRST) + image[entry + 16 :]
    raise ValueError("no DT_FLAGS_1 to set it in")


def main() -> None:
    for name in sys.argv[1:]:
        path = Path(name)
        try:
            path.write_bytes(marked(path.read_bytes()))
        except (OSError, ValueError, struct.error) as error:
            sys.exit(f"elf_initfirst: {name}: {error}")


if __name__ == "__main__":
    main()
