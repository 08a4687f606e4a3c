//! The guide's page on the allocator says what the program does.

use crate::job::Folder;
use crate::shell::{Ran, command};
use xmem::KnownOption;

const PAGE: &str = include_str!("../../../../docs/guide/allocator.md");

/// The contents of code fences of a language.
fn fenced<'p>(page: &'p str, language: &str) -> Vec<&'p str> {
    let fence = format!("\n```{language}\n");
    page.split(fence.as_str())
        .skip(1)
        .map(|rest| rest.split_once("\n```").expect("the fence is closed").0)
        .collect()
}

#[test]
fn the_options_are_those_that_some_release_takes() {
    let row = |option: KnownOption| {
        let last = option.last.map(|last| last.to_string()).unwrap_or_default();
        format!("`{}` {} {last}", option.name, option.since)
    };
    let mut known: Vec<String> = xmem::alloc_conf_options().map(row).collect();
    let (_, table) = PAGE.split_once("| option | from | to |").expect("the table of options");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let mut message: Vec<String> = rows
        .map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            format!("{} {} {}", cells[1], cells[2], cells[3])
        })
        .collect();
    known.sort();
    message.sort();
    assert_eq!(message, known);
}

#[test]
fn the_commands_print_what_the_page_shows() {
    let folder = Folder::new();
    folder.put("ops.json", fenced(PAGE, "json")[0].as_bytes());
    let shown = fenced(PAGE, "console");
    assert_eq!(shown.len(), 2);
    for block in shown {
        let (typed, printed) = block.split_once('\n').expect("a command and what it prints");
        let args = typed.strip_prefix("$ xmem ").expect("a command").split(' ');
        let mut command = command(args);
        let ran: Ran = command.current_dir(folder.path(".")).output().expect("runs").into();
        assert_eq!(ran.stdout.trim_end(), printed, "{typed}");
    }
}
