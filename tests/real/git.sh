#!/usr/bin/env bash
# git: commits, a repack with threads, a clone, diffs and searches in history.
# shellcheck source=../support/real.sh
. "$(dirname "$0")/../support/real.sh"
need git
prove git --version
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null HOME=$work GIT_PAGER=cat
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@a GIT_COMMITTER_NAME=c GIT_COMMITTER_EMAIL=c@c

story() {
    local folder=$1
    git init -q -b main "$folder"
    cd "$folder"
    for ((commit = 0; commit < 12; commit++)); do
        for ((file = 0; file < 40; file++)); do
            mkdir -p "d$((file % 8))"
            seq $((commit * file)) $((commit * file + 200 + file * commit)) >"d$((file % 8))/f$file"
        done
        export GIT_AUTHOR_DATE="@$((1700000000 + commit)) +0000"
        export GIT_COMMITTER_DATE=$GIT_AUTHOR_DATE
        git add -A
        git commit -q -m "commit $commit"
    done
    git -c pack.threads=4 repack -a -d -q --window=50
    git fsck --full 2>&1
    git log -p --stat -M -C
    git blame d3/f3
    git log -S1234 --oneline
    git grep -c 77 HEAD~5 -- '*3'
    git clone -q . ../clone 2>&1
    git -C ../clone rev-parse HEAD
    git merge-base HEAD HEAD~3
    git checkout -q -b side HEAD~4
    echo more >>d0/f0
    git commit -q -a -m side
    git merge -q -X ours --no-edit main 2>&1
    git rev-parse HEAD
    cd ..
    rm -rf clone "$folder"
}
mkdir "$work/space"
cd "$work/space"
(story repository) >"$work/without.out" 2>&1
(
    export LD_PRELOAD=$library
    story repository
) >"$work/with.out" 2>&1
same "git's story" "$work/without.out" "$work/with.out"
