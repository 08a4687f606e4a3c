//! The inputs of CI's stages: paths that exist, of stages that exist.

use super::findings::Findings;
use std::path::Path;

/// The stages.
pub(crate) const FILE: &str = ".ci/run";

/// Checks the table `INPUTS` of the stages.
pub(crate) fn check(text: &str, exists: impl Fn(&Path) -> bool, findings: &mut Findings) {
    let table = text.split("declare -A INPUTS=(").nth(1);
    let Some(table) = table.and_then(|rest| rest.split("\n)").next()) else {
        findings.add(FILE, "has no table INPUTS");
        return;
    };
    for line in table.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let entry = line.strip_prefix('[').and_then(|rest| rest.split_once("]=\""));
        let Some((stage, paths)) = entry else {
            findings.add(FILE, format!("`{line}` is not a row of INPUTS"));
            continue;
        };
        if !text.contains(&format!("\nstage_{stage}() {{")) {
            findings.add(FILE, format!("INPUTS names the stage `{stage}`, which does not exist"));
        }
        for path in paths.trim_end_matches('"').split(' ') {
            if !exists(Path::new(path)) {
                findings.add(FILE, format!("INPUTS names `{path}`, which does not exist"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_paths_and_stages_that_exist() {
        let found = |row: &str| {
            let text = format!("declare -A INPUTS=(\n    {row}\n)\n\nstage_web() {{\n}}\n");
            let mut findings = Findings::default();
            check(&text, |path| path == Path::new("web"), &mut findings);
            findings.lines().len()
        };
        assert_eq!(found("[web]=\"web\""), 0);
        assert_eq!(found("[web]=\"web crates/gone\""), 1);
        assert_eq!(found("[page]=\"web\""), 1);
        assert_eq!(found("web"), 1);
    }
}
