// Names can be told apart.
import assert from "node:assert/strict";
import test from "node:test";
import { colour, short } from "../src/names.js";

test("sixteen names have sixteen colours, and each keeps its own", () => {
    const settings = Array.from({ length: 8 }, (_, at) => `hakmem+HAKMEM_DECAY_MS=${at}`);
    const peers = ["mimalloc3", "mimalloc2", "snmalloc", "jemalloc", "tcmalloc", "rpmalloc", "glibc"];
    const names = ["hakmem", ...settings, ...peers];
    const colours = names.map(colour);
    assert.equal(new Set(colours).size, 16);
    assert.deepEqual(names.toReversed().map(colour), colours.toReversed());
});

test("a setting of hakmem is named by the setting, and no name is too long", () => {
    assert.equal(short("mimalloc3"), "mimalloc3");
    assert.equal(short("hakmem"), "hakmem");
    assert.equal(short("hakmem+HAKMEM_MODE=minimal+HAKMEM_ACE=on"), "+MODE=minimal+ACE=on");
    assert.equal(short("hakmem+HAKMEM_MODE=minimal+HAKMEM_BATCH_MADVISE=on"), "+MODE=minimal+BATCH_MAD…");
});
