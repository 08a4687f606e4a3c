//! Names of temporary files: they say which process made the file.
//!
//! `xmem-0badcafe-1234-aB3dE6`: the machine, the process, and random letters. That of a file begins with a
//! period, which hides it.

use std::ffi::OsStr;
use std::fmt;

/// The beginning of all names.
const PREFIX: &str = "xmem-";

/// Random characters at the end of a name.
pub(crate) const RANDOM: usize = 6;

/// The machine and the namespace in which a process number has its meaning; zero if unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Machine(u32);

impl Machine {
    /// The machine of this process, since it was booted.
    pub(crate) fn current() -> Self {
        // The number of the namespace in "pid:[4026531836]": a container has process numbers of its own.
        let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        Self::of(&boot, &namespace.to_string_lossy())
    }

    fn of(boot: &str, namespace: &str) -> Self {
        let boot = boot.get(..8).and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let digits: String = namespace.chars().filter(char::is_ascii_digit).collect();
        match (boot, digits.parse::<u32>()) {
            (Some(boot), Ok(namespace)) => Self(boot ^ namespace),
            _ => Self(0),
        }
    }

    /// True if processes of this machine have meaning here.
    pub(crate) fn is_current(self) -> bool {
        self.0 != 0 && self == Self::current()
    }
}

/// The process that made a temporary file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Maker {
    pub(crate) machine: Machine,
    pub(crate) process: u32,
}

impl Maker {
    /// This process.
    pub(crate) fn current() -> Self {
        Self { machine: Machine::current(), process: std::process::id() }
    }

    /// The process that made the file of that name; `None` for other names.
    pub(crate) fn of(name: &OsStr) -> Option<Self> {
        let name = name.to_str()?;
        let rest = name.strip_prefix('.').unwrap_or(name).strip_prefix(PREFIX)?;
        let [machine, process, random] = rest.split('-').collect::<Vec<_>>().try_into().ok()?;
        let is_random = random.len() == RANDOM && random.chars().all(|c| c.is_ascii_alphanumeric());
        let is_machine = machine.len() == 8 && machine.chars().all(|c| c.is_ascii_hexdigit());
        let is_process = process.chars().all(|c| c.is_ascii_digit());
        if !(is_random && is_machine && is_process) {
            return None;
        }
        let machine = Machine(u32::from_str_radix(machine, 16).ok()?);
        Some(Self { machine, process: process.parse().ok()? })
    }
}

/// The name without the random characters.
impl fmt::Display for Maker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{:08x}-{}-", self.machine.0, self.process)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_which_process_made_the_file() {
        let maker = Maker { machine: Machine(0x0bad_cafe), process: 1234 };
        assert_eq!(maker.to_string(), "xmem-0badcafe-1234-");
        for name in ["xmem-0badcafe-1234-aB3dE6", ".xmem-0badcafe-1234-aB3dE6"] {
            assert_eq!(Maker::of(OsStr::new(name)), Some(maker), "{name}");
        }
    }

    #[test]
    fn other_names_are_not_recognized() {
        let names = [
            "",
            "xmem-",
            "xmem-aB3dE6",
            "xmem-results-2024",
            "xmem-0badcafe-1234-",
            "xmem-0badcafe-1234-aB3dE6.json",
            "xmem-0badcafe-1234-aB3-dE",
            "xmem-0badcafe-+234-aB3dE6",
            "xmem-0badcafe-99999999999-aB3dE6",
            "xmem-+badcafe-1234-aB3dE6",
            "..xmem-0badcafe-1234-aB3dE6",
        ];
        for name in names {
            assert_eq!(Maker::of(OsStr::new(name)), None, "{name}");
        }
    }

    #[test]
    fn boots_and_containers_are_machines_of_their_own() {
        let boot = "3b1f0c2a-74f7-4f3c-9a5f-000000000000\n";
        let host = Machine::of(boot, "pid:[4026531836]");
        assert_ne!(host, Machine::of(boot, "pid:[4026532201]"));
        assert_ne!(host, Machine::of("4b1f0c2a-…", "pid:[4026531836]"));
        assert_eq!(Machine::of("", "pid:[4026531836]"), Machine(0));
        assert_eq!(Machine::of(boot, ""), Machine(0));
        assert!(!Machine(0).is_current());
    }
}
