// Buffers, maps, JSON and compression. Argument: how many rounds.
"use strict";
const zlib = require("zlib");

let state = 17;
function below(limit) {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return (state >> 8) % limit;
}

const kept = new Map();
let total = 0;
for (let round = 0; round < Number(process.argv[2]); round++) {
    const rows = [];
    for (let number = 0; number < 3000; number++) {
        rows.push({ key: "k" + below(500), text: "word ".repeat(below(20)), parts: [below(9), below(9)] });
    }
    const text = JSON.stringify(rows);
    const back = JSON.parse(text).sort((one, other) => one.key < other.key ? -1 : one.key > other.key ? 1 : 0);
    for (const row of back) {
        kept.set(row.key, Buffer.from(row.text + row.parts.join()));
    }
    const packed = zlib.deflateSync(text, { level: 1 });
    const pieces = [];
    for (let at = 0; at < packed.length; at += 1000) {
        pieces.push(Buffer.from(packed.subarray(at, at + 1000)));
    }
    total += zlib.inflateSync(Buffer.concat(pieces)).length;
}
for (const piece of kept.values()) {
    total += piece.length;
}
console.log(total, kept.size);
