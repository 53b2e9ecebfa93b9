"""A day's work for python3: JSON, small objects, or threads. Usage: work.py KIND SIZE"""

import hashlib
import json
import sys
import threading


def record(number: int) -> dict:
    return {
        "id": number,
        "name": f"record {number * 7919 % 100003}",
        "tags": [f"tag{number * step % 97}" for step in range(1, 6)],
        "position": {"x": number * 31 % 1009 / 8, "y": number * 17 % 2003 / 16},
        "text": "lorem ipsum " * (number % 9),
    }


def json_work(size: int) -> str:
    """Encode, decode and rewrite lists of records."""
    digest = hashlib.sha256()
    for part in range(8):
        text = json.dumps([record(part * size + number) for number in range(size)])
        decoded = json.loads(text)
        decoded.sort(key=lambda entry: (entry["name"], entry["id"]))
        digest.update(json.dumps(decoded, indent=1).encode())
    return digest.hexdigest()


class Node:
    """A node of a search tree with a parent, so that only the garbage collector frees it."""

    def __init__(self, key: int, parent: "Node | None") -> None:
        self.key = key
        self.parent = parent
        self.children: dict[str, Node] = {}
        self.notes = [f"{key:x}"]


def insert(root: Node, key: int) -> None:
    node = root
    while key != node.key:
        side = "left" if key < node.key else "right"
        if side not in node.children:
            node.children[side] = Node(key, node)
            return
        node = node.children[side]
        node.notes.append(str(key & 7))
        if len(node.notes) > 12:
            node.notes = node.notes[6:]


def objects_work(size: int) -> str:
    """Trees, dictionaries and strings that come and go."""
    digest = hashlib.sha256()
    for generation in range(3):
        root = Node(1 << 19, None)
        key = generation + 1
        for _ in range(size):
            key = key * 1664525 + 1013904223 & 0xFFFFF
            insert(root, key)
        words: dict[str, list[int]] = {}
        stack = [root]
        while stack:
            node = stack.pop()
            words.setdefault("".join(node.notes), []).append(node.key)
            stack.extend(node.children.values())
        digest.update(repr(sorted(words.items())).encode())
    return digest.hexdigest()


def threads_work(size: int) -> str:
    """Four threads, each with lists of its own, that pass results through a shared table."""
    results: dict[int, str] = {}

    def work(number: int) -> None:
        digest = hashlib.sha256()
        for turn in range(12):
            rows = [(value * 7 % 1013, str(value * number)) for value in range(size)]
            rows.sort()
            digest.update("".join(text for _, text in rows).encode())
            digest.update(bytes(turn for _ in range(turn)))
        results[number] = digest.hexdigest()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return "".join(results[number] for number in sorted(results))


WORK = {"json": json_work, "objects": objects_work, "threads": threads_work}
print(WORK[sys.argv[1]](int(sys.argv[2])))
