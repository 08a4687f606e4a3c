//! The seal of a recording.

use std::io::Write as _;
use xmem_trace::{ReadOptions, read_bytes};
use xmem_types::{Sealed, SealingWriter};

const TEXT: &str = "{\"schemaVersion\": 1,\n\"traceEvents\": [\n\
    {\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::add\", \"pid\": 1, \"tid\": 1, \"ts\": 1, \"dur\": 2}\n],\n\
    \"traceName\": \"t\"\n}\n";

fn sealed() -> String {
    let mut to = SealingWriter::new(Vec::new());
    to.write_all(TEXT.as_bytes()).expect("written");
    String::from_utf8(to.finish(true).expect("written")).expect("text")
}

fn read(bytes: &[u8]) -> Sealed {
    read_bytes(bytes, &ReadOptions::default()).expect("a trace").0.evidence.sealed
}

fn packed(text: &str) -> [Vec<u8>; 3] {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text.as_bytes()).expect("written");
    let zstd = zstd::encode_all(text.as_bytes(), 1).expect("compressed");
    [text.as_bytes().to_vec(), gzip.finish().expect("compressed"), zstd]
}

#[test]
fn a_changed_number_breaks_the_seal_however_the_file_is_compressed() {
    let changed = sealed().replace("\"dur\": 2", "\"dur\": 3");
    for (text, expected) in
        [(TEXT, Sealed::No), (&sealed(), Sealed::Intact), (&changed, Sealed::Broken)]
    {
        for bytes in packed(text) {
            assert_eq!(read(&bytes), expected, "{text}");
        }
    }
}

#[test]
fn a_recording_that_is_cut_off_has_no_seal() {
    let text = sealed();
    let end = text.find(",\n\"traceName").expect("there");
    assert_eq!(read(&text.as_bytes()[..end]), Sealed::No);
}
