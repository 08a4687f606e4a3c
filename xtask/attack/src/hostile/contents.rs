//! Files that are not what a reader expects.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// A file.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) name: &'static str,
    pub(super) input: Input,
}

/// Where a reader finds it.
#[derive(Debug)]
pub(super) enum Input {
    Bytes(Vec<u8>),
    Path(PathBuf),
    /// A named pipe that has no writer.
    Pipe,
    /// A path at which there is nothing.
    Folder,
}

/// A text that paints a verdict on a terminal.
const PAINT: &str = "\u{1b}[2K\u{1b}[32mFITS\u{1b}[0m\r\u{8}\u{202e}";

/// All of them.
pub(super) fn all() -> Vec<Content> {
    let bytes = |name, bytes: Vec<u8>| Content { name, input: Input::Bytes(bytes) };
    let text = |name, text: &str| bytes(name, text.as_bytes().to_vec());
    let path = |name, path: &str| Content { name, input: Input::Path(path.into()) };
    let spaces = vec![b' '; 16 << 20];
    let zeros = vec![0; 16 << 20];
    let list = br#"{"op":"alloc","id":1,"size":1},"#.repeat(1 << 19);
    let event =
        br#"{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":1,"dur":1},"#.repeat(1 << 18);
    let around = |before: &[u8], middle: &[u8], times: usize, after: &[u8]| {
        [zstd_frame(before), zstd_frame(middle).repeat(times), zstd_frame(after)].concat()
    };
    vec![
        bytes("empty", Vec::new()),
        text("a line end", "\n"),
        path("/dev/zero", "/dev/zero"),
        path("a folder", "/proc/self/fdinfo"),
        Content { name: "nothing", input: Input::Folder },
        Content { name: "a pipe without a writer", input: Input::Pipe },
        bytes("64 KiB of zeros", vec![0; 64 << 10]),
        bytes("64 KiB of 0xff", vec![0xff; 64 << 10]),
        text("a number", "1e999"),
        text("null", "null"),
        text("an empty list", "[]"),
        text("an empty object", "{}"),
        bytes("a million open lists", b"[".repeat(1_000_000)),
        bytes("a million open objects", b"{\"a\":".repeat(1_000_000)),
        bytes(
            "a million lists in each other",
            [b"[".repeat(1_000_000), b"]".repeat(1_000_000)].concat(),
        ),
        bytes("a text without an end", [&b"[\""[..], &b"x".repeat(4 << 20)].concat()),
        bytes("events in a million lists", {
            let open = [&b"{\"traceEvents\":"[..], &b"[".repeat(1_000_000)].concat();
            [open, b"]".repeat(1_000_000), b"}".to_vec()].concat()
        }),
        text("an event with huge numbers", &trace(r#""ts":1e308,"dur":1e308"#, "a")),
        text(
            "an event before the beginning of time",
            &trace(r#""ts":-9223372036854775808,"dur":-1"#, "a"),
        ),
        text("an iteration that ends before it begins", ITERATION),
        text(
            "names with control characters",
            &trace(r#""ts":1,"dur":1"#, "\\u001b[32mFITS\\u001b[0m\\r\\u202e"),
        ),
        text("control characters", PAINT),
        bytes("a zstd bomb of zeros, 64 GiB", zstd_frame(&zeros).repeat(4096)),
        bytes("a zstd bomb of spaces in a list, 16 GiB", around(b"[", &spaces, 1024, b"]")),
        bytes(
            "a zstd bomb of spaces in events, 16 GiB",
            around(b"{\"traceEvents\":[", &spaces, 1024, b"]}"),
        ),
        bytes("a zstd bomb of operations", around(b"[", &list, 256, b"{}]")),
        bytes("a zstd bomb of events", around(b"{\"traceEvents\":[", &event, 256, b"{}]}")),
        bytes(
            "a zstd bomb in a text",
            around(b"{\"traceEvents\":[{\"name\":\"", &spaces, 1024, b"\"}]}"),
        ),
        bytes("a gzip bomb of zeros, 4 GiB", gzip_member(&zeros).repeat(256)),
        bytes("a gzip bomb of spaces in a list, 4 GiB", {
            [gzip_member(b"["), gzip_member(&spaces).repeat(256), gzip_member(b"]")].concat()
        }),
        bytes("zstd in zstd", zstd_frame(&zstd_frame(b"[]"))),
        bytes("zstd cut off", zstd_frame(&event)[..500].to_vec()),
        bytes("zstd frames with nothing in them", zstd_frame(b"").repeat(100_000)),
        bytes("zstd frames that are skipped", {
            [&b"\x50\x2a\x4d\x18\xff\xff\xff\x7f"[..], b"[]"].concat()
        }),
        bytes("a zstd frame that declares 2^63 bytes", {
            b"\x28\xb5\x2f\xfd\xe0\x00\x00\x00\x00\x00\x00\x00\x80\x01\x00\x00".to_vec()
        }),
        text(
            "operations with huge numbers",
            r#"[{"op":"alloc","id":18446744073709551615,"size":18446744073709551615}]"#,
        ),
        text(
            "operations that free what is not there",
            r#"[{"op":"free","id":1},{"op":"free","id":1}]"#,
        ),
        text("operations with negative sizes", r#"[{"op":"alloc","id":1,"size":-1}]"#),
        bytes(
            "a million operations in a text",
            [&b"["[..], &b"\"alloc\",".repeat(500_000), b"1]"].concat(),
        ),
        text(
            "a table with huge numbers",
            "id,lower,upper,size\na,0,1,18446744073709551615\nb,0,1,18446744073709551615\n",
        ),
        text(
            "a table of blocks that end before they begin",
            "id,lower,upper,size\na,4294967295,0,1\n",
        ),
        text("a table whose rows have the same name", "id,lower,upper,size\na,0,1,1\na,0,1,1\n"),
        bytes(
            "a table of a million columns",
            [&b"id,lower,upper,size"[..], &b",x".repeat(1_000_000)].concat(),
        ),
        bytes(
            "a table of a million open quotes",
            [&b"id,lower,upper,size\n"[..], &b"\"".repeat(999_999)].concat(),
        ),
        text("a plan with addresses beyond any memory", &hints(u64::MAX, 1)),
        text("a plan with a size beyond any memory", &hints(0, u64::MAX)),
        text("a plan whose peak is another", &hints(1, 1)),
        bytes(
            "a plan of a million lists",
            [&b"{\"schema\":\"xmem.plan-hints/2\",\"iteration\":"[..], &b"[".repeat(1_000_000)]
                .concat(),
        ),
        bytes("a pickle that refers to itself", b"\x80\x04]\x94h\x00a.".to_vec()),
        bytes(
            "a pickle of a million lists",
            [&b"\x80\x04"[..], &b"]".repeat(1_000_000), b"."].concat(),
        ),
        bytes(
            "a pickle of a million marks",
            [&b"\x80\x04"[..], &b"(".repeat(1_000_000), b"."].concat(),
        ),
        bytes(
            "a pickle with a text of 2^63 bytes",
            b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7f.".to_vec(),
        ),
        bytes(
            "a pickle with bytes of 2^63 bytes",
            b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7f.".to_vec(),
        ),
        bytes("a pickle with an integer of 2^31 bytes", b"\x80\x04\x8b\xff\xff\xff\x7f.".to_vec()),
        bytes("a pickle that doubles itself", doubling_pickle()),
        bytes(
            "a pickle that calls a function",
            b"\x80\x04cposix\nsystem\n\x8c\x04true\x85R.".to_vec(),
        ),
        bytes(
            "a pickle of a snapshot with nothing in it",
            b"\x80\x04}(\x8c\x08segments](\x8c\x0ddevice_traces]u.".to_vec(),
        ),
        bytes("TOML of a million lists", [&b"a = "[..], &b"[".repeat(1_000_000)].concat()),
        bytes("TOML of a million dots", [&b"a"[..], &b".a".repeat(1_000_000), b" = 1"].concat()),
        bytes("TOML of a million tables", b"[[device]]\n".repeat(1_000_000)),
        bytes("YAML that doubles itself", doubling_yaml()),
        bytes("YAML of a million sequences", b"- ".repeat(1_000_000)),
        bytes("YAML of a million documents", b"---\na: b\n".repeat(1_000_000)),
        text("a device with huge numbers", DEVICE),
        bytes("a million lines", b"/nothing/here.json\n".repeat(1_000_000)),
        bytes("a line of 4 MiB", b"x".repeat(4 << 20)),
        bytes(
            "lines with control characters",
            format!("/nothing/{PAINT}.json\n").repeat(3).into_bytes(),
        ),
    ]
}

/// Text that xmem inflates of a compressed file, whatever it is compressed from: the bounds of "Sizes" in
/// docs/security.md.
const INFLATED: (u64, u64) = (64 << 20, 250);

/// The bytes that xmem may read of a file.
pub(super) fn read_size(path: &Path) -> u64 {
    let Ok(bytes) = std::fs::metadata(path)
        .and_then(|file| if file.is_file() { std::fs::read(path) } else { Ok(Vec::new()) })
    else {
        return 0;
    };
    let length = bytes.len() as u64;
    match bytes[..] {
        [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd, ..] => INFLATED.0 + INFLATED.1 * length,
        _ => length,
    }
}

/// A trace of one operator.
fn trace(times: &str, name: &str) -> String {
    format!(
        r#"{{"schemaVersion":1,"traceEvents":[{{"ph":"X","cat":"cpu_op","name":"{name}","pid":1,"tid":1,{times},"args":{{"Ev Idx":0}}}}]}}"#
    )
}

/// A plan of one request, whose peak is a byte.
fn hints(offset: u64, size: u64) -> String {
    format!(
        r#"{{"schema":"xmem.plan-hints/2","input":"x","scope":"all","planner":"bestfit","peak_bytes":1,"lasting_bytes":0,"mark":null,"warm_up":[],"iteration":[{{"ordinal":0,"module":null,"op":"","nth":0,"least_bytes":0,"size_bytes":{size},"arena":"iteration","offset_bytes":{offset}}}]}}"#
    )
}

/// Three events, of which the annotation of an iteration has a negative duration.
const ITERATION: &str = r###"{"schemaVersion":1,"traceEvents":[
    {"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":1,"tid":1,"ts":100,"dur":-50,"args":{}},
    {"ph":"X","cat":"cpu_op","name":"aten::empty","pid":1,"tid":1,"ts":60,"dur":1,"args":{}},
    {"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]","pid":1,"tid":1,"ts":60.5,"args":{"Total Allocated":64,"Bytes":64,"Device Id":-1,"Device Type":0,"Addr":4096,"Ev Idx":1}}
    ]}"###;

const DEVICE: &str = "schema = \"xmem.device/1\"\n[[device]]\nname = \"x\"\nmemory = 99999999999999999999999\n\
    sms = -1\ncompute-capability = \"99999999999.9\"\n";

/// Lists that contain the list before twice.
fn doubling_pickle() -> Vec<u8> {
    let mut pickle = b"\x80\x04]\x94".to_vec();
    for level in 0..200_u8 {
        pickle.extend([b'(', b'h', level, b'h', level, b'l', 0x94]);
    }
    pickle.push(b'.');
    pickle
}

/// A list of two lists of two lists, and so on, by anchors: 2^40 entries.
fn doubling_yaml() -> Vec<u8> {
    let mut text = String::from("a0: &a0 [x, x]\n");
    for level in 1..40 {
        let below = level - 1;
        text += &format!("a{level}: &a{level} [*a{below}, *a{below}]\n");
    }
    text.into_bytes()
}

fn zstd_frame(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).expect("memory takes everything")
}

fn gzip_member(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).expect("memory takes everything");
    encoder.finish().expect("memory takes everything")
}
