#!/usr/bin/env bash
# Programs that have an allocator of their own (Go, Java, node; redis has a separate test): the same output,
# with their own memory beside ours.
# shellcheck source=../support/real.sh
. "$(dirname "$0")/../support/real.sh"

tried=""
if command -v node >/dev/null; then
    cat >"$work/program.js" <<'JS'
const map = new Map();
for (let i = 0; i < 200000; i++) map.set("key" + i % 30000, { at: i, text: "x".repeat(i % 50) });
const buffers = [];
for (let i = 0; i < 2000; i++) buffers.push(Buffer.alloc(1 + i * 17 % 90000, i % 256));
let sum = 0;
for (const b of buffers) sum = (sum * 31 + b[b.length - 1] + b.length) % 1000000007;
console.log(map.size, sum, require("zlib").gunzipSync(require("zlib").gzipSync(Buffer.concat(buffers.slice(0, 300)))).length);
new (require("worker_threads").Worker)("require('worker_threads').parentPort.postMessage([1,2,3].map(x => x * x).join())",
    { eval: true }).on("message", text => console.log(text));
JS
    both node node "$work/program.js"
    tried="$tried node"
fi
if command -v javac >/dev/null; then
    cat >"$work/Program.java" <<'JAVA'
import java.nio.ByteBuffer;
import java.util.*;
public class Program {
    public static void main(String[] arguments) throws Exception {
        List<ByteBuffer> outside = new ArrayList<>();
        for (int i = 1; i < 500; i++) outside.add(ByteBuffer.allocateDirect(i * 1000));
        Map<String, Integer> counts = new TreeMap<>();
        for (int i = 0; i < 300000; i++) counts.merge("k" + i % 1000, 1, Integer::sum);
        Thread[] threads = new Thread[4];
        long[] sums = new long[4];
        for (int t = 0; t < 4; t++) {
            final int me = t;
            threads[t] = new Thread(() -> { for (int i = 0; i < 1000000; i++) sums[me] += new int[] {i}[0]; });
            threads[t].start();
        }
        for (Thread thread : threads) thread.join();
        System.out.println(counts.size() + " " + Arrays.toString(sums) + " " + outside.size());
    }
}
JAVA
    (cd "$work" && javac Program.java)
    both java java -Xmx256m -cp "$work" Program
    tried="$tried java"
fi
if command -v go >/dev/null; then
    cat >"$work/program.go" <<'GO'
package main

import (
	"fmt"
	"sort"
	"strings"
)

func main() {
	counts := map[string]int{}
	done := make(chan int)
	for g := 0; g < 8; g++ {
		go func(g int) {
			sum := 0
			for i := 0; i < 100000; i++ {
				sum += len(strings.Repeat("x", i%100))
			}
			done <- sum
		}(g)
	}
	for i := 0; i < 200000; i++ {
		counts[fmt.Sprint("k", i%5000)]++
	}
	total := 0
	for g := 0; g < 8; g++ {
		total += <-done
	}
	keys := make([]string, 0)
	for k := range counts {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	fmt.Println(len(keys), keys[17], total)
}
GO
    if (cd "$work" && GOFLAGS=-mod=mod GOTOOLCHAIN=local GOCACHE="$work/cache" go build -o program program.go) 2>/dev/null; then
        both go "$work/program"
        tried="$tried go"
    fi
fi
[ -n "$tried" ] || { echo "neither node, javac nor go is installed"; exit 77; }
