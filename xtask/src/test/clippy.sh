#!/bin/sh
# Clippy in the place of the compiler, for `RUSTC_WORKSPACE_WRAPPER`: cargo gives the compiler and its arguments. What is
# compiled is linted on the way, so that the workspace need not be checked a second time for the lints alone.
command -v clippy-driver >/dev/null || { echo "Clippy is not installed: rustup component add clippy" >&2; exit 1; }
exec clippy-driver "$@" --deny warnings
