//! Pickle's long integers: little-endian two's complement of any length.

/// The number, if 64 bits hold it, with or without a sign. No bytes mean zero (pickle's
/// `decode_long`).
pub(super) fn from_twos_complement(bytes: &[u8]) -> Option<i128> {
    const RANGE: std::ops::RangeInclusive<i128> = i64::MIN as i128..=u64::MAX as i128;
    let Some(&last) = bytes.last() else { return Some(0) };
    let sign = if last & 0x80 == 0 { 0x00 } else { 0xff };
    let (low, high) = bytes.split_at(bytes.len().min(size_of::<i128>()));
    if high.iter().any(|&byte| byte != sign) {
        return None;
    }
    let mut wide = [sign; size_of::<i128>()];
    wide[..low.len()].copy_from_slice(low);
    let number = i128::from_le_bytes(wide);
    ((number < 0) == (sign == 0xff) && RANGE.contains(&number)).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::from_twos_complement;

    #[test]
    fn any_length_is_read_and_what_64_bits_cannot_hold_is_told() {
        for (bytes, number) in [
            (&[][..], Some(0)),
            (&[0xff], Some(-1)),
            (&[0x80], Some(-128)),
            (&[0xff, 0x00], Some(255)),
            (&[0x00, 0x00, 0x00, 0x00, 0x00, 0x7f, 0x00], Some(0x7f00_0000_0000)),
            (&[0xff; 12], Some(-1)),
            (&[0, 0, 0, 0, 0, 0, 0, 0x80], Some(i64::MIN.into())),
            (&[0, 0, 0, 0, 0, 0, 0, 0x80, 0xff], Some(i64::MIN.into())),
            (&[0, 0, 0, 0, 0, 0, 0, 0x80, 0x00], Some(1 << 63)),
            (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00], Some(u64::MAX.into())),
            (&[0, 0, 0, 0, 0, 0, 0, 0x7f, 0xff], None),
            (&[0, 0, 0, 0, 0, 0, 0, 0, 1], None),
            (&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x00], None),
            (&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x00], Some(1)),
            (&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x01], None),
        ] {
            assert_eq!(from_twos_complement(bytes), number, "{bytes:02x?}");
        }
    }
}
