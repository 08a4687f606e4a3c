//! The library itself against plans recorded with PyTorch's CUDA build, kernels stubbed.
//!
//! It is not part of the repository, so that this runs where one is named:
//! `XMEM_TEST_CUDNN=/path/to/libcudnn.so.9 cargo test -p xmem-cudnn --test library -- --ignored`.
#![expect(clippy::disallowed_methods, reason = "the library is named in the environment")]

use std::fmt::Write as _;

const RECORDED: &str = include_str!("../../xmem-convolutions/tests/data/cudnn-recorded.tsv");

/// The GPU of the recordings, a GeForce RTX 3060.
const PROPERTIES: &str = include_str!("data/rtx3060.json");

#[test]
#[ignore = "needs libcudnn.so.9 of cuDNN 9.19: name it in XMEM_TEST_CUDNN"]
fn the_first_plan_is_the_one_that_pytorch_took() {
    let library = std::env::var_os("XMEM_TEST_CUDNN").expect("XMEM_TEST_CUDNN names a library");
    let mut questions = String::from(PROPERTIES);
    let mut expected = Vec::new();
    for row in RECORDED.lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = row.split('\t').collect();
        let [_, pass, layout, x, w, y, stride, padding, dilation, _, _, bytes] = columns[..] else {
            panic!("a row of other than 12 columns: {row}");
        };
        writeln!(questions, "{pass} f32 {layout} {x} {w} {y} {stride} {padding} {dilation}")
            .expect("a string takes everything");
        expected.push((bytes, row));
    }
    let mut answers = Vec::new();
    xmem_cudnn::serve(library.as_ref(), questions.as_bytes(), &mut answers).expect("answers");
    let answers = String::from_utf8(answers).expect("text");
    let mut lines = answers.lines();
    let version = lines.next().expect("a version");
    assert!(version.starts_with("cudnn 9.19."), "recorded with 9.19, this is {version}");
    let lines: Vec<&str> = lines.collect();
    assert_eq!(lines.len(), expected.len());
    for (line, (bytes, row)) in lines.iter().zip(expected) {
        assert_eq!(line.split(' ').nth(1), Some(bytes), "{row}: {line}");
    }
}
