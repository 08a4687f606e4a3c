//! Options of the Python interpreter that disable the hook.

use std::ffi::OsStr;
use std::path::Path;

/// The first option of a Python command line that disables the hook, if it has one: `-E` and `-I` ignore
/// the environment and with it `PYTHONPATH`, `-S` does not import `site` and with it `sitecustomize`
/// (Python documentation, "Command line and environment").
pub(crate) fn option_against_the_hook<'a>(
    program: &OsStr,
    arguments: impl IntoIterator<Item = &'a OsStr>,
) -> Option<String> {
    let name = Path::new(program).file_name()?.to_str()?;
    let rest = name.strip_prefix("python").or_else(|| name.strip_prefix("pypy"))?;
    if !rest.chars().all(|c| c.is_ascii_digit() || c == '.' || c == 't') {
        return None;
    }
    let mut arguments = arguments.into_iter().map(OsStr::to_str);
    while let Some(Some(argument)) = arguments.next() {
        let letters =
            argument.strip_prefix('-').filter(|l| !l.is_empty() && !l.starts_with('-'))?;
        for (at, letter) in letters.char_indices() {
            match letter {
                'E' | 'I' | 'S' => return Some(format!("-{letter}")),
                // All that follows belongs to the script or module.
                'c' | 'm' => return None,
                // The value is the rest, or the next argument.
                'W' | 'X' => {
                    if at + 1 == letters.len() {
                        arguments.next();
                    }
                    break;
                }
                _ => {}
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_options_of_python_itself_count() {
        let rows: [(&[&str], Option<&str>); 14] = [
            (&["python", "-I", "t.py"], Some("-I")),
            (&["/usr/bin/python3.11", "-u", "-E", "t.py"], Some("-E")),
            (&["python3", "-uS", "t.py"], Some("-S")),
            (&["python3", "-W", "ignore", "-I", "t.py"], Some("-I")),
            (&["python3.13t", "-Xdev", "-I", "t.py"], Some("-I")),
            (&["python", "-W", "-I", "t.py"], None),
            (&["python", "t.py", "-I"], None),
            (&["python", "-m", "train", "-E"], None),
            (&["python", "-umtrain", "-E"], None),
            (&["python", "-c", "print()", "-S"], None),
            (&["python", "-"], None),
            (&["python"], None),
            (&["torchrun", "-I"], None),
            (&["pythonista", "-I"], None),
        ];
        for (command, expected) in rows {
            let found = option_against_the_hook(
                OsStr::new(command[0]),
                command[1..].iter().map(OsStr::new),
            );
            assert_eq!(found.as_deref(), expected, "{command:?}");
        }
    }
}
