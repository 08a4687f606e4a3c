//! The functions that JavaScript calls.
//!
//! The caller asks for room ([`xmem_input`]), writes there, and calls a function. The function returns [`DONE`] or
//! [`FAILED`] and leaves text at [`xmem_output`], [`xmem_output_length`] bytes long. All memory belongs to the module:
//! nothing is freed by the caller. After a panic, which is a trap, the text says what has happened; such an instance must
//! not be used again.

use crate::catalog::catalog;
use crate::error::SessionError;
use crate::session::Session;
use std::cell::RefCell;

/// The status of a call that has done what it should: the text is its result.
pub const DONE: u32 = 0;
/// The status of a call that failed: the text is a message.
pub const FAILED: u32 = 1;

thread_local! {
    static INPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static OUTPUT: RefCell<String> = const { RefCell::new(String::new()) };
    static SESSION: RefCell<Session> = RefCell::new(Session::default());
}

/// Room for `length` bytes of input. What was there before is gone.
#[unsafe(no_mangle)]
pub extern "C" fn xmem_input(length: usize) -> *mut u8 {
    INPUT.with_borrow_mut(|input| {
        input.clear();
        input.resize(length, 0);
        input.as_mut_ptr()
    })
}

/// The text of the last call.
#[unsafe(no_mangle)]
pub extern "C" fn xmem_output() -> *const u8 {
    OUTPUT.with_borrow(|output| output.as_ptr())
}

/// Its length in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn xmem_output_length() -> usize {
    OUTPUT.with_borrow(String::len)
}

/// Prepares the module: to be called once, before all others.
#[unsafe(no_mangle)]
pub extern "C" fn xmem_start() {
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.to_string();
        OUTPUT.with(|output| {
            if let Ok(mut output) = output.try_borrow_mut() {
                *output = text;
            }
        });
    }));
}

/// Lists what settings may name.
#[unsafe(no_mangle)]
pub extern "C" fn xmem_catalog() -> u32 {
    finish(|_| Ok(catalog()))
}

/// Opens the graph of the input: `name_length` bytes of its name, then the file.
#[unsafe(no_mangle)]
pub extern "C" fn xmem_open(name_length: usize) -> u32 {
    finish(|input| {
        let (name, bytes) = input.split_at(name_length.min(input.len()));
        let name = String::from_utf8_lossy(name);
        SESSION.with_borrow_mut(|session| session.open(&name, bytes))
    })
}

/// Answers under the settings of the input.
#[unsafe(no_mangle)]
pub extern "C" fn xmem_answer() -> u32 {
    finish(|input| {
        let settings = String::from_utf8_lossy(input);
        SESSION.with_borrow(|session| session.answer(&settings))
    })
}

fn finish(work: impl FnOnce(&[u8]) -> Result<String, SessionError>) -> u32 {
    let input = INPUT.take();
    let (status, text) = match work(&input) {
        Ok(text) => (DONE, text),
        Err(error) => (FAILED, error.words()),
    };
    OUTPUT.set(text);
    status
}
