#!/usr/bin/env python3
"""Write to each page of this many bytes of new memory, and end: bench/scale/touch.py BYTES"""

import mmap
import sys

memory = mmap.mmap(-1, int(sys.argv[1]), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
try:
    memory.madvise(mmap.MADV_HUGEPAGE)  # the fastest way to touch many pages
except OSError:
    pass  # a kernel without them
for place in range(0, len(memory), mmap.PAGESIZE):
    memory[place] = 1
