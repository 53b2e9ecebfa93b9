// Medians and their intervals, as on the command line: by signed ranks of the pairs of runs of one round, or by resampling with
// a fixed seed.

const RESAMPLES = 1000;
// The same values as in cli/lab/src/statistics.rs.
const PAIRS_MIN = 6;
const RANK_TAIL = 0.02;

export const sorted = (numbers) => [...numbers].sort((a, b) => a - b);

export function median(numbers) {
    const all = sorted(numbers);
    const middle = all.length / 2;
    return all.length % 2 ? all[Math.floor(middle)] : (all[middle - 1] + all[middle]) / 2;
}

export function geometricMean(numbers) {
    return Math.exp(numbers.reduce((sum, number) => sum + Math.log(number), 0) / numbers.length);
}

// A small generator of uniform numbers in [0, 1): a Weyl sequence with mixing.
export function generator(seed) {
    let state = seed >>> 0;
    return () => {
        state = (state + 0x9e3779b9) >>> 0;
        let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
        mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
        return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32;
    };
}

const resampled = (numbers, next) => median(numbers.map(() => numbers[Math.floor(next() * numbers.length)]));

function middle(values) {
    const all = sorted(values);
    return [all[Math.floor(RESAMPLES * 0.025)], all[Math.ceil(RESAMPLES * 0.975) - 1]];
}

// The interval that contains 95 % of the resampled medians.
export function interval(numbers) {
    if (numbers.length < 2) {
        return [numbers[0], numbers[0]];
    }
    const next = generator(numbers.length);
    return middle(Array.from({ length: RESAMPLES }, () => resampled(numbers, next)));
}

// How many of the pairwise means of `count` differences lie outside their interval, at each end.
function ranksLeftOut(count) {
    const sums = (count * (count + 1)) / 2;
    const chances = new Array(sums + 1).fill(0);
    chances[0] = 1;
    for (let rank = 1; rank <= count; rank++) {
        for (let sum = sums; sum >= 0; sum--) {
            chances[sum] = (chances[sum] + (sum >= rank ? chances[sum - rank] : 0)) / 2;
        }
    }
    let out = 0;
    for (let below = chances[0] + chances[1]; below <= RANK_TAIL; below += chances[out + 1]) {
        out++;
    }
    return out;
}

function rankInterval(pairs) {
    const means = sorted(pairs.flatMap((one, at) => pairs.slice(at).map((other) => (one + other) / 2)));
    const out = ranksLeftOut(pairs.length);
    return [means[out], means[means.length - 1 - out]];
}

// The interval that contains the ratio of two lists of runs in 95 % of the cases.
export function ratioInterval(numbers, others) {
    const pairs = numbers.slice(0, others.length).map((number, at) => Math.log(number / others[at]));
    if (pairs.length >= PAIRS_MIN && pairs.every(Number.isFinite)) {
        return rankInterval(pairs).map(Math.exp);
    }
    const next = generator(numbers.length);
    return middle(Array.from({ length: RESAMPLES }, () => resampled(numbers, next) / resampled(others, next)));
}

// The points of a curve: for each latency, the part of the calls that take at least as long. `counts` are pairs of latency and
// calls, sorted by latency.
export function tail(counts, total) {
    const points = [];
    let above = total;
    for (const [value, count] of counts) {
        points.push([above / total, value]);
        above -= count;
    }
    return points;
}
