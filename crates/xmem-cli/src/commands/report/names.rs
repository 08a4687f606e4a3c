//! The names of the runs of a page: what tells them apart, and no more.

use super::picture::Loaded;
use super::settings::Setting;
use xmem::types::printable;

/// The name of each recording under each setting, in the order of recordings.
pub(super) fn all(recordings: &[Loaded], settings: &[Setting]) -> Vec<String> {
    let paths: Vec<&str> = recordings.iter().map(|loaded| &*loaded.name).collect();
    let options: Vec<&str> = settings.iter().map(|setting| &*setting.differs_by).collect();
    told_apart(&paths, &options)
}

fn told_apart(paths: &[&str], options: &[&str]) -> Vec<String> {
    let common = common_folders(paths);
    let named = |path: &str, options: &str| match (paths.len(), &*printable(&path[common..])) {
        (_, path) if options.is_empty() => path.to_owned(),
        (1, _) => options.to_owned(),
        (_, path) => format!("{path}, {options}"),
    };
    let pairs = paths.iter().flat_map(|path| options.iter().map(move |options| (path, options)));
    pairs.map(|(path, options)| named(path, options)).collect()
}

/// The bytes of the folders in which all paths lie; none for one path, whose folder is told as well.
fn common_folders(paths: &[&str]) -> usize {
    let [first, others @ ..] = paths else { return 0 };
    let is_common =
        |&end: &usize| others.iter().all(|other| other.get(..end) == Some(&first[..end]));
    let folders = first.match_indices('/').map(|(at, _)| at + 1).filter(|_| !others.is_empty());
    folders.take_while(is_common).last().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::told_apart;
    use expect_test::{Expect, expect};

    fn check(paths: &[&str], options: &[&str], expected: &Expect) {
        expected.assert_eq(&told_apart(paths, options).join("\n"));
    }

    #[test]
    fn runs_are_named_by_what_tells_them_apart() {
        check(&["runs/a/trace.json.gz"], &[""], &expect!["runs/a/trace.json.gz"]);
        check(
            &["runs/a/trace.json.gz"],
            &["t4-16g", "t4-16g, expandable_segments:True"],
            &expect![[r#"
                t4-16g
                t4-16g, expandable_segments:True"#]],
        );
        check(
            &["/x/runs/a/trace.json.gz", "/x/runs/ab/trace.json.gz"],
            &["t4-16g", "a100-40g"],
            &expect![[r#"
                a/trace.json.gz, t4-16g
                a/trace.json.gz, a100-40g
                ab/trace.json.gz, t4-16g
                ab/trace.json.gz, a100-40g"#]],
        );
        check(
            &["a.json", "b.json"],
            &[""],
            &expect![[r#"
            a.json
            b.json"#]],
        );
        check(
            &["/a.json", "é/b.json"],
            &[""],
            &expect![[r#"
            /a.json
            é/b.json"#]],
        );
        check(
            &["a/x.json", "a/x.json"],
            &[""],
            &expect![[r#"
            x.json
            x.json"#]],
        );
    }
}
