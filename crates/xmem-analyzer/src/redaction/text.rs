//! What of a text may stay.

/// Beginnings of annotations that PyTorch, its distributed parts and the recorder make.
const OF_PYTORCH: [&str; 18] = [
    "Optimizer.",
    "ProfilerStep#",
    "enumerate(DataLoader)#",
    "enumerate(DataPipe)#",
    "FSDP::",
    "FullyShardedDataParallel.",
    "DistributedDataParallel.",
    "nccl:",
    "gloo:",
    "mpi:",
    "c10d::",
    "record_param_comms",
    "aten::",
    "autograd::",
    "torch::",
    "Torch-Compiled Region",
    "## Call CompiledFxGraph",
    "xmem::",
];

/// Arguments of operators that are words.
const WORDS: [&str; 22] = [
    "True",
    "False",
    "None",
    "cpu",
    "cuda",
    "meta",
    "nan",
    "inf",
    "-inf",
    "none",
    "mean",
    "sum",
    "tanh",
    "same",
    "valid",
    "zeros",
    "reflect",
    "replicate",
    "circular",
    "floor",
    "trunc",
    "Strided",
];

/// Returns whether an annotation is one of PyTorch's own.
pub(super) fn is_of_pytorch(name: &str) -> bool {
    OF_PYTORCH.iter().any(|beginning| name.starts_with(beginning))
}

/// A text of PyTorch's, without paths and addresses: each word with a slash at its beginning, a scheme or an `@`.
pub(super) fn plain(text: &str) -> String {
    if !text.contains(['/', '@', '\\', '~']) {
        return text.to_owned();
    }
    let words = text.split(' ').map(|word| match word {
        _ if word.contains("://") || word.contains(['@', '\\']) => "",
        _ if word.contains('/')
            && word.trim_start_matches(['(', '\'', '`', '~']).starts_with('/') =>
        {
            base_name(word)
        }
        _ => word,
    });
    words.collect::<Vec<_>>().join(" ")
}

/// A key: the names of modules have dots and, rarely, other characters.
pub(super) fn identifier(text: &str) -> String {
    plain(text)
}

/// The last part of a path.
pub(super) fn base_name(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

/// The name of a Python call: the file as its base name, unless it is PyTorch's.
pub(super) fn python(name: &str) -> String {
    if name.starts_with("torch/") || name.starts_with('<') {
        return name.to_owned();
    }
    match name.find(".py(").or_else(|| name.find('(')) {
        Some(end) => base_name(&name[..end]).to_owned() + &name[end..],
        None => plain(name),
    }
}

/// The recorded value of an argument: numbers, lists of them, devices, and words that are known.
pub(super) fn concrete(text: &str) -> String {
    let is_number = |c: char| c.is_ascii_digit() || "[](){}+-.,e j".contains(c);
    let of_device = text.strip_prefix("cuda:").or_else(|| text.strip_prefix("cpu:"));
    let is_device = of_device.is_some_and(|n| n.bytes().all(|byte| byte.is_ascii_digit()));
    let is_known = |text: &str| WORDS.contains(&text);
    let list = text.trim_start_matches('[').trim_end_matches(']');
    let are_known = list.split(", ").all(|item| is_known(item) || item.chars().all(is_number));
    if is_device || are_known { text.to_owned() } else { String::new() }
}

/// The value of a setting: numbers, names and lists of them.
pub(super) fn setting(text: &str) -> String {
    let is_kept = |c: char| c.is_ascii_alphanumeric() || "_.,:;|[]<>+ -".contains(c);
    let is_setting = text.len() <= 1000 && text.chars().all(is_kept);
    if is_setting { text.to_owned() } else { String::new() }
}

/// Why a recording ended: the number of an exit or the name of a signal, or the type and the line of an exception, as
/// today's recorder writes them. Older ones wrote messages.
pub(super) fn end(text: &str) -> String {
    let is_word = |word: &str| word.chars().all(|c| c.is_alphanumeric() || "_-.<>".contains(c));
    let is_line = |place: &str| {
        let place = place.rsplit_once(':');
        place.is_some_and(|(file, line)| is_word(file) && line.parse::<u64>().is_ok())
    };
    let is_known = text.parse::<i64>().is_ok()
        || text.strip_prefix("SIG").is_some_and(is_word)
        || text.split_once(" at ").is_some_and(|(kind, place)| is_word(kind) && is_line(place));
    if is_known { text.to_owned() } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_addresses_do_not_stay() {
        for (text, expected) in [
            ("aten::mm", "aten::mm"),
            ("Torch-Compiled Region: 0/0", "Torch-Compiled Region: 0/0"),
            ("cannot load /opt/me/lib.so: no file", "cannot load lib.so: no file"),
            ("see https://me:x@host/a and more", "see  and more"),
            ("me@host", ""),
        ] {
            assert_eq!(plain(text), expected, "{text}");
        }
        for (text, expected) in [
            ("[2, 3]", "[2, 3]"),
            ("-1", "-1"),
            ("1e-05", "1e-05"),
            ("[True, False]", "[True, False]"),
            ("tanh", "tanh"),
            ("cuda:1", "cuda:1"),
            ("hunter2", ""),
            ("cuda:x", ""),
            ("[1, hunter2]", ""),
            ("", ""),
        ] {
            assert_eq!(concrete(text), expected, "{text}");
        }
        for (text, expected) in [
            ("3", "3"),
            ("SIGTERM", "SIGTERM"),
            ("ValueError at train.py:12", "ValueError at train.py:12"),
            ("ValueError: at a:12", ""),
            ("cannot at once", ""),
        ] {
            assert_eq!(end(text), expected, "{text}");
        }
    }
}
