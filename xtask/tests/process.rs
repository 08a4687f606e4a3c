//! The program as a process. It is also why the tests leave it built with all its features, for `.ci/run`.

use std::process::{Command, Output};

fn xtask(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xtask")).args(arguments).output().expect("runs")
}

#[test]
fn the_help_has_the_tasks_of_every_feature() {
    let help = String::from_utf8(xtask(&["--help"]).stdout).expect("text");
    for task in ["test", "accuracy", "attack", "test-slurm", "dist"] {
        assert!(help.contains(&format!("\n  {task} ")), "{task}: {help}");
    }
}

#[test]
fn a_task_that_does_not_exist_is_refused() {
    let refused = xtask(&["paint"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("paint"));
}
