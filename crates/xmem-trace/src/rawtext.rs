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
