//! `cargo xtask accuracy`: estimates against recordings, case by case.
//!
//! Drives the program as a user would, so that what is measured is what is shipped.

mod by_op;
mod case;
mod judge;
mod table;

use crate::error::CorpusError;
use crate::table::Format;
use crate::traces;
use case::{Case, Row, Set};
use std::path::PathBuf;
use xmem_task::Error;
use xmem_task::program::{self, Profile};

/// Which cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sets {
    /// Those that may be looked at while rules are written.
    Rules,
    /// Those that no rule was written for.
    Untouched,
    /// Both, apart.
    All,
}

/// What is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// The cases and what they come to.
    Cases,
    /// The same, and failure if a bound is broken.
    Check,
    /// The operators at which schedule and recording disagree most.
    ByOp,
}

/// What to do.
#[derive(Debug)]
pub struct Options {
    /// Folders of cases; none for all of `traces/`.
    pub folders: Vec<PathBuf>,
    /// Which cases.
    pub sets: Sets,
    /// What is shown.
    pub view: View,
    /// How the tables are written.
    pub format: Format,
    /// What knows the workspaces of convolutions, as `xmem --cudnn` takes it.
    pub cudnn: String,
    /// The program to drive; none builds the released one.
    pub program: Option<PathBuf>,
}

/// Prints what was asked for.
pub fn run(options: Options) -> Result<(), Error> {
    let program = program::find(options.program.as_deref(), Profile::Release)?;
    let folders = if options.folders.is_empty() { traces::recorded()? } else { options.folders };
    let cases = folders.iter().map(|folder| Case::read(folder)).collect::<Result<Vec<_>, _>>()?;
    let rows = cases
        .into_iter()
        .filter(|case| wanted(options.sets, case.set))
        .map(|case| case.estimate(&program, &options.cudnn))
        .collect::<Result<Vec<_>, _>>()?;
    if options.view == View::ByOp {
        by_op::print(&rows, options.format);
        return Ok(());
    }
    println!("convolution workspaces: --cudnn {}\n", options.cudnn);
    let mut broken = Vec::new();
    for set in [Set::Rules, Set::Untouched] {
        let rows: Vec<&Row> = rows.iter().filter(|row| row.case.set == set).collect();
        if rows.is_empty() {
            continue;
        }
        table::print(&rows, set, options.format);
        let summary = judge::Summary::of(&rows);
        print!("{summary}");
        println!();
        broken.extend(summary.broken().into_iter().map(|what| format!("{}: {what}", set.name())));
    }
    if options.view == View::Cases || broken.is_empty() {
        return Ok(());
    }
    for what in &broken {
        println!("{what}");
    }
    Err(CorpusError::Bounds { task: "accuracy", count: broken.len() }.into())
}

fn wanted(sets: Sets, set: Set) -> bool {
    match sets {
        Sets::All => true,
        Sets::Rules => set == Set::Rules,
        Sets::Untouched => set == Set::Untouched,
    }
}
