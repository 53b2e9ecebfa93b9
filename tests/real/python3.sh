#!/usr/bin/env bash
# python3, without its own small-object allocator: JSON, objects,
# threads, regular expressions, big numbers, and processes that it forks.
# shellcheck source=../support/real.sh
. "$(dirname "$0")/../support/real.sh"
need python3
python=$(python3 -c 'import sys; print(sys.executable)') # not a wrapper script
export PYTHONMALLOC=malloc PYTHONHASHSEED=0
prove "$python" -c pass

cat >"$work/program.py" <<'PYTHON'
import collections, hashlib, json, multiprocessing, random, re, sqlite3, threading, zlib

random.seed(7)


def tree(depth):
    if depth == 0:
        return random.choice([1, 2.5, None, True, "text" * random.randrange(20)])
    if depth % 2:
        return [tree(depth - 1) for _ in range(random.randrange(8))]
    return {f"key{i}": tree(depth - 1) for i in range(random.randrange(8))}


class Node:
    def __init__(self, value):
        self.value, self.next, self.data = value, None, {"value": value}


def work(index, results):
    words = collections.Counter()
    for i in range(2500):
        words["".join(chr(97 + (i * k + index) % 26) for k in range(1, 9))] += 1
    head = None
    for i in range(8000):
        node = Node(i)
        node.next, head = head, node
    results[index] = (sorted(words.items())[:5], head.value)


documents = [tree(7) for _ in range(60)]
for _ in range(4):
    documents = json.loads(json.dumps(documents))
print(hashlib.sha256(json.dumps(documents).encode()).hexdigest())

results = {}
threads = [threading.Thread(target=work, args=(i, results)) for i in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sorted(results.items()))

print(hashlib.sha256(str(3**20000).encode()[:4000]).hexdigest())
print(len(re.findall(r"(\w+)\s\1", "the the cat cat sat " * 4000)))
print(zlib.crc32(zlib.decompress(zlib.compress(bytes(range(256)) * 20000))))
grown = []
for i in range(150000):
    grown.append(i)
print(sum(grown))
base = sqlite3.connect(":memory:")
base.execute("create table t (a int, b text)")
base.executemany("insert into t values (?, ?)", ((i, str(i) * 5) for i in range(20000)))
print(base.execute("select count(*), max(b) from t where a % 7 = 3").fetchall())
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(sum(pool.map(len, [str(i) * 50 for i in range(2000)])))
PYTHON
both program "$python" -X int_max_str_digits=0 "$work/program.py"
