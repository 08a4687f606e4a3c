//! Files that were compressed by hand.

use crate::written::{example, written};
use expect_test::expect;
use std::error::Error;
use std::io::Write;
use xmem_snapshot::{Compression, Limits, SnapshotError, read};
use xmem_types::Bytes;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 19).unwrap()
}

type Compress = fn(&[u8]) -> Vec<u8>;

const COMPRESSORS: [(Compression, Compress); 2] =
    [(Compression::Gzip, gzip), (Compression::Zstd, zstd)];

#[test]
fn a_compressed_snapshot_is_read_like_a_plain_one() {
    let plain = written(&example());
    for (compression, compress) in COMPRESSORS {
        let (snapshot, diagnostics) = read(&compress(&plain), &Limits::default()).unwrap();
        assert!(snapshot == example(), "{compression}");
        assert!(diagnostics.is_empty(), "{compression}: {diagnostics:?}");
        // In two members or frames, as parallel compressors write.
        let (first, second) = plain.split_at(100);
        let parts = [compress(first), compress(second)].concat();
        assert!(read(&parts, &Limits::default()).unwrap().0 == example(), "{compression}");
    }
    // zstd may begin with a frame to be skipped.
    let skipped = [b"\x50\x2a\x4d\x18\x02\0\0\0??".as_slice(), &zstd(&plain)].concat();
    assert!(read(&skipped, &Limits::default()).unwrap().0 == example());
}

#[test]
fn compressed_data_that_is_cut_off_or_damaged_is_told() {
    let plain = written(&example());
    for (expected, compress) in COMPRESSORS {
        let whole = compress(&plain);
        for length in 4..whole.len() {
            match read(&whole[..length], &Limits::default()) {
                Err(SnapshotError::Compressed { compression, inflated, .. }) => {
                    assert_eq!(compression, expected);
                    assert!(inflated.get() <= plain.len() as u64);
                }
                other => panic!("{length} bytes of {expected}: {:?}", other.map(|_| ())),
            }
        }
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x55;
            // Checksums are optional and headers have free fields: no panic is all there is to say.
            let _ = read(&damaged, &Limits::default());
        }
    }
    let cut = read(&gzip(&plain)[..200], &Limits::default()).unwrap_err();
    assert!(cut.source().is_some());
    expect!["the gzip data is damaged or cut off (after 195 B of inflated data); copy the file again, or compress it again"].assert_eq(&cut.to_string());
}

#[test]
fn what_inflates_to_more_than_the_limit_is_refused() {
    let limits = Limits { memory: Bytes::mib(1), ..Limits::default() };
    let zeros = vec![0; 100 << 20];
    for (compression, compress) in COMPRESSORS {
        let bomb = compress(&zeros);
        assert!(bomb.len() < 200_000);
        match read(&bomb, &limits) {
            Err(SnapshotError::TooLarge { at, limit }) => {
                assert_eq!((at, limit), ((1 << 20) + 1, Bytes::mib(1)));
            }
            other => panic!("{compression}: {:?}", other.map(|_| ())),
        }
    }
}

#[test]
fn what_is_inflated_counts_against_the_limit() {
    let plain = written(&example());
    let needs = |bytes: &[u8]| {
        let fits = |memory: &u64| {
            read(bytes, &Limits { memory: Bytes(*memory), ..Limits::default() }).is_ok()
        };
        (0..100_000).find(fits).expect("100 kB are enough")
    };
    let more = needs(&zstd(&plain)) - needs(&plain);
    assert_eq!(more, plain.len() as u64);
}

#[test]
fn something_else_compressed_is_told() {
    let twice = gzip(&gzip(&written(&example())));
    for file in [gzip(b"{\"traceEvents\": []}"), zstd(b""), twice] {
        match read(&file, &Limits::default()) {
            Err(SnapshotError::NotAPickle { .. } | SnapshotError::Empty) => {}
            other => panic!("{:?}", other.map(|_| ())),
        }
    }
}
