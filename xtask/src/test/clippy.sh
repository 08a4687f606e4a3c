#!/bin/sh
# Clippy in the place of the compiler, for `RUSTC_WORKSPACE_WRAPPER`: cargo gives the compiler and its arguments. What is
# compiled is linted on the way, so that the workspace need not be checked a second time for the lints alone.
exec clippy-driver "$@" --deny warnings
