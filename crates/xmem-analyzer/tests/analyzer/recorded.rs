//! The recorded traces of this repository. The annotations that the recording script wrote
//! (`## forward ##`) are the truth here; the analysis itself never reads them.

use expect_test::expect_file;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use xmem_analyzer::{Phase, Profile, Residency, Role, analyze};
use xmem_trace::{OpKind, PythonTable, ReadOptions, SignatureId, Trace};
use xmem_types::{Bytes, Nanos};

/// The traces whose phases the recording script marked.
fn folders() -> Vec<PathBuf> {
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces");
    let mut folders: Vec<PathBuf> = std::fs::read_dir(traces)
        .expect("the repository has traces")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| {
            std::fs::read_to_string(path.join("meta.toml"))
                .is_ok_and(|meta| meta.contains(" --annotate"))
        })
        .collect();
    folders.sort();
    assert!(folders.len() >= 10, "{} traces", folders.len());
    folders
}

fn read(folder: &Path) -> Trace {
    let path = folder.join("trace.json.zst");
    let (trace, _) = xmem_trace::read_path(&path, &ReadOptions::default()).expect("a trace");
    trace
}

fn parameter_bytes(folder: &Path) -> Bytes {
    let text = std::fs::read_to_string(folder.join("expected.toml")).expect("expected.toml");
    let line = text.lines().find_map(|l| l.strip_prefix("parameter-bytes = "));
    Bytes(line.expect("parameter-bytes").trim().parse().expect("a number"))
}

fn bytes_of(profile: &Profile, role: Role) -> Bytes {
    profile.blocks.iter().filter(|b| b.role == role).map(|b| b.size).sum()
}

fn without_python(mut trace: Trace) -> Trace {
    trace.python = PythonTable::default();
    trace
}

fn without_shapes(mut trace: Trace) -> Trace {
    trace.ops.signature.fill(SignatureId(0));
    trace.signatures.truncate(1);
    trace
}

/// Times as PyTorch up to 2.3 wrote them.
fn in_whole_microseconds(mut trace: Trace) -> Trace {
    let floor = |t: Nanos| Nanos(t.get().div_euclid(1000) * 1000);
    let spans = [
        (&mut trace.ops.start, &mut trace.ops.duration),
        (&mut trace.python.start, &mut trace.python.duration),
    ];
    for (start, duration) in spans {
        for (s, d) in start.iter_mut().zip(duration) {
            let end = floor(*s + *d);
            *s = floor(*s);
            *d = end - *s;
        }
    }
    trace.memory.time.iter_mut().for_each(|t| *t = floor(*t));
    trace
}

/// The annotations of the recording script, by start.
fn annotations(trace: &Trace) -> Vec<(Nanos, Nanos, String)> {
    let ops = &trace.ops;
    let mut found: Vec<_> = (0..ops.len())
        .filter(|&i| ops.kind[i] == OpKind::Annotation)
        .filter_map(|i| {
            let name = trace.strings.resolve(ops.name[i]).strip_prefix("## ")?;
            let name = name.strip_suffix(" ##")?.to_owned();
            Some((ops.start[i], ops.start[i] + ops.duration[i], name))
        })
        .collect();
    found.sort();
    found
}

fn phase_of(name: &str) -> Option<Phase> {
    Some(match name {
        "init" => Phase::Init,
        "data" => Phase::Data,
        "zero_grad" => Phase::ZeroGrad,
        "forward" => Phase::Forward,
        "backward" => Phase::Backward,
        "step" => Phase::OptimizerStep,
        _ => return None,
    })
}

/// Blocks whose phase or iteration is not the one annotated, and their bytes.
fn disagreement(profile: &Profile, truth: &[(Nanos, Nanos, String)]) -> (usize, Bytes) {
    let (mut count, mut bytes) = (0, Bytes::ZERO);
    for block in &profile.blocks {
        let at = block.alloc_time;
        let around = || truth.iter().filter(|t| t.0 <= at && at <= t.1);
        let Some(phase) = around().find_map(|t| phase_of(&t.2)) else { continue };
        let iteration =
            around().find_map(|t| t.2.strip_prefix("iter ")).map(|n| n.parse().expect("a number"));
        if block.phase != phase || block.iteration.map(|i| i.0) != iteration {
            count += 1;
            bytes += block.size;
        }
    }
    (count, bytes)
}

#[test]
fn phases_iterations_and_parameters_are_found_with_and_without_stacks_and_shapes() {
    for folder in folders() {
        let trace = read(&folder);
        let name = folder.display();
        let truth = annotations(&trace);
        let parameters = parameter_bytes(&folder);
        let bare = without_shapes(without_python(trace.clone()));
        for (what, trace, tolerated) in [
            // Without stacks, what forward computes before its first differentiable operator
            // (attention masks) counts as data.
            ("without stacks", without_python(trace.clone()), 3),
            ("without shapes", without_shapes(trace.clone()), 0),
            ("without both", bare, 3),
            ("in whole microseconds", in_whole_microseconds(trace.clone()), 0),
            ("as recorded", trace, 0),
        ] {
            let (profile, _) = analyze(trace);
            assert_eq!(bytes_of(&profile, Role::Parameter), parameters, "{name} {what}");
            assert!(profile.preexisting.is_empty(), "{name} {what}: {:?}", profile.preexisting);
            let (count, bytes) = disagreement(&profile, &truth);
            assert!(count <= tolerated, "{name} {what}: {count} blocks, {bytes}");
        }
    }
}

#[test]
fn a_recording_that_starts_at_the_second_iteration_knows_the_parameters() {
    for folder in folders() {
        let mut trace = read(&folder);
        let truth = annotations(&trace);
        let Some(cut) = truth.iter().find(|t| t.2 == "iter 1").map(|t| t.0) else { continue };
        drop_before(&mut trace, cut);
        let (profile, notes) = analyze(trace);
        let missing: Bytes = profile
            .preexisting
            .iter()
            .filter(|p| p.role == Role::Parameter)
            .map(xmem_analyzer::Preexisting::total)
            .sum();
        assert_eq!(missing, parameter_bytes(&folder), "{}", folder.display());
        assert!(notes.get("made-before-trace").is_some());
    }
}

fn drop_before(trace: &mut Trace, cut: Nanos) {
    macro_rules! keep {
        ($table:ident, $keep:expr, $($column:ident)*) => {{
            let keep: Vec<bool> = $keep;
            $({
                let mut k = keep.iter();
                trace.$table.$column.retain(|_| *k.next().expect("as long"));
            })*
        }};
    }
    let late = |times: &[Nanos]| times.iter().map(|t| *t >= cut).collect();
    keep!(ops, late(&trace.ops.start), start duration name thread kind sequence forward_thread signature);
    keep!(memory, late(&trace.memory.time), time address bytes total_allocated device device_index thread out_of_memory);
    keep!(python, late(&trace.python.start), start duration name thread);
}

#[test]
fn roles_and_residency_of_every_recording() {
    let mut text = String::new();
    for folder in folders() {
        let (profile, _) = analyze(read(&folder));
        let name = folder.file_name().expect("a folder").to_string_lossy().into_owned();
        writeln!(text, "{name}: {} iterations", profile.iterations.len()).expect("writes");
        let mut sums: BTreeMap<(Role, Residency, &str), (usize, Bytes)> = BTreeMap::new();
        for block in &profile.blocks {
            let sum = sums.entry((block.role, block.residency, block.evidence.0)).or_default();
            sum.0 += 1;
            sum.1 += block.size;
        }
        for ((role, residency, evidence), (count, bytes)) in sums {
            let (role, residency, bytes) = (role.name(), residency.name(), bytes.get());
            writeln!(text, "  {role:15} {residency:9} {count:6} {bytes:12}  {evidence}")
                .expect("writes");
        }
    }
    expect_file!["recorded_roles.txt"].assert_eq(&text);
}
