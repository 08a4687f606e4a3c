//! Text, as people see it.

use crate::sample;
use expect_test::{Expect, expect};
use xmem::predict::{AllocatorKind, AllocatorSettings, Bounds, JobEnvironment};
use xmem::simulator::AddressOrder;
use xmem::{Bytes, TorchVersion};
use xmem_report::text::{self, Color, Extent, Row, Style};

const PLAIN: Style = Style { color: Color::Plain, width: 100 };

fn shows(actual: &str, expected: Expect) {
    assert!(actual.lines().all(|line| line == line.trim_end()), "trailing space:\n{actual}");
    // A first line at the margin, as expectations lose the indentation that all lines share.
    expected.assert_eq(&format!("page:\n{actual}"));
}

#[test]
fn an_answer_has_a_fixed_order() {
    shows(
        &text::answer("runs/demo/trace.json", &sample::fits(), &Extent::FULL, &PLAIN),
        expect![[r#"
            page:
            FITS  on demo-1g (NVIDIA Demo, 1.00 GiB)
              runs/demo/trace.json, 2 iterations, AdamW

              peak allocated           397.00 MiB   torch.cuda.max_memory_allocated()
              peak reserved            420.00 MiB   torch.cuda.max_memory_reserved()
                between                410.00 MiB   and 440.00 MiB: cuDNN plans, address order
              expected in nvidia-smi   720.00 MiB   reserved + 300.00 MiB context
              headroom                 304.00 MiB   30 % of 1.00 GiB stay free

            Peak: iteration 1, backward
              module  Net_0 > Linear_1
              op      MmBackward0 > aten::mm
              line    train.py(12): forward

            Memory at the peak by role
              optimizer state   200.00 MiB  50 %  ████████████████████████████████████████  8 blocks
              parameter         100.00 MiB  25 %  ████████████████████                      4 blocks
              activation         96.00 MiB  24 %  ███████████████████▏                      10 blocks
              unknown             1.00 MiB  <1 %  ▏                                         1 block

            Unmodeled operators
              9.00 MiB (2 %) of the peak come from operators without a CUDA model; their CPU sizes are used:
              torchvision::nms, my::kernel, my::other and 1 more

            Allocated memory over the iterations
               397.00 MiB                                ▁▂▂▃▄▄▅▆▇▇█                               ▁▂▂▃▄▄▅▆▇▇█
                                              ▁▂▂▃▄▅▅▆▇▇████████████                    ▁▂▂▃▄▅▅▆▇▇████████████
                                   ▁▂▃▃▄▅▅▆▇████████████████████████         ▁▂▃▃▄▅▅▆▇████████████████████████
                          ▃▃▄▅▆▆▇███████████████████████████████████▃▃▄▅▆▆▇███████████████████████████████████
                          ████████████████████████████████████████████████████████████████████████████████████
                iteration    └0                                     └1

            Largest blocks alive at the peak
               2 ×   64.00 MiB  optimizer state  before iteration 0           aten::empty
                                train.py(12): forward
                     32.00 MiB  activation       iteration 1, backward        aten::mm [leaf-scratch]
                                Net_0 > Linear_1, train.py(12): forward

            Fragmentation  23.00 MiB (5 %) of the 420.00 MiB reserved at the peak allocated holds no tensor
              in 3 free pieces, the largest 20.00 MiB; 20.00 MiB could be released

            Notes
              warning  argument shapes were not recorded
              1 more note: --notes shows it

            FITS  needs 720.00 MiB of 1.00 GiB on demo-1g
        "#]],
    );
}

#[test]
fn what_does_not_fit_says_where_and_how_much_is_missing() {
    let page = text::answer("trace.json", &sample::does_not_fit(), &Extent::FULL, &PLAIN);
    let until = page.find("Memory at the peak").expect("roles");
    shows(
        &page[..until],
        expect![[r#"
            page:
            DOES NOT FIT  on demo-1g (NVIDIA Demo, 640.00 MiB)
              trace.json, 2 iterations, AdamW

              peak allocated           397.00 MiB   torch.cuda.max_memory_allocated()
              peak reserved            420.00 MiB   torch.cuda.max_memory_reserved()
                between                410.00 MiB   and 440.00 MiB: cuDNN plans, address order
              expected in nvidia-smi   720.00 MiB   reserved + 300.00 MiB context
              shortfall                 62.00 MiB   beyond 640.00 MiB of device memory
              minimum capacity         702.00 MiB   smallest device memory for this job

            Out of memory in iteration 1, backward
              tried to allocate 30.00 MiB with 18.00 MiB free; 322.00 MiB reserved, 310.00 MiB of it allocated
              module  Net_0 > Linear_1
              op      MmBackward0 > aten::mm
              line    train.py(12): forward
              the figures above are those of a device with room for everything

            Peak: iteration 1, backward
              module  Net_0 > Linear_1
              op      MmBackward0 > aten::mm
              line    train.py(12): forward

        "#]],
    );
}

#[test]
fn what_fits_only_just_says_so() {
    let page = text::answer("trace.json", &sample::only_just(), &Extent::FULL, &PLAIN);
    let until = page.find("Memory at the peak").expect("roles");
    shows(
        &page[..until],
        expect![[r#"
            page:
            FITS  on demo-1g (NVIDIA Demo, 720.00 MiB)
              trace.json, 2 iterations, AdamW

              peak allocated           397.00 MiB   torch.cuda.max_memory_allocated()
              peak reserved            420.00 MiB   torch.cuda.max_memory_reserved()
                between                410.00 MiB   and 440.00 MiB: cuDNN plans, address order
              expected in nvidia-smi   720.00 MiB   reserved + 300.00 MiB context
              headroom                        0 B   0 % of 720.00 MiB stay free

            Tight fit: the allocator released cached memory twice
              with more memory it would reserve 460.00 MiB

            Peak: iteration 1, backward
              module  Net_0 > Linear_1
              op      MmBackward0 > aten::mm
              line    train.py(12): forward

        "#]],
    );
}

/// Each row: settings, and the description of the allocator in the answer.
#[test]
fn an_unusual_allocator_is_named_below_the_verdict() {
    let conf = |text: &str| Some(text.to_owned());
    let none = AllocatorSettings::default;
    let release = Some(TorchVersion::new(2, 6));
    let kind = Some(AllocatorKind::MallocAsync);
    for (settings, expected) in [
        (none(), None),
        (AllocatorSettings { release, ..none() }, Some("PyTorch 2.6")),
        (
            AllocatorSettings { conf: conf("expandable_segments:True"), ..none() },
            Some("PyTorch 2.11, expandable_segments:True"),
        ),
        (
            AllocatorSettings { kind, memory_fraction: Some(0.8), ..none() },
            Some("PyTorch 2.11 with cudaMallocAsync (approximate), 80 % of the device's memory"),
        ),
        (
            AllocatorSettings { kind: Some(AllocatorKind::Uncached), ..none() },
            Some("PyTorch 2.11 without caching"),
        ),
        (
            AllocatorSettings { kind: Some(AllocatorKind::BfcGrowth), ..none() },
            Some("TensorFlow's BFC allocator with allow_growth"),
        ),
        (
            AllocatorSettings { address_order: Some(AddressOrder::Ascending), ..none() },
            Some("PyTorch 2.11, ascending addresses"),
        ),
    ] {
        let mut answer = sample::fits();
        answer.setup = sample::setup(&settings);
        let page = text::answer("t", &answer, &Extent::FULL, &PLAIN);
        let line = page.lines().find_map(|line| line.strip_prefix("  allocator: "));
        assert_eq!(line, expected, "{settings:?}");
    }
}

#[test]
fn an_unusual_allocator_is_named_below_a_table_and_an_approximation_in_one_line() {
    let settings =
        AllocatorSettings { kind: Some(AllocatorKind::MallocAsync), ..Default::default() };
    let (usual, mut other) = (sample::fits(), sample::fits());
    other.setup = sample::setup(&settings);
    let rows = [("a", &other), ("b", &other), ("c", &usual)].map(|(t, a)| Row::answer(t, a));
    shows(
        &text::table(&rows, &PLAIN),
        expect![[r#"
            page:
              trace  verdict  warnings   allocated    reserved  nvidia-smi    headroom  peak
              a      FITS            1  397.00 MiB  420.00 MiB  720.00 MiB  304.00 MiB  1 backward
              b      FITS            1  397.00 MiB  420.00 MiB  720.00 MiB  304.00 MiB  1 backward
              c      FITS            1  397.00 MiB  420.00 MiB  720.00 MiB  304.00 MiB  1 backward

              allocator: PyTorch 2.11 with cudaMallocAsync (approximate)
        "#]],
    );
    assert_eq!(
        text::brief("t", &other, &PLAIN),
        "FITS  needs about 720.00 MiB of 1.00 GiB on demo-1g  t  (1 warning)\n"
    );
}

#[test]
fn settings_from_the_trace_are_marked() {
    let recorded = JobEnvironment {
        torch: Some("2.6.0".to_owned()),
        variables: vec![("PYTORCH_CUDA_ALLOC_CONF".to_owned(), "max_split_size_mb:64".to_owned())],
        ..JobEnvironment::default()
    };
    let mut answer = sample::fits();
    let settings = AllocatorSettings::default();
    answer.setup = settings.resolve(&recorded, &sample::device()).expect("usable");
    let page = text::answer("t", &answer, &Extent::FULL, &PLAIN);
    let said = "  allocator: PyTorch 2.6 (from the trace), max_split_size_mb:64 (from the trace)\n";
    assert!(page.contains(said), "{page}");
}

#[test]
fn a_withheld_verdict_gives_reasons_and_no_figures() {
    shows(
        &text::answer("trace.json", &sample::withheld(), &Extent::FULL, &PLAIN),
        expect![[r#"
            page:
            NO VERDICT  on demo-1g (NVIDIA Demo, 1.00 GiB)
              trace.json, 2 iterations, AdamW

            Reasons and notes
              serious  the trace has no memory events: record it with profile_memory=True
              warning  argument shapes were not recorded
              1 more note: --notes shows it
        "#]],
    );
}

#[test]
fn rules_are_listed_one_by_one() {
    shows(
        &text::rules(&sample::fits().rules, &PLAIN),
        expect![[r#"
            page:

            Lowering from CPU to GPU, rule by rule
              leaf-scratch: dropped 7 blocks (12.00 MiB)
                scratch that a CPU kernel allocates and frees within one leaf operator is left out
                source: c10/core/CPUAllocator.cpp; aten/src/ATen/native/mkldnn/IDeepRegistration.cpp
              dropout-mask: resized 1 block (8.00 MiB to 2.00 MiB), added 2 blocks (64 B)
                dropout saves a bool mask (1 byte an element) instead of noise in the input's type
                source: aten/src/ATen/native/Dropout.cpp `is_fused_kernel_acceptable`;
                aten/src/ATen/native/cuda/Dropout.cu `native_dropout_cuda`
              no effect: zero-grad
        "#]],
    );
}

#[test]
fn several_answers_have_a_row_each() {
    let (good, bad) = (sample::fits(), sample::does_not_fit());
    let rows = [
        Row::answer("t/a/trace.json", &good),
        Row::answer("t/b/trace.json", &bad),
        Row::failure("t/c/trace.json"),
    ];
    shows(
        &text::table(&rows, &PLAIN),
        expect![[r#"
            page:
              trace  device       memory  verdict       warnings    reserved  nvidia-smi    headroom  min capacity
              a      demo-1g    1.00 GiB  FITS                 1  420.00 MiB  720.00 MiB  304.00 MiB
              b      demo-1g  640.00 MiB  DOES NOT FIT         1  420.00 MiB  720.00 MiB  -62.00 MiB    702.00 MiB
              c                           UNREADABLE
        "#]],
    );
}

#[test]
fn a_brief_answer_is_one_line() {
    shows(
        &text::brief("trace.json", &sample::does_not_fit(), &PLAIN),
        expect![[r#"
            page:
            DOES NOT FIT  needs at least 702.00 MiB of 640.00 MiB on demo-1g: 62.00 MiB too much  trace.json  (1 warning)
        "#]],
    );
}

#[test]
fn the_content_of_a_trace() {
    let answer = sample::fits();
    shows(
        &text::inspect("trace.json", &answer.trace, &answer.findings, &PLAIN),
        expect![[r#"
            page:
            trace.json
              schema version      1
              profiler options    profile_memory
              events              900
              operators           400 (300 with shapes)
              annotations         4
              Python calls        100
              host memory         60
              backward links      20
              other events        1 Trace, 7 kernel
              threads             2
              module paths        3
              optimizers          AdamW
              host blocks         30 (4 never freed)
              host memory peak    390.00 MiB
              recorded on         the CPU

            Iterations
              #  CPU time  host blocks  total allocated
              0    1.5 ms           12       120.00 MiB
              1    1.5 ms           12       120.00 MiB

            Notes
              warning  argument shapes were not recorded
              note     four blocks outlive the trace (4 times, first at memory event 17)
        "#]],
    );
}

#[test]
fn devices_are_a_table() {
    let mut large = sample::device();
    "demo-large-80g".clone_into(&mut large.name);
    large.memory = xmem::Bytes::gib(80);
    let devices = [sample::device(), large];
    shows(
        &text::devices(&devices, &PLAIN),
        expect![[r#"
            page:
              name               memory  context  for PyTorch   sm  SMs  device
              demo-1g          1.00 GiB  300 MiB   724.00 MiB  8.0  108  NVIDIA Demo
              demo-large-80g  80.00 GiB  300 MiB    79.71 GiB  8.0  108  NVIDIA Demo

              memory: total of torch.cuda.mem_get_info(); context: what a process takes outside PyTorch,
              with its range; for PyTorch: memory minus context. --format json gives the source of each number.
              Shared memory is the host's too: the context counts what the host takes of it.
              `xmem devices --mig` lists MIG slices. For another GPU use --device-file or --capacity 24GiB.
        "#]],
    );
}

#[test]
fn no_line_is_wider_than_the_screen() {
    for width in [80, 100, 140] {
        let style = Style { color: Color::Plain, width };
        let (answer, tight) = (sample::fits(), sample::does_not_fit());
        let pages = [
            text::answer("trace.json", &tight, &Extent::FULL, &style),
            text::answer(
                "a/rather/long/path/to/a/trace/of/a/job/trace.json.zst",
                &answer,
                &Extent::FULL,
                &style,
            ),
            text::rules(&answer.rules, &style),
            text::inspect("trace.json", &answer.trace, &answer.findings, &style),
        ];
        for line in pages.iter().flat_map(|p| p.lines()) {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn color_changes_nothing_but_color() {
    let ansi = text::answer(
        "t",
        &sample::fits(),
        &Extent::FULL,
        &Style { color: Color::Ansi, width: 100 },
    );
    let mut plain = String::new();
    let mut rest = ansi.as_str();
    while let Some(at) = rest.find('\u{1b}') {
        plain += &rest[..at];
        rest = &rest[at + rest[at..].find('m').expect("end of escape") + 1..];
    }
    plain += rest;
    let trimmed = |t: &str| t.lines().map(|l| l.trim_end().to_owned()).collect::<Vec<_>>();
    assert_ne!(ansi, plain);
    assert_eq!(
        trimmed(&plain),
        trimmed(&text::answer("t", &sample::fits(), &Extent::FULL, &PLAIN))
    );
}

#[test]
fn a_range_was_told_as_between_two_figures_that_look_alike() {
    let mut answer = sample::fits();
    answer.memory.range.reserved =
        Bounds { low: Bytes::mib(420), high: Bytes::mib(420) + Bytes(512) };
    let page = text::answer("t", &answer, &Extent::FULL, &PLAIN);
    assert!(!page.contains("between"), "{page}");
    answer.memory.range.reserved.high = Bytes::mib(421);
    let page = text::answer("t", &answer, &Extent::FULL, &PLAIN);
    assert!(page.contains("between                420.00 MiB   and 421.00 MiB"), "{page}");
}

#[test]
fn ten_equal_layers_had_ten_rows() {
    let mut answer = sample::fits();
    let last = answer.memory.largest.pop().expect("a block");
    answer.memory.largest.clear();
    for layer in 0..12 {
        let mut block = last.clone();
        block.origin.module = Some(format!("Net_0 > Block_{layer} > Linear_{}", 2 * layer + 1));
        answer.memory.largest.push(block);
    }
    let mut other = last;
    other.origin.module = Some("Net_0 > Head_0".to_owned());
    answer.memory.largest.push(other);
    let page = text::answer("t", &answer, &Extent::FULL, &PLAIN);
    let (_, rows) = page.split_once("Largest blocks alive at the peak\n").expect("the part");
    let rows: Vec<&str> = rows.lines().take_while(|line| !line.is_empty()).collect();
    assert_eq!(rows.len(), 4, "{rows:?}");
    assert!(rows[0].trim_start().starts_with("12 ×   "), "{rows:?}");
    assert!(rows[1].trim_start().starts_with("Net_0 > Block_* > Linear_*,"), "{rows:?}");
    assert!(rows[3].trim_start().starts_with("Net_0 > Head_0,"), "{rows:?}");
}

#[test]
fn an_answer_scrolled_by() {
    for answer in [sample::fits(), sample::does_not_fit(), sample::only_just()] {
        let next = vec![("xmem plan t".to_owned(), "how little the same tensors need".to_owned())];
        let extent = Extent { full: false, notes: false, rows: 10, next };
        let page = text::answer("t", &answer, &extent, &PLAIN);
        let lines: Vec<&str> = page.lines().collect();
        assert!(lines.len() <= 30, "{page}");
        let word = answer.decision().0.words();
        assert!(lines[0].starts_with(word), "{page}");
        let last = lines[lines.len() - 1];
        assert!(last.starts_with(word) || lines.len() <= 24, "{page}");
        assert_eq!(page.contains("xmem plan t"), answer.memory.out_of_memory.is_some(), "{page}");
        let full = text::answer("t", &answer, &Extent::FULL, &PLAIN);
        assert!(full.lines().count() > lines.len(), "{full}");
        assert!(full.lines().last().is_some_and(|line| line.starts_with(word)), "{full}");
    }
}
