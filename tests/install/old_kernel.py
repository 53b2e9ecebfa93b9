#!/usr/bin/env python3
"""Run a program as on Linux 3.13, which lacks all later system calls: old_kernel.py PROGRAM…"""

import ctypes
import errno
import os
import struct
import sys

FIRST_MISSING = {"x86_64": 314, "aarch64": 274}  # sched_setattr, new in Linux 3.14
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
LOAD_WORD, JUMP_IF_NOT_LESS, RETURN = 0x20, 0x35, 0x06
ALLOW, FAIL = 0x7FFF0000, 0x00050000

if os.uname().machine not in FIRST_MISSING:
    sys.exit(77)
rules = b"".join(
    struct.pack("=HBBI", *rule)
    for rule in (
        (LOAD_WORD, 0, 0, 0),  # the system call's number
        (JUMP_IF_NOT_LESS, 0, 1, FIRST_MISSING[os.uname().machine]),
        (RETURN, 0, 0, FAIL | errno.ENOSYS),
        (RETURN, 0, 0, ALLOW),
    )
)
kept = ctypes.create_string_buffer(rules)
program = struct.pack("HP", len(rules) // 8, ctypes.addressof(kept))
prctl = ctypes.CDLL(None, use_errno=True).prctl
for arguments in ((PR_SET_NO_NEW_PRIVS, 1, None, None, None), (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, None, None)):
    if prctl(*arguments) != 0:
        sys.exit(f"old_kernel: prctl: {os.strerror(ctypes.get_errno())}")
os.execvp(sys.argv[1], sys.argv[1:])
