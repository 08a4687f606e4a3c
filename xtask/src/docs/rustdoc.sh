#!/usr/bin/env bash
# For `RUSTDOC` with `cargo test --doc`: writes the reference of a library to the folder RUSTDOC_OUT, with what the tests
# were compiled with, and runs none of its examples. `cargo doc` would check all dependencies a second time.
arguments=()
while [ $# -gt 0 ]; do
    case $1 in
        --test) ;;
        --test-run-directory) shift ;;
        *) arguments+=("$1") ;;
    esac
    shift
done
exec rustdoc "${arguments[@]}" --deny warnings --out-dir "$RUSTDOC_OUT"
