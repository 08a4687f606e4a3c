//! The functions of a stand-in in the machine's code (x86-64).

use crate::write::Definition;

/// The bytes that each function takes; the rest of them are traps.
pub(crate) const SIZE: u64 = 32;

/// `int3`.
const TRAP: u8 = 0xcc;

/// The code of one function.
///
/// `at` is its address, `target` the address of the pointer to the function that it jumps to, `name` that
/// of the text that it passes on.
pub(crate) fn function(definition: &Definition, at: u64, target: u64, name: u64) -> Vec<u8> {
    // An indirect jump may lead here (`endbr64`).
    let mut code = vec![0xf3, 0x0f, 0x1e, 0xfa];
    match definition {
        Definition::Returns(value) => {
            code.push(0xb8); // mov $value, %eax
            code.extend(value.to_le_bytes());
            code.push(0xc3); // ret
        }
        Definition::Forwards { .. } => jump(&mut code, at, target),
        Definition::Reports { status, .. } => {
            code.extend([0x48, 0x8d, 0x3d]); // lea name(%rip), %rdi
            let next = at + code.len() as u64 + 4;
            code.extend((name.wrapping_sub(next) as u32).to_le_bytes());
            code.push(0xbe); // mov $status, %esi
            code.extend(status.to_le_bytes());
            jump(&mut code, at, target);
        }
        Definition::Absolute(_) | Definition::Data { .. } => {}
    }
    code.resize(SIZE as usize, TRAP);
    code
}

/// `jmp *target(%rip)`.
fn jump(code: &mut Vec<u8>, at: u64, target: u64) {
    code.extend([0xff, 0x25]);
    let next = at + code.len() as u64 + 4;
    code.extend((target.wrapping_sub(next) as u32).to_le_bytes());
}
