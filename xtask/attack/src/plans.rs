//! Damaged inputs of `xmem plan`: tables of blocks, lists of operations, and plans that another run follows. Each is
//! refused, or the answer is right for what the damaged text says, by a reader and a check of their own.

use crate::dice::Strength;
use crate::judge::{self, Answer, Finding, Outcome};
use crate::kinds::{self, Kind};
use crate::process::{Ended, Runner};
use crate::report::{Report, Row};
use crate::{Options, in_parallel};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use xmem_task::{Error, repo};

/// The name by which `--kind` asks for this part.
const NAME: &str = "plans";

/// A table with hard lifetimes.
const TABLE: &str = "crates/xmem-planner/tests/minimalloc/A.1048576.csv";

/// A kind of input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Table,
    Operations,
    /// A plan of the intact list of operations, which one that differs follows.
    Hints,
}

/// The intact inputs.
#[derive(Debug)]
struct Intact {
    table: Vec<u8>,
    operations: Vec<u8>,
    hints: Vec<u8>,
    /// The list that follows them.
    differing: Vec<u8>,
}

/// One damaged input.
#[derive(Debug)]
struct Variant<'i> {
    intact: &'i Intact,
    form: Form,
    kind: &'static Kind,
    strength: Strength,
}

/// Damages, plans and judges.
pub(crate) fn run(program: &Path, options: &Options, report: &mut Report) -> Result<(), Error> {
    let wanted = options.kinds.is_empty() || options.kinds.iter().any(|kind| kind == NAME);
    if !wanted || !options.traces.is_empty() {
        return Ok(());
    }
    let intact = intact(program)?;
    let mut variants = Vec::new();
    for (number, kind) in kinds::of_texts().into_iter().enumerate() {
        for (place, form) in [Form::Table, Form::Operations, Form::Hints].into_iter().enumerate() {
            for strength in Strength::ALL {
                if options.runs(number, strength, place, 3) {
                    variants.push(Variant { intact: &intact, form, kind, strength });
                }
            }
        }
    }
    let rows =
        in_parallel(&variants, |runner, variant| one(program, runner, variant, options.seed))?;
    report.add_damaged(rows);
    Ok(())
}

/// A list of operations: most blocks are freed soon, in another order than they are made.
pub(crate) fn operations() -> Vec<u8> {
    list(|_, size| size)
}

/// The same list with other sizes here and there: some have no place in its plan, and some lie where others were to.
fn differing() -> Vec<u8> {
    list(|id, size| if id % 5 == 0 { size / 2 + 1 } else { size })
}

fn list(size_of: impl Fn(u64, u64) -> u64) -> Vec<u8> {
    let (mut list, mut state) = (Vec::new(), 7u64);
    let mut live: Vec<u64> = Vec::new();
    for id in 0..120 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let size = size_of(id, 1 + (state >> 40) % 5_000_000);
        list.push(json!({"op": "alloc", "id": id, "size": size}));
        live.push(id);
        if live.len() > 9 {
            let freed = live.remove((state >> 33) as usize % live.len());
            list.push(json!({"op": "free", "id": freed}));
        }
    }
    let lines: Vec<String> = list.iter().map(Value::to_string).collect();
    format!("[{}]\n", lines.join(",\n")).into_bytes()
}

fn intact(program: &Path) -> Result<Intact, Error> {
    let path = repo::root().join(TABLE);
    let table = std::fs::read(&path).map_err(Error::file(&path))?;
    let folder = super::folder()?.join(format!("{}-plans", std::process::id()));
    let runner = Runner::new(folder)?;
    let [list, hints] = ["operations.json", "hints.json"].map(|name| runner.file(name));
    std::fs::write(&list, operations()).map_err(Error::file(&list))?;
    let mut arguments = arguments(Form::Operations, &list, &list);
    arguments.extend([OsString::from("--export-hints"), hints.clone().into()]);
    runner.run(program, &arguments, None)?;
    let hints = std::fs::read(&hints).map_err(Error::file(&hints))?;
    runner.remove()?;
    Ok(Intact { table, operations: operations(), hints, differing: differing() })
}

fn arguments(form: Form, file: &Path, list: &Path) -> Vec<OsString> {
    let text = |arguments: &[&str]| arguments.iter().map(OsString::from).collect::<Vec<_>>();
    match form {
        Form::Table | Form::Operations => [
            vec!["plan".into(), file.into()],
            text(&["--planner", "bestfit", "--scope", "all", "--format", "json", "--offsets"]),
        ]
        .concat(),
        Form::Hints => [
            vec!["simulate".into(), list.into(), "--plan".into(), file.into()],
            text(&["--format", "json"]),
        ]
        .concat(),
    }
}

/// Judges one variant; none if there was nothing to damage.
fn one(
    program: &Path,
    runner: &Runner,
    variant: &Variant<'_>,
    seed: u64,
) -> Result<Option<Row>, Error> {
    let Variant { intact, form, kind, strength } = *variant;
    let (name, whole) = match form {
        Form::Table => ("table", &intact.table),
        Form::Operations => ("operations", &intact.operations),
        Form::Hints => ("hints", &intact.hints),
    };
    let bytes = kind.apply_to(whole, name, seed, strength);
    if bytes == *whole {
        return Ok(None);
    }
    let [file, list] = ["damaged", "operations.json"].map(|name| runner.file(name));
    std::fs::write(&file, &bytes).map_err(Error::file(&file))?;
    std::fs::write(&list, &intact.differing).map_err(Error::file(&list))?;
    let ended = runner.run(program, &arguments(form, &file, &list), None)?;
    let mut findings = judge::misbehavior(&ended, bytes.len() as u64);
    match Outcome::of(&ended) {
        Outcome::Fits if !is_right(form, &ended, &bytes, &intact.differing) => {
            findings.push(Finding::WrongPlan);
        }
        Outcome::DoesNotFit | Outcome::Withheld => findings.push(Finding::Contradiction),
        _ => {}
    }
    let level = strength.level().to_string();
    let shown = format!("plan: {name}");
    Ok(Some(Row::new(&shown, &level, kind.name, 0, &ended, Answer::default(), findings)))
}

/// A block: its name, and its size, begin and end.
type Block = (String, u128, u64, u64);

/// True if an answer is right for the damaged text.
fn is_right(form: Form, ended: &Ended, text: &[u8], operations: &[u8]) -> bool {
    let Ok(answer) = serde_json::from_str::<Value>(&ended.stdout) else { return false };
    let right = match form {
        Form::Table => plan_is_right(&answer, read_table(text)),
        Form::Operations => plan_is_right(&answer, read_operations(text)),
        Form::Hints => run_is_right(&answer, text, operations),
    };
    right.unwrap_or(false)
}

/// `None` if the answer lacks something.
fn plan_is_right(answer: &Value, expected: Option<Vec<Block>>) -> Option<bool> {
    let block = |block: &Value| {
        let number = |key: &str| block[key].as_u64();
        let size = u128::from(number("size_bytes")?);
        Some((block["name"].as_str()?.to_owned(), size, number("start")?, number("end")?))
    };
    let blocks: Vec<Block> =
        answer["block_list"].as_array()?.iter().map(block).collect::<Option<_>>()?;
    let offsets: Vec<u128> = answer["plans"][0]["offsets"]
        .as_array()?
        .iter()
        .map(|offset| offset.as_u64().map(u128::from))
        .collect::<Option<_>>()?;
    if offsets.len() != blocks.len() || overlap(&blocks, &offsets) {
        return Some(false);
    }
    let peak = blocks.iter().zip(&offsets).map(|(block, offset)| offset + block.1).max()?;
    let load = |at: u64| -> u128 {
        blocks.iter().filter(|block| block.2 <= at && at < block.3).map(|block| block.1).sum()
    };
    let bound = blocks.iter().map(|block| load(block.2)).max()?;
    let stated = |value: &Value| value.as_u64().map(u128::from);
    Some(
        stated(&answer["best"]["peak_bytes"])? == peak
            && stated(&answer["lower_bound_bytes"])? == bound
            && expected.is_none_or(|expected| expected == blocks),
    )
}

fn overlap(blocks: &[Block], offsets: &[u128]) -> bool {
    let placed: Vec<(&Block, u128)> = blocks.iter().zip(offsets.iter().copied()).collect();
    placed.iter().enumerate().any(|(place, &(one, low))| {
        placed[..place].iter().any(|&(other, at)| {
            let in_time = one.2 < other.3 && other.2 < one.3;
            in_time && low < at + other.1 && at < low + one.1
        })
    })
}

/// The rows of a plain table; `None` where quotes and the like have to be understood.
fn read_table(text: &[u8]) -> Option<Vec<Block>> {
    let text = std::str::from_utf8(text).ok().filter(|text| !text.contains(['"', '\r']))?;
    let mut lines = text.lines().filter(|line| !line.is_empty());
    let fields =
        |line: &str| line.split(',').map(|field| field.trim().to_owned()).collect::<Vec<_>>();
    let header = fields(lines.next()?);
    let column = |name: &str| header.iter().position(|field| field == name);
    let [id, lower, upper, size] =
        [column("id")?, column("lower")?, column("upper")?, column("size")?];
    lines
        .map(|line| {
            let row = fields(line);
            let number = |column: usize| row.get(column)?.parse::<u64>().ok();
            let name = row.get(id)?.clone();
            Some((name, u128::from(number(size)?), number(lower)?, number(upper)?))
        })
        .collect()
}

/// The blocks of a list of allocations and frees; `None` where it has anything else.
fn read_operations(text: &[u8]) -> Option<Vec<Block>> {
    let list: Vec<Value> = serde_json::from_slice(text).ok()?;
    let (mut blocks, mut live): (Vec<Block>, BTreeMap<u64, usize>) = Default::default();
    let mut tick = 0;
    for operation in &list {
        let id = operation["id"].as_u64()?;
        match operation["op"].as_str()? {
            "alloc" => {
                let size = u128::from(operation["size"].as_u64()?);
                if size == 0 {
                    continue;
                }
                live.insert(id, blocks.len());
                blocks.push((id.to_string(), size.next_multiple_of(512), tick, u64::MAX));
            }
            "free" => match live.remove(&id) {
                Some(block) => blocks[block].3 = tick,
                None => continue,
            },
            _ => return None,
        }
        tick += 1;
    }
    for block in blocks.iter_mut().filter(|block| block.3 == u64::MAX) {
        block.3 = tick;
    }
    Some(blocks)
}

/// The stated memory is that of the requests of the plan, and each request of the run is served as a slow second replay serves
/// it.
fn run_is_right(answer: &Value, hints: &[u8], operations: &[u8]) -> Option<bool> {
    let hints: Value = serde_json::from_slice(hints).ok()?;
    let read =
        |part: &Value| part.as_array()?.iter().map(planned).collect::<Option<Vec<Planned>>>();
    let warm_up = read(&hints["warm_up"])?;
    let iteration = read(&hints["iteration"])?;
    let mut has_arenas = false;
    for (arena, key) in [("iteration", "iteration_bytes"), ("lasting", "lasting_bytes")] {
        let ends = warm_up.iter().chain(&iteration).filter(|request| request.arena == arena);
        let end = ends.map(|request| request.offset + request.most).max().unwrap_or_default();
        has_arenas |= end > 0;
        if u128::from(answer[key].as_u64()?) != end {
            return Some(false);
        }
    }
    // A list has no marks: it follows the part that is there.
    let sequence = if warm_up.is_empty() { iteration } else { warm_up };
    let run = read_operations(operations)?;
    // By arena and offset: the number of the request.
    let (mut live, mut recent): (Vec<(&str, u128, usize)>, Vec<u128>) = Default::default();
    let (mut place, mut unexpected) = (0, 0);
    let [mut there, mut outside, mut unknown, mut occupied, mut fitted] = [0; 5];
    for (number, request) in run.iter().enumerate() {
        recent.push(request.1);
        let is_good = |at: usize, size: u128| {
            sequence.get(at).is_some_and(|planned| planned.least <= size && size <= planned.most)
        };
        let mut found = is_good(place, request.1).then_some(place);
        if found.is_none() {
            unexpected += 1;
            let last = &recent[recent.len().saturating_sub(SURE)..];
            let is_run = |at: &usize| {
                *at + 1 >= SURE && (0..SURE).all(|back| is_good(at - back, last[SURE - 1 - back]))
            };
            if unexpected >= SURE {
                let mut ends: Vec<usize> = (0..sequence.len()).filter(is_run).collect();
                ends.sort_by_key(|&at| (at.abs_diff(place), at < place));
                found = ends.into_iter().find(|&at| at != place);
            }
        }
        live.retain(|&(_, _, of)| run[of].3 > request.2);
        if let Some(at) = found {
            (place, unexpected) = (at + 1, 0);
            let planned = &sequence[at];
            if planned.arena.is_empty() {
                outside += 1;
                continue;
            }
            let meets = |&(arena, offset, of): &(&str, u128, usize)| {
                arena == planned.arena
                    && offset < planned.offset + request.1
                    && planned.offset < offset + run[of].1
            };
            if !live.iter().any(meets) {
                live.push((&planned.arena, planned.offset, number));
                there += 1;
                continue;
            }
            occupied += 1;
        } else {
            unknown += 1;
        }
        if has_arenas && request.1 > SMALL {
            let blocks = live.iter().filter(|block| block.0 == ITERATION);
            let mut blocks: Vec<(u128, u128)> =
                blocks.map(|&(_, offset, of)| (offset, offset + run[of].1)).collect();
            blocks.sort_unstable();
            live.push((ITERATION, gap(&blocks, request.1), number));
            fitted += 1;
        }
    }
    let counts =
        ["planned", "outside", "unknown", "occupied", "fitted"].map(|key| answer[key].as_u64());
    Some(counts == [there, outside, unknown, occupied, fitted].map(Some))
}

/// The start of the smallest gap between blocks, which are in order, of at least this size, else their end.
fn gap(blocks: &[(u128, u128)], size: u128) -> u128 {
    let starts = [0].into_iter().chain(blocks.iter().map(|block| block.1));
    let gaps = starts.zip(blocks).map(|(start, block)| (block.0 - start, start));
    let gap = gaps.filter(|&(bytes, _)| bytes >= size).min();
    gap.map_or_else(|| blocks.last().map_or(0, |block| block.1), |(_, start)| start)
}

/// The arena in which requests that differ from a plan lie, and the largest that do not.
const ITERATION: &str = "iteration";
const SMALL: u128 = 1 << 20;

/// Requests in a row by which a replay finds its place again.
const SURE: usize = 4;

/// A request of a plan; no arena if it is not planned.
struct Planned {
    least: u128,
    most: u128,
    arena: String,
    offset: u128,
}

fn planned(request: &Value) -> Option<Planned> {
    Some(Planned {
        least: u128::from(request["least_bytes"].as_u64()?),
        most: u128::from(request["size_bytes"].as_u64()?),
        arena: request["arena"].as_str().unwrap_or_default().to_owned(),
        offset: u128::from(request["offset_bytes"].as_u64().unwrap_or_default()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(stdout: &Value) -> Ended {
        Ended { code: Some(0), stdout: stdout.to_string(), ..Ended::default() }
    }

    #[test]
    fn a_wrong_plan_is_found() {
        let table = b"id,lower,upper,size\na,0,2,4\nb,1,3,8\n";
        let answer = |offsets: Value, size: u64, peak: u64| {
            let block = |name: &str, size: u64, start: u64| json!({"name": name, "size_bytes": size, "start": start, "end": start + 2});
            ended(&json!({
                "block_list": [block("a", 4, 0), block("b", size, 1)],
                "plans": [{"offsets": offsets}],
                "best": {"peak_bytes": peak},
                "lower_bound_bytes": 4 + size,
            }))
        };
        let right = |answer: &Ended| is_right(Form::Table, answer, table, &[]);
        assert!(right(&answer(json!([8, 0]), 8, 12)));
        assert!(!right(&answer(json!([7, 0]), 8, 12)), "an overlap");
        assert!(!right(&answer(json!([8, 0]), 8, 11)), "another peak");
        assert!(!right(&answer(json!([8, 0]), 7, 12)), "another block");
        assert!(!right(&ended(&json!({}))));
    }

    #[test]
    fn the_list_is_read_as_it_is_written() {
        let blocks = read_operations(&operations()).expect("a list");
        assert_eq!(blocks.len(), 120);
        assert!(blocks.iter().all(|block| block.2 < block.3 && block.1.is_multiple_of(512)));
    }
}
