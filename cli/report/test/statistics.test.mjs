// The statistics against known answers.
import assert from "node:assert/strict";
import test from "node:test";
import { bytes, seconds } from "../src/format.js";
import { geometricMean, interval, median, ratioInterval, tail } from "../src/statistics.js";

test("the median of an even number is between the middle two", () => {
    assert.equal(median([4, 1, 3, 2]), 2.5);
    assert.equal(median([3, 1, 2]), 2);
});

test("a geometric mean is of ratios", () => {
    assert.ok(Math.abs(geometricMean([0.5, 2]) - 1) < 1e-12);
});

test("an interval holds the median, is the same each time, and is a point for equal samples", () => {
    const numbers = [9, 10, 11, 10, 12, 8, 10, 11];
    const [low, high] = interval(numbers);
    assert.ok(low <= median(numbers) && median(numbers) <= high && low < high);
    assert.deepEqual(interval(numbers), [low, high]);
    assert.deepEqual(interval([5, 5, 5]), [5, 5]);
    assert.deepEqual(interval([7]), [7, 7]);
});

test("a ratio's interval holds 1 for equal samples, and not for samples that lie apart", () => {
    const numbers = [9, 10, 11, 10, 12, 8, 10, 11];
    const [low, high] = ratioInterval(numbers, [...numbers].reverse());
    assert.ok(low < 1 && 1 < high);
    const [lower] = ratioInterval(numbers.map((number) => number * 2), numbers);
    assert.ok(lower > 1.5);
});

test("what slows down a whole round is no difference", () => {
    const rounds = [1, 2, 3, 4, 5, 6, 7];
    const [low, high] = ratioInterval(rounds.map((time) => time * 1.25), rounds);
    assert.ok(Math.abs(low - 1.25) < 1e-12 && Math.abs(high - 1.25) < 1e-12);
});

test("a tail says which part of the calls takes at least so long", () => {
    assert.deepEqual(tail([[10, 90], [100, 9], [1000, 1]], 100), [[1, 10], [0.1, 100], [0.01, 1000]]);
});

test("numbers have three digits and a unit", () => {
    assert.equal(seconds(0.0123), "12.3 ms");
    assert.equal(seconds(2.5e-8), "25.0 ns");
    assert.equal(bytes(3 * 2 ** 20), "3.00 MiB");
    assert.equal(bytes(0), "0 B");
});
