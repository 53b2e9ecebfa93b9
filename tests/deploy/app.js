// Buffers of 5,000 to 20,000 bytes, which node gets from malloc; then waits until its input ends.
const { createHash } = require("crypto");

const digest = createHash("md5");
let kept = [];
for (let n = 0; n < 60000; n++) {
  const made = Buffer.alloc(5000 + (n * 7) % 15000, n % 251);
  if (n % 100 === 0) digest.update(made);
  if (n % 10 === 0) kept.push(made);
  if (kept.length > 1000) kept = kept.slice(500);
}
console.log(digest.digest("hex"));
process.stdin.resume();
