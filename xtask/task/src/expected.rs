//! Files with what is expected, and the variable that has them written anew, as `expect-test` does for texts in tests.

/// What is done with a file of expectations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It is compared with what came out.
    Compare,
    /// It is replaced by what came out: `UPDATE_EXPECT` is set.
    Update,
}

/// Returns what the environment asks for.
pub fn mode() -> Mode {
    match std::env::var_os("UPDATE_EXPECT") {
        Some(_) => Mode::Update,
        None => Mode::Compare,
    }
}
