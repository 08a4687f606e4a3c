//! Refuses what the preloaded library does not see: a program that is linked statically, or calls the kernel itself.
//!
//! By Landlock (landlock(7), Linux 5.19 and later for renames between folders): the command, and all that it starts,
//! can write to uncovered paths and to the overlay's folder alone.

use crate::coverage::Coverage;
use landlock::{
    ABI, AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr,
};
use std::path::Path;

/// The rights that are asked for: those of Linux 6.2, which has the one to truncate files.
const RIGHTS: ABI = ABI::V3;

/// Restricts this process.
///
/// # Errors
/// If the kernel cannot, or if an uncovered folder holds a covered one: rights to a folder are rights to all in it.
pub(crate) fn restrict(folder: &Path, coverage: &Coverage) -> Result<(), String> {
    if let Some(path) = coverage.covered.first() {
        return Err(format!("`{}` lies in a folder that can be written to", path.display()));
    }
    let writing = AccessFs::from_write(RIGHTS);
    let attempt = || -> Result<(), landlock::RulesetError> {
        let mut rules = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::Refer)?
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(writing)?
            .create()?;
        let paths = coverage.uncovered.iter().map(|path| (path.as_path(), writing));
        let renames = (Path::new("/"), AccessFs::Refer.into());
        for (path, rights) in paths.chain([(folder, writing), renames]) {
            // One that is not there cannot be written to either.
            let Ok(opened) = PathFd::new(path) else { continue };
            rules = rules.add_rule(PathBeneath::new(opened, rights))?;
        }
        rules.restrict_self().map(drop)
    };
    attempt().map_err(|error| format!("Landlock: {error}"))
}
