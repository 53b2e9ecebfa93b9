#!/usr/bin/env bash
# z3: the pigeonhole problem, bit vectors, arithmetic and arrays; its answers and models.
# shellcheck source=../support/real.sh
. "$(dirname "$0")/../support/real.sh"
need z3
prove z3 --version

{
    echo '(set-option :random-seed 3)'
    # Eight pigeons do not fit into seven holes.
    pigeons=8 holes=7
    for ((p = 0; p < pigeons; p++)); do
        for ((h = 0; h < holes; h++)); do
            echo "(declare-const p${p}h$h Bool)"
        done
    done
    echo '(push)'
    for ((p = 0; p < pigeons; p++)); do
        echo "(assert (or$(for ((h = 0; h < holes; h++)); do echo -n " p${p}h$h"; done)))"
        for ((q = 0; q < p; q++)); do
            for ((h = 0; h < holes; h++)); do
                echo "(assert (not (and p${p}h$h p${q}h$h)))"
            done
        done
    done
    echo '(check-sat) (pop)'
    echo '(declare-const a (_ BitVec 16)) (declare-const b (_ BitVec 16))'
    echo '(push) (assert (= (bvmul a b) #x8bb1)) (assert (bvugt a #x0001)) (assert (bvugt b #x0001))'
    echo '(assert (bvult a b)) (assert (bvult b #x0200)) (check-sat) (pop)'
    echo '(declare-const x Int) (declare-const y Int) (declare-const z Int)'
    echo '(push) (assert (= (+ (* 3 x) (* 5 y) (* 7 z)) 1001)) (assert (> x y z 10)) (check-sat) (get-model) (pop)'
    echo '(declare-const m (Array Int Int)) (push)'
    for ((i = 0; i < 300; i++)); do
        echo "(assert (> (select m $i) (+ (select m (+ $i 1)) $((i % 5)))))"
    done
    echo '(assert (< (select m 0) (select m 299))) (check-sat) (pop)'
} >"$work/problem.smt2"
both answers z3 "$work/problem.smt2"
grep -q unsat "$work/answers.with"
