//! Prints a trace's GPU schedule, one request a line: sign, block, bytes, iteration, phase, path.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example prints")]

use std::path::Path;
use xmem_convolutions::{ConvolutionSource as _, FittedModel};
use xmem_orchestrator::{Target, convolution_questions, schedule};
use xmem_types::RequestKind;

fn main() {
    let mut args = std::env::args().skip(1);
    let path = args.next().expect("a trace");
    let device = args.next().unwrap_or_else(|| "rtx3060-12g".into());
    let device = xmem_devices::find(&device).expect("a known device").clone();
    let (trace, notes) =
        xmem_trace::read_path(Path::new(&path), &xmem_trace::ReadOptions::default())
            .expect("a trace");
    let (profile, more) = xmem_analyzer::analyze(trace);
    for d in notes.iter().chain(more.iter()) {
        eprintln!("{}: {} ({}x)", d.code, d.message, d.count);
    }
    let target = Target::new(device);
    let questions = convolution_questions(&profile, &target);
    let answers = FittedModel.answer(&target.device, &questions);
    let (plan, _) = schedule(&profile, &target, &answers);
    for e in plan.effects.iter().filter(|e| !e.is_empty()) {
        eprintln!(
            "{:20} dropped {:?} added {:?} resized {:?} retimed {:?}",
            e.rule.name, e.dropped, e.added, e.resized, e.retimed
        );
    }
    let mut numbers = vec![0; plan.blocks.len()];
    let mut count = 0;
    for (request, time) in plan.requests.iter().zip(&plan.times) {
        let block = plan.block(request.block);
        let span = profile.phase_at(*time);
        let iteration =
            span.and_then(|s| s.iteration).map_or(String::new(), |i| format!("iter {}", i.0));
        let phase = span.map_or("", |s| s.phase.name());
        let sign = match request.kind {
            RequestKind::Alloc { .. } => {
                count += 1;
                numbers[request.block.index()] = count;
                '+'
            }
            RequestKind::Free => '-',
        };
        let mut path: Vec<String> = block
            .origin
            .place(&profile)
            .op
            .map(|op| {
                profile
                    .tree
                    .path(op)
                    .filter(|&o| !profile.is_annotation(o))
                    .map(|o| {
                        profile
                            .op_name(o)
                            .replace("autograd::engine::evaluate_function: ", "EV ")
                            .replace("aten::", "")
                    })
                    .collect()
            })
            .unwrap_or_default();
        path.reverse();
        println!(
            "{sign}\t{}\t{}\t{iteration}\t{phase}\t{}\t{} {}",
            numbers[request.block.index()],
            block.size.get(),
            path.join(" > "),
            block.role.name(),
            block.rule.map_or("", |rule| rule.name),
        );
    }
}
