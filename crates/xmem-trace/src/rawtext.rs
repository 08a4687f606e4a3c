//! JSON text handled as text.

/// Appends `raw` without the white space outside strings.
pub(crate) fn compact_into(raw: &str, out: &mut String) {
    let bytes = raw.as_bytes();
    let mut run = 0;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = string_end(bytes, at),
            b' ' | b'\n' | b'\r' | b'\t' => {
                out.push_str(&raw[run..at]);
                at += 1;
                run = at;
            }
            _ => at += 1,
        }
    }
    out.push_str(&raw[run..]);
}

/// The index after the string that opens at `start`, or the length if it does not end.
pub(crate) fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The index after the array that opens at `start`, or the length if it does not end.
pub(crate) fn array_end(bytes: &[u8], start: usize) -> usize {
    let mut depth = 0usize;
    let mut at = start;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at = string_end(bytes, at);
                continue;
            }
            b'[' | b'{' => depth += 1,
            b']' | b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

/// The index of the first byte from `from` on that is not white space.
#[inline]
pub(crate) fn skip_space(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = bytes.get(at) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_goes_only_outside_strings() {
        for (raw, compact) in [
            ("[[256, 1], [ ]]", "[[256,1],[]]"),
            ("[ \"a b\" ,\n\t\"c\\\" d\" ]", "[\"a b\",\"c\\\" d\"]"),
            ("[\"é è\", 1]", "[\"é è\",1]"),
            ("", ""),
            ("[\"open ", "[\"open "),
        ] {
            let mut out = String::new();
            compact_into(raw, &mut out);
            assert_eq!(out, compact);
        }
    }
}
