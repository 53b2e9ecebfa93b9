"""hakmem, a memory allocator for Linux, seen from Python.

`hakmem run -- python app.py` starts a program with it. In such a program these functions work; in others is_active() is
False, and the rest raise NotActive.
"""

from __future__ import annotations

import ctypes
import json
import os
from pathlib import Path

__all__ = ["NotActive", "command", "is_active", "library", "stats", "trim", "verify", "version"]

FAMILY = ("malloc", "calloc", "realloc", "free", "posix_memalign", "aligned_alloc", "malloc_usable_size")


class NotActive(RuntimeError):
    """This process does not use hakmem."""


class _Found(ctypes.Structure):
    """Dl_info, as dladdr fills it in."""

    _fields_ = (
        ("path", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


def library() -> Path:
    """The shared library of this package, for LD_PRELOAD."""
    return Path(__file__).parent / "lib/libhakmem.so.1"


def command() -> Path:
    """The command line of this package."""
    return Path(__file__).parent / "bin/hakmem"


def _program() -> ctypes.CDLL:
    return ctypes.CDLL(None)


def _address(name: str) -> int | None:
    function = getattr(_program(), name, None)
    return None if function is None else ctypes.cast(function, ctypes.c_void_p).value


def _file(address: int | None) -> str:
    found = _Found()
    if address is None or not _program().dladdr(ctypes.c_void_p(address), ctypes.byref(found)):
        return ""
    return (found.path or b"").decode(errors="surrogateescape")


def _libraries() -> list[str]:
    """All loaded files but the program, in the order in which the dynamic linker looks up names."""
    names: list[str] = []

    class Info(ctypes.Structure):
        _fields_ = (("base", ctypes.c_void_p), ("name", ctypes.c_char_p))

    def note(info: "ctypes._Pointer[Info]", _bytes: int, _data: int) -> int:
        names.append((info.contents.name or b"").decode(errors="surrogateescape"))
        return 0

    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Info), ctypes.c_size_t, ctypes.c_void_p)
    _program().dl_iterate_phdr(kind(note), None)
    return [name for name in names[1:] if name.startswith("/")]


def _defining_file(name: str) -> str:
    """A program at a fixed address may have its own jump to a function, whose address then is the function's for all."""
    path = _file(_address(name))
    is_programs = path != "" and Path(path).resolve() == Path("/proc/self/exe").resolve()
    if not is_programs or _file(_address("hak_malloc")) == path:
        return path
    for library in _libraries():
        function = getattr(ctypes.CDLL(library, os.RTLD_NOLOAD), name, None)
        if function is not None and _file(ctypes.cast(function, ctypes.c_void_p).value) == library:
            return library
    return path


def is_active() -> bool:
    """Does malloc of this process come from hakmem?"""
    own = _address("hak_malloc")
    return own is not None and _file(own) == _defining_file("malloc")


def _active() -> ctypes.CDLL:
    if not is_active():
        raise NotActive("this process does not use hakmem: start it with `hakmem run -- python …`")
    return _program()


def version() -> str:
    """The version of the library in this process."""
    tell = _active().hak_version
    tell.restype = ctypes.c_char_p
    return tell().decode()


def verify() -> dict[str, str]:
    """For each function of the malloc family, the file that it comes from."""
    files = {name: _defining_file(name) for name in FAMILY}
    return {name: file for name, file in files.items() if file}


def stats() -> dict[str, object]:
    """What the heap consists of: docs/statistics.md explains each figure."""
    write = _active().hak_stats_json
    write.restype = ctypes.c_size_t
    write.argtypes = (ctypes.c_char_p, ctypes.c_size_t)
    room = write(None, 0) + 1
    while True:
        text = ctypes.create_string_buffer(room)
        length = write(text, room)
        if length < room:
            return json.loads(text.value)
        room = length + 1  # it has grown meanwhile


def trim() -> int:
    """Give back to the system what can be given back now. Returns the number of bytes."""
    give = _active().hak_trim
    give.restype = ctypes.c_size_t
    give.argtypes = ()
    return give()
