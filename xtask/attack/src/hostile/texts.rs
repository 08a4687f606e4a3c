//! Hostile arguments of the command line.

/// A command line.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) name: &'static str,
    pub(super) arguments: Vec<String>,
    /// Whether it must not end with 0.
    pub(super) refused: bool,
}

/// Options with values that must be refused, after `replay {trace} --cudnn=model`.
const REFUSED: [(&str, &[&str]); 18] = [
    ("a capacity beyond 2^64", &["--capacity=99999999999999999999GiB"]),
    ("a negative capacity", &["--capacity=-1"]),
    ("a capacity that is no number", &["--capacity=NaN"]),
    ("no capacity", &["--capacity="]),
    ("a capacity of nothing", &["--capacity=0"]),
    ("a capacity of a byte", &["--capacity=1"]),
    ("a device with control characters", &["--device=\u{1b}[32mFITS\r"]),
    ("a device with a new line", &["--device=a100\nFITS"]),
    ("a release with control characters", &["--capacity=1GiB", "--torch=\u{1b}[32m2.6"]),
    ("a huge release", &["--capacity=1GiB", "--torch=99999999999.99999999999"]),
    ("a part of the memory that is no number", &["--capacity=1GiB", "--memory-fraction=NaN"]),
    ("more than all memory", &["--capacity=1GiB", "--memory-fraction=1e308"]),
    ("iterations backward", &["--capacity=1TiB", "--iterations=9..1"]),
    (
        "iterations beyond the last",
        &["--capacity=1TiB", "--iterations=18446744073709551614..18446744073709551615"],
    ),
    (
        "workspaces with huge numbers",
        &["--capacity=1TiB", "--cublas-workspace-config=:99999999999999999999:9"],
    ),
    ("no jobs", &["--capacity=1TiB", "--jobs=0"]),
    ("no threads", &["--capacity=1TiB", "--threads=0"]),
    ("a rule with control characters", &["--capacity=1TiB", "--no-rule=\u{1b}[2K"]),
];

/// Options with values that may be taken.
const TAKEN: [(&str, &[&str]); 5] = [
    ("3,000 threads", &["--capacity=1TiB", "--threads=3000"]),
    ("3,000 jobs", &["--capacity=1TiB", "--jobs=3000"]),
    ("as many blocks as there are numbers", &["--capacity=1TiB", "--top=18446744073709551615"]),
    ("the largest capacity", &["--capacity=18446744073709551615"]),
    ("inflated by a byte", &["--capacity=1TiB", "--inflate-limit=1"]),
];

/// Options of the allocator that no release takes.
const OPTIONS: [&str; 7] = [
    "max_split_size_mb:99999999999999999999999",
    "garbage_collection_threshold:NaN",
    "roundup_power2_divisions:[[[[[[[[",
    "roundup_power2_divisions:[256:99999999999999999999]",
    "\u{1b}[32mFITS\r:1",
    ":::::,,,,",
    "backend:\u{202e}evitan",
];

/// All of them.
pub(super) fn all() -> Vec<Text> {
    let command = |options: &[&str]| {
        let start = ["replay", "{trace}", "--cudnn=model"];
        start.iter().chain(options).map(|argument| (*argument).to_owned()).collect()
    };
    let text = |refused| {
        move |(name, options): (&'static str, &[&str])| Text {
            name,
            arguments: command(options),
            refused,
        }
    };
    let mut texts: Vec<Text> = REFUSED.into_iter().map(text(true)).collect();
    texts.extend(TAKEN.into_iter().map(text(false)));
    for option in OPTIONS {
        let given = format!("--alloc-conf={option}");
        texts.push(text(true)(("an allocator option that is none", &["--capacity=1TiB", &given])));
    }
    let long = format!("--alloc-conf={}", "a:1,".repeat(20_000));
    texts.push(text(true)(("allocator options of 80 KB", &["--capacity=1TiB", &long])));
    let brackets = format!("--alloc-conf=roundup_power2_divisions:{}", "[".repeat(100_000));
    texts.push(text(true)((
        "allocator options of 100,000 brackets",
        &["--capacity=1TiB", &brackets],
    )));
    let pattern = |name, pattern: String| Text {
        name,
        arguments: ["replay", &pattern, "--capacity=1GiB"].map(str::to_owned).to_vec(),
        refused: true,
    };
    texts.push(pattern("a pattern of 50,000 stars", "/nothing/".to_owned() + &"*".repeat(50_000)));
    texts.push(pattern(
        "a pattern of 10,000 brackets",
        "/nothing/".to_owned() + &"[".repeat(10_000),
    ));
    texts.push(pattern(
        "a name with control characters",
        "/nothing/\u{1b}[32mFITS\r\n\u{202e}".to_owned(),
    ));
    texts.push(pattern("a list of a list", "@@@@/nothing".to_owned()));
    texts
}
