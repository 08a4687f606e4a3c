//! Sorting and selection. Long sorts take index lists and a radix sort's scratch; selection (`kthvalue`,
//! `median` of a dimension) finds value and position in place, where the CPU works on a copy; `topk` works on
//! a contiguous copy, and few long rows are searched digit by digit by many blocks of threads each, which
//! keep counts.

use crate::frame::call::Call;
use crate::frame::count::Count;
use crate::frame::cuda::layout::is_contiguous;
use crate::frame::cuda::radix_sort::{self, ALIGNMENT, bits};
use crate::frame::definition::{Applies, Outcome, RuleDefinition};
use crate::rule::Rule;
use xmem_analyzer::TensorArg;

pub(crate) static RULE: RuleDefinition = RuleDefinition {
    rule: Rule {
        name: "sort-buffers",
        summary: "long sorts take index lists and a radix sort's scratch; selection works in place, without the CPU's copy",
        source: "aten/src/ATen/native/cuda/SortStable.cu `launch_stable_sort_kernel`; aten/src/ATen/native/cuda/Sorting.cu `launch_kthvalue_kernel`",
        operators: &["aten::kthvalue", "aten::median", "aten::sort", "aten::topk"],
        covers: &["aten::argsort", "aten::msort"],
    },
    applies: Applies::ToOperators(|_| Box::new(lower)),
};

/// Bytes of a position.
const INDEX: u64 = 8;

/// Up to this size of the sorted dimension a block of threads sorts a row on its own
/// (aten/src/ATen/native/cuda/Sort.cpp, `should_use_small_sort`).
const SMALL: u64 = 4096;

/// From here on rows are sorted one after another (aten/src/ATen/native/cuda/SortStable.cu,
/// `launch_stable_sort_kernel`).
const LONG: u64 = 1_000_000;

/// Fewer rows than this are sorted as one list, twice (SortStable.cu,
/// `segmented_sort_pairs_by_full_sort`).
const FEW_ROWS: u64 = 128;

fn lower(call: &mut Call<'_, '_, '_>) -> Outcome {
    Outcome::of_innermost(call, |call| match call.name() {
        "aten::sort" => sort(call),
        // Without a dimension: all of it is sorted.
        "aten::median" if call.arguments().value(1).is_none() => median(call),
        "aten::topk" => topk(call),
        _ => selection(call),
    })
}

/// `sort(self, dim, descending)` or `sort(self, stable, dim, descending)`, in a dimension that is
/// too long for one block of threads. Shorter ones request what the CPU requests.
fn sort(call: &mut Call<'_, '_, '_>) -> Option<()> {
    let arguments = call.arguments();
    let input = arguments.tensor(0)?;
    let position = if arguments.list.len() > 3 { 2 } else { 1 };
    let length = extent(input, number(call, position)).filter(|&d| d > SMALL)?;
    let (count, element) = (Count::elements(input), input.dtype.size());
    let rows = (count / length).get();
    let mut plan = call.plan();
    plan.output_each([Count::bytes(input), count * INDEX]);
    if rows == 1 || length >= LONG {
        plan.hold(Count(length) * INDEX);
        for _ in 0..rows.min(MAX_ROWS) {
            plan.touch(radix_sort::scratch(length, element, INDEX, bits(element)));
        }
    } else if rows < FEW_ROWS {
        // Row and position of each element, twice; the sorted keys; then back by row.
        plan.hold_each([count * INDEX; 2]);
        let keys = plan.take(Count::bytes(input));
        plan.touch(radix_sort::scratch(count, element, INDEX, bits(element)));
        plan.free(keys);
        let digits = u32::BITS - u32::try_from(rows).unwrap_or(u32::MAX).leading_zeros();
        plan.touch(radix_sort::scratch(count, INDEX, INDEX, digits));
    } else {
        plan.hold(count * INDEX);
        plan.touch(count * (element + INDEX) + (ALIGNMENT - 1));
    }
    plan.finish();
    Some(())
}

/// Rows whose scratch is requested one after another: the same block serves all, so that more of them
/// change nothing.
const MAX_ROWS: u64 = 4096;

/// `median(self)` without a dimension (aten/src/ATen/native/cuda/Sorting.cpp, `median_impl`).
fn median(call: &mut Call<'_, '_, '_>) -> Option<()> {
    let input = call.arguments().tensor(0)?;
    let (count, element) = (Count::elements(input), input.dtype.size());
    let mut plan = call.plan();
    plan.hold(Count::bytes(input));
    let lists = [plan.take(count * INDEX), plan.take(count * INDEX)];
    plan.touch(radix_sort::scratch(count, element, INDEX, bits(element)));
    plan.free_all(lists.into_iter().rev());
    plan.output(Count(element));
    plan.finish();
    Some(())
}

/// `kthvalue`, `median` of a dimension (aten/src/ATen/native/cuda/Sorting.cu,
/// `launch_kthvalue_kernel`, `launch_median_kernel`).
fn selection(call: &mut Call<'_, '_, '_>) -> Option<()> {
    call.plan().finish();
    Some(())
}

/// `topk(self, k, dim, …)` (aten/src/ATen/native/cuda/TensorTopK.cu, `mbtopk::launch`,
/// `get_items_per_thread`, `should_use_multiblock`).
fn topk(call: &mut Call<'_, '_, '_>) -> Option<()> {
    const THREADS: u64 = 256;
    const BINS: u64 = 256;
    const RESIDENT: u64 = 6;
    let input = call.arguments().tensor(0)?;
    let wanted = u64::try_from(number(call, 1)?).ok()?;
    let length = extent(input, number(call, 2))?;
    let rows = Count::elements(input) / length;
    let found = rows * wanted;
    let sms = u64::from(call.target().device.sms);
    let mut plan = call.plan();
    if !is_contiguous(input) {
        plan.hold(Count::bytes(input));
    }
    plan.output_each([found.of(input.dtype), found * INDEX]);
    if many_blocks(rows.get(), length) {
        let at_once = sms * RESIDENT * THREADS;
        let each = (rows * length).div_ceil(at_once.max(1)).get().clamp(4, 64) * THREADS;
        let blocks = rows * length.div_ceil(each);
        plan.hold_each([
            rows.of(input.dtype), // the values searched for
            rows * 8,
            rows * 8,
            blocks * BINS * 2, // counts of each digit, and their sums
            rows * BINS * 4,
            blocks * 4,
            blocks * 4,
        ]);
    }
    plan.finish();
    Some(())
}

fn number(call: &Call<'_, '_, '_>, position: usize) -> Option<i64> {
    call.arguments().ints(position)?.first().copied()
}

/// The extent of a dimension; the last one if it is not recorded, negative ones from the end.
fn extent(input: &TensorArg, dim: Option<i64>) -> Option<u64> {
    let (dim, rank) = (dim.unwrap_or(-1), input.dims.len() as i64);
    let dim = if dim < 0 { dim.checked_add(rank)? } else { dim };
    input.dims.get(usize::try_from(dim).ok()?).copied()
}

/// Returns whether a row is shared by blocks of threads: the fewer rows, the shorter they may be.
fn many_blocks(rows: u64, length: u64) -> bool {
    let shortest = match rows {
        0..=20 => 20_000,
        21..=40 => 10_000,
        41..=80 => 8000,
        81..=199 => 5000,
        200..=799 => 3000,
        800..=4000 => 800,
        _ => 400,
    };
    length >= shortest
}

#[cfg(test)]
pub(super) mod tests {
    use super::RULE;
    use crate::testing::{Case, Script, lowered, target};
    use expect_test::expect;
    use std::fmt::Write as _;

    pub(crate) fn cases() -> Vec<Case> {
        vec![Case {
            rule: RULE.name,
            shows: "one long row",
            script: one_operator("aten::sort", "f32[200000] -1 False", &[800_000, 1_600_000]),
            target: target(),
            requests: expect![[r#"
                    one long row
                        + y0 800000 activation
                        + y1 1600000 activation
                    on  + sort-buffers#1 1600000 workspace
                    on  + sort-buffers#2 2476287 workspace
                    on  - sort-buffers#2
                    on  - sort-buffers#1
                        - y0
                        - y1
                "#]],
        }]
    }

    fn one_operator(operator: &str, arguments: &str, outputs: &[u64]) -> Script {
        let mut t = Script::default();
        t.iteration(0, |t| {
            t.op_seq(1, operator, arguments, |t| {
                for (i, &bytes) in outputs.iter().enumerate() {
                    t.alloc(&format!("y{i}"), bytes);
                }
            });
            t.node(1, "SomeBackward0", |_| ());
            for i in 0..outputs.len() {
                t.free(&format!("y{i}"));
            }
        });
        t
    }

    /// Scratch by operator: what each asks for beside its outputs.
    #[test]
    fn scratch_by_operator() {
        let mut table = String::new();
        for (operator, arguments, outputs) in [
            ("aten::sort", "f32[256,1000] -1 False", &[1_024_000, 2_048_000][..]),
            ("aten::sort", "f32[50,6000] False -1 False", &[1_200_000, 2_400_000]),
            ("aten::sort", "f32[200,6000] -1 False", &[4_800_000, 9_600_000]),
            ("aten::median", "f32[8192,128]", &[4]),
            ("aten::median", "f32[256,1000] -1 False", &[1024, 2048]),
            ("aten::kthvalue", "f32[256,1000] 7 -1 False", &[1024, 2048]),
            ("aten::_index_put_impl_", "f32[64,200,32] - f32[3000,32] True True", &[]),
            ("aten::_index_put_impl_", "f32[500,64] - f32[3000,64] True False", &[]),
            (
                "aten::embedding_dense_backward",
                "f32[64,100,64] i64[64,100] 2000 -1 False",
                &[512_000],
            ),
            ("aten::embedding_dense_backward", "f32[8,100,64] i64[8,100] 2000 -1 True", &[512_000]),
            ("aten::embedding_renorm_", "f32[2000,64] i64[8,100] 1 2", &[]),
            ("aten::smooth_l1_loss", "f32[256,1000] f32[256,1000] 1 1", &[1_024_000]),
            ("aten::mse_loss", "f32[256,1000] f32[256,1000] 0", &[1_024_000]),
            ("aten::_ctc_loss", "f32[50,16,40] i64[16,20] - - 0 False", &[131_200, 64]),
            (
                "aten::_ctc_loss_backward",
                "f32[16] f32[50,16,40] i64[16,20] - - f32[16] f32[16,50,41] 0 False",
                &[128_000],
            ),
            ("aten::topk", "f32[256,1000] 20 -1 True True", &[20_480, 40_960]),
            ("aten::topk", "f32[8,1024]:1,8 256 -1 True True", &[8192, 16_384]),
            ("aten::topk", "f32[4,120000] 200 -1 True True", &[3200, 6400]),
            ("aten::topk", "f32[16,50000] 50 -1 True True", &[3200, 6400]),
            (
                "aten::_embedding_bag_backward",
                "f32[64,64] i64[3200] i64[64] i64[3200] i64[64] i64[0] 2000 False 1 False - -1",
                &[512_000],
            ),
            (
                "aten::_embedding_bag_backward",
                "f32[64,64] i64[3200] i64[64] i64[3200] i64[64] i64[64,64] 2000 False 2 False - -1",
                &[512_000],
            ),
            ("aten::max", "f32[8192,128] 0 False", &[512, 1024]),
        ] {
            let (schedule, _) = lowered(&one_operator(operator, arguments, outputs), &target());
            let added = schedule.blocks.iter().filter(|b| b.rule.is_some());
            let sizes: Vec<u64> = added.map(|b| b.size.get()).collect();
            let _ = writeln!(table, "{operator} {arguments}: {sizes:?}");
        }
        expect![[r#"
            aten::sort f32[256,1000] -1 False: []
            aten::sort f32[50,6000] False -1 False: [2400000, 2400000, 1200000, 3709183, 83455]
            aten::sort f32[200,6000] -1 False: [9600000, 14400255]
            aten::median f32[8192,128]: [4194304, 8388608, 8388608, 12941823]
            aten::median f32[256,1000] -1 False: []
            aten::kthvalue f32[256,1000] 7 -1 False: []
            aten::_index_put_impl_ f32[64,200,32] - f32[3000,32] True True: [24000, 24000, 24000, 24000, 24000, 24000, 24000, 53759]
            aten::_index_put_impl_ f32[500,64] - f32[3000,64] True False: [8, 1, 8, 1, 24000, 24000, 24000, 24000, 24000, 53759]
            aten::embedding_dense_backward f32[64,100,64] i64[64,100] 2000 -1 False: [51200, 51200, 51200, 121343, 51200, 8, 51200, 1279, 16000, 16000, 1279, 8, 21120, 675840]
            aten::embedding_dense_backward f32[8,100,64] i64[8,100] 2000 -1 True: [6400, 6400, 6400, 1, 6400, 1279, 1279, 6400, 8, 6400, 1279, 6400, 6400, 1279, 8, 7040, 225280]
            aten::embedding_renorm_ f32[2000,64] i64[8,100] 1 2: [6400, 6400, 800, 6400, 8, 1279]
            aten::smooth_l1_loss f32[256,1000] f32[256,1000] 1 1: [1024000, 128, 4]
            aten::mse_loss f32[256,1000] f32[256,1000] 0: []
            aten::_ctc_loss f32[50,16,40] i64[16,20] - - 0 False: [128, 128, 128]
            aten::_ctc_loss_backward f32[16] f32[50,16,40] i64[16,20] - - f32[16] f32[16,50,41] 0 False: [128, 128, 128, 131200]
            aten::topk f32[256,1000] 20 -1 True True: []
            aten::topk f32[8,1024]:1,8 256 -1 True True: [32768]
            aten::topk f32[4,120000] 200 -1 True True: [16, 32, 32, 81920, 4096, 640, 640]
            aten::topk f32[16,50000] 50 -1 True True: [64, 128, 128, 90112, 16384, 704, 704]
            aten::_embedding_bag_backward f32[64,64] i64[3200] i64[64] i64[3200] i64[64] i64[0] 2000 False 1 False - -1: [25600, 25600, 25600, 69119, 25600, 8, 25600, 1279, 16000, 16000, 1279, 8, 18560, 593920]
            aten::_embedding_bag_backward f32[64,64] i64[3200] i64[64] i64[3200] i64[64] i64[64,64] 2000 False 2 False - -1: []
            aten::max f32[8192,128] 0 False: [33554432, 4]
        "#]].assert_eq(&table);
    }
}
