//! Damaged memory snapshots, replayed with one byte less than the intact ones need.

use crate::dice::Strength;
use crate::intact::{self, Needs, arguments};
use crate::judge::{self, Answer};
use crate::kinds::snapshots::{KINDS, SnapshotKind};
use crate::kinds::{self, Kind, Leaves};
use crate::process::Runner;
use crate::recording::{self, Input};
use crate::report::{Report, Row};
use crate::{Options, forms, in_parallel};
use std::path::Path;
use xmem_task::Error;

/// A kind of damage to a snapshot, or to the bytes of any file.
#[derive(Clone, Copy, Debug)]
enum Damage {
    Snapshot(&'static SnapshotKind),
    Bytes(&'static Kind),
}

/// One variant of a snapshot.
#[derive(Clone, Copy, Debug)]
struct Variant<'s> {
    name: &'s str,
    pickle: &'s [u8],
    damage: Damage,
    strength: Strength,
    /// One byte less than the intact snapshot needs.
    capacity: u64,
    all_forms: bool,
}

impl Damage {
    fn all() -> Vec<Self> {
        let own = KINDS.iter().map(Self::Snapshot);
        own.chain(kinds::of_bytes().into_iter().map(Self::Bytes)).collect()
    }

    fn name(self) -> &'static str {
        match self {
            Self::Snapshot(kind) => kind.name,
            Self::Bytes(kind) => kind.name,
        }
    }

    fn leaves(self) -> Leaves {
        match self {
            Self::Snapshot(kind) => kind.leaves,
            Self::Bytes(kind) => kind.leaves,
        }
    }
}

/// Damages, replays and judges.
pub(crate) fn run(
    program: &Path,
    options: &Options,
    needs: &Needs,
    report: &mut Report,
) -> Result<(), Error> {
    let all = &recording::SNAPSHOTS;
    let names = options.of_input(Input::Snapshot, all, &all[..2]);
    let pickles = names
        .iter()
        .map(|name| intact::inflated(&recording::path(name)))
        .collect::<Result<Vec<_>, Error>>()?;
    let wanted = |damage: &Damage| {
        options.kinds.is_empty() || options.kinds.iter().any(|name| name == damage.name())
    };
    let mut variants = Vec::new();
    for (place, (name, pickle)) in names.iter().zip(&pickles).enumerate() {
        let capacity = needs.get(*name).map_or(0, |need| need.saturating_sub(1));
        for (number, damage) in Damage::all().into_iter().filter(wanted).enumerate() {
            for strength in Strength::ALL {
                let all_forms = (number + strength.level()) % names.len() == place;
                if options.runs(number, strength, place, names.len()) {
                    variants.push(Variant { name, pickle, damage, strength, capacity, all_forms });
                }
            }
        }
    }
    let rows =
        in_parallel(&variants, |runner, variant| one(program, runner, variant, options.seed))?;
    report.add_damaged(rows);
    Ok(())
}

/// Judges one variant; none if there was nothing to damage.
fn one(
    program: &Path,
    runner: &Runner,
    variant: &Variant<'_>,
    seed: u64,
) -> Result<Option<Row>, Error> {
    let Variant { name, pickle, damage, strength, capacity, all_forms } = *variant;
    let intact = kinds::snapshots::rewritten(pickle);
    let bytes = match damage {
        Damage::Snapshot(kind) => kind.apply(pickle, name, seed, strength),
        Damage::Bytes(kind) => kind.apply_to(&intact, name, seed, strength),
    };
    if bytes == intact {
        return Ok(None);
    }
    let file = runner.file("snapshot.pickle");
    std::fs::write(&file, &bytes).map_err(Error::file(&file))?;
    let ended = runner.run(program, &arguments(&file, capacity), None)?;
    let answer = Answer::read(&ended.stdout);
    let mut findings = judge::misbehavior(&ended, bytes.len() as u64);
    findings.extend(judge::damaged(&ended, &answer, damage.leaves()));
    if all_forms {
        findings.extend(forms::run(program, runner, &file, capacity, &answer)?);
    }
    let level = strength.level().to_string();
    Ok(Some(Row::new(damage.name(), &level, name, capacity, &ended, answer, findings)))
}
