//! A Python file that applies measures to a script, without xmem.

use crate::measures::{Measure, measures, shared_sources};
use std::fmt::Write as _;

/// What begins a line that is left out: the constants are xmem's, and the shared files are part of the whole.
const CONSTANTS: [&str; 8] = [
    "NAME = ",
    "TITLE = ",
    "CHANGES = ",
    "NEEDS = ",
    "OPTION = ",
    "GPUS = ",
    "CODE = ",
    "EXCLUDES = ",
];

/// The text of a file that runs a script with measures applied: `python FILE train.py --batch-size 8`. `variables` are set in
/// its environment.
///
/// It consists of the sources of the measures, in the order in which they are installed.
#[must_use]
pub fn wrapper(wanted: &[Measure], variables: &[(String, String)]) -> String {
    let order = measures();
    let place = |measure: &Measure| order.iter().position(|info| info.name == measure.name());
    let mut wanted: Vec<&Measure> = wanted.iter().collect();
    wanted.sort_by_key(|measure| place(measure));
    let set = variables.iter().map(|(name, value)| format!("{name}={value}"));
    let names: Vec<String> = wanted.iter().map(ToString::to_string).chain(set).collect();
    let mut text = format!(
        "\"\"\"Runs a training script with less GPU memory: {}.\n\n    python THIS_FILE train.py ARGUMENTS\n\n\
         Written by xmem fit, and independent of it.\n\"\"\"\n",
        names.join(", ")
    );
    let shared = shared_sources(&wanted).into_iter().map(|source| (None, source));
    let parts: Vec<(Option<&Measure>, &str)> = shared
        .chain(wanted.iter().map(|&measure| (Some(measure), measure.info().source)))
        .collect();
    let mut imports: Vec<&str> = vec!["import runpy", "import sys"];
    let mut bodies = String::new();
    for (measure, source) in parts {
        let body = body(source, &mut imports);
        let heading = measure.map_or_else(|| "What the measures share.".to_owned(), Measure::title);
        let body = match measure {
            Some(measure) => {
                body.replacen("def install(", &format!("def {}(", function(measure)), 1)
            }
            None => body,
        };
        let _ = write!(bodies, "\n\n# {heading}\n\n\n{}\n", body.trim());
    }
    imports.sort_unstable();
    imports.dedup();
    text += &format!("\n{}\n{bodies}", imports.join("\n"));
    text += "\n\ndef main():\n";
    for (name, value) in variables {
        let _ = writeln!(text, "    os.environ[{name:?}] = {value:?}");
    }
    text += "    import torch\n\n";
    text += "    def report(name):\n        return lambda places, text: print(f\"{name}: {text}\", file=sys.stderr)\n\n";
    for measure in &wanted {
        let (option, name) = (measure.option().unwrap_or_default(), measure.name());
        let _ =
            writeln!(text, "    {}(torch, \"{option}\", report(\"{name}\"))", function(measure));
    }
    text += "    sys.argv = sys.argv[1:]\n    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))\n";
    text += "    runpy.run_path(sys.argv[0], run_name=\"__main__\")\n\n\nif __name__ == \"__main__\":\n    main()\n";
    match imports.contains(&"import os") {
        true => text,
        false => text.replacen("import runpy\n", "import os\nimport runpy\n", 1),
    }
}

/// The name of the function that installs a measure.
fn function(measure: &Measure) -> String {
    format!("install_{}", measure.name().replace('-', "_"))
}

/// A source without its docstring, constants and imports; those of the standard library are added to `imports`.
fn body<'a>(source: &'a str, imports: &mut Vec<&'a str>) -> String {
    let without_docstring = source
        .strip_prefix("\"\"\"")
        .and_then(|rest| rest.split_once("\"\"\""))
        .map_or(source, |(_, rest)| rest);
    let mut body = String::new();
    let mut in_import = false;
    for line in without_docstring.lines() {
        if in_import {
            in_import = !line.starts_with(')');
        } else if line.starts_with("from .") {
            in_import = line.ends_with('(');
        } else if line.starts_with("import ") || line.starts_with("from ") {
            imports.push(line);
        } else if !CONSTANTS.iter().any(|constant| line.starts_with(constant)) {
            body += line;
            body.push('\n');
        }
    }
    body
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_all_measures_is_python_without_xmem() {
        let all: Vec<Measure> = measures().iter().map(Measure::of).collect();
        assert!(!all.is_empty());
        let text = wrapper(&all, &[("A".to_owned(), "x:True".to_owned())]);
        assert!(text.contains("os.environ[\"A\"] = \"x:True\""), "{text}");
        assert!(!text.contains("from .") && !text.contains("import xmem"), "{text}");
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("wrapper.py");
        std::fs::write(&file, &text).expect("written");
        let check = "import ast, sys; tree = ast.parse(open(sys.argv[1]).read())\n\
            names = [n.name for n in tree.body if hasattr(n, 'name')]\n\
            assert len(names) == len(set(names)), names";
        let status = std::process::Command::new("python3").args(["-c", check]).arg(&file).status();
        assert!(status.expect("python3").success());
    }
}
