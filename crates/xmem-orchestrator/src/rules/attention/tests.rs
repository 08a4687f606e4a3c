//! scaled_dot_product_attention: CUDA's fused kernels instead of the CPU's.

mod math;
mod scripts;
mod wide;

use super::RULE;
use crate::testing::case::on;
use crate::testing::{Case, target};
use expect_test::expect;
use scripts::{Inputs, Layout, Mask, checkpointed, flash, masked_flash, math};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = math::cases();
    cases.extend(fused());
    cases.extend(wide::cases());
    cases
}

fn fused() -> Vec<Case> {
    vec![
        Case {
            rule: RULE.name,
            shows: "CPU flash, 32 bits: memory-efficient; row sums padded to 32 rows",
            script: flash("f32", 4, Layout::BatchFirst),
            target: target(),
            requests: expect![[r#"
                CPU flash, 32 bits: memory-efficient; row sums padded to 32 rows
                    + q 8192 input
                    + k 8192 input
                    + v 8192 input
                    + out 8192 activation
                on  + row_sums 1024 activation attention
                off + row_sums 256 activation
                    + gq 8192 gradient
                    + gk 8192 gradient
                    + gv 8192 gradient
                on  + attention#1 8192 workspace
                on  + attention#2 256 workspace
                on  + attention#3 256 workspace
                on  - attention#2
                on  - attention#1
                on  + attention#4 131200 workspace
                on  - attention#3
                on  - attention#4
                    - q
                    - k
                    - v
                    - out
                    - row_sums
                    - gq
                    - gk
                    - gv
            "#]],
        },
        Case {
            rule: RULE.name,
            shows: "CPU flash, bfloat16: flash; seed and offset, a 32-bit accumulator in backward",
            script: flash("bf16", 4, Layout::BatchFirst),
            target: target(),
            requests: expect![[r#"
                CPU flash, bfloat16: flash; seed and offset, a 32-bit accumulator in backward
                    + q 4096 input
                    + k 4096 input
                    + v 4096 input
                    + out 4096 activation
                    + row_sums 256 activation
                on  + attention#1 16 activation
                on  + attention#2 8 activation
                    + gq 4096 gradient
                    + gk 4096 gradient
                    + gv 4096 gradient
                on  + attention#3 4096 workspace
                on  + attention#4 131072 workspace
                on  - attention#4
                on  - attention#3
                    - q
                    - k
                    - v
                    - out
                    - row_sums
                on  - attention#1
                on  - attention#2
                    - gq
                    - gk
                    - gv
            "#]],
        },
        Case {
            rule: RULE.name,
            shows: "CPU flash, bfloat16, fewer key heads: backward expands key and value gradients",
            script: flash("bf16", 2, Layout::BatchFirst),
            target: target(),
            requests: expect![[r#"
                CPU flash, bfloat16, fewer key heads: backward expands key and value gradients
                    + q 4096 input
                    + k 2048 input
                    + v 2048 input
                    + out 4096 activation
                    + row_sums 256 activation
                on  + attention#1 16 activation
                on  + attention#2 8 activation
                    + gq 4096 gradient
                    + gk 2048 gradient
                    + gv 2048 gradient
                on  + attention#3 4096 workspace
                on  + attention#4 131072 workspace
                on  + attention#5 4096 workspace
                on  + attention#6 4096 workspace
                on  - attention#6
                on  - attention#5
                on  - attention#4
                on  - attention#3
                    - q
                    - k
                    - v
                    - out
                    - row_sums
                on  - attention#1
                on  - attention#2
                    - gq
                    - gk
                    - gv
            "#]],
        },
        Case {
            rule: RULE.name,
            shows: "CPU flash, bfloat16 on Hopper: cuDNN",
            script: flash("bf16", 4, Layout::BatchFirst),
            target: on("h100-80g", 11),
            requests: expect![[r#"
                CPU flash, bfloat16 on Hopper: cuDNN
                    + q 4096 input
                    + k 4096 input
                    + v 4096 input
                    + out 4096 activation
                    + row_sums 256 activation
                on  + attention#1 8 activation
                on  + attention#2 8 activation
                    + gq 4096 gradient
                    + gk 4096 gradient
                    + gv 4096 gradient
                on  + attention#3 8960 workspace
                on  - attention#3
                    - q
                    - k
                    - v
                    - out
                    - row_sums
                on  - attention#1
                on  - attention#2
                    - gq
                    - gk
                    - gv
            "#]],
        },
        Case {
            rule: RULE.name,
            shows: "CPU flash, 32 bits, a boolean mask of unaligned rows: a padded copy is kept",
            script: masked_flash(),
            target: target(),
            requests: expect![[r#"
                CPU flash, 32 bits, a boolean mask of unaligned rows: a padded copy is kept
                    + q 96 input
                    + k 160 input
                    + v 160 input
                on  + mask 60 activation attention
                on  + attention#1 96 activation
                off + mask 60 activation
                    + out 96 activation
                on  + row_sums 128 activation attention
                on  - mask
                off + row_sums 12 activation
                    + gq 96 gradient
                    + gk 160 gradient
                    + gv 160 gradient
                on  + attention#2 96 workspace
                on  + attention#3 12 workspace
                on  + attention#4 12 workspace
                on  - attention#3
                on  - attention#2
                on  + attention#5 16400 workspace
                on  - attention#4
                on  - attention#5
                    - q
                    - k
                    - v
                off - mask
                    - out
                    - row_sums
                on  - attention#1
                    - gq
                    - gk
                    - gv
            "#]],
        },
        Case {
            rule: RULE.name,
            shows: "checkpointed: the first run keeps nothing, the second what backward needs",
            script: checkpointed(),
            target: target(),
            requests: expect![[r#"
                checkpointed: the first run keeps nothing, the second what backward needs
                    + q 6400 input
                    + k 6400 input
                    + v 6400 input
                on  + out 6400 temporary
                on  + h 6400 activation attention
                off + scaled_q 6400 temporary
                off + scaled_k 6400 temporary
                off + scores 40000 temporary
                    + cublas-workspace#1 8519680 workspace
                off + p 40000 temporary
                off - scores
                off + noise 10000 temporary dropout-mask
                off + dropped 40000 temporary
                off + out 6400 temporary
                off + h 6400 activation
                    - q
                    - k
                    - v
                off - scaled_q
                off - scaled_k
                off - p
                off - noise
                off - dropped
                    - out
                on  + q 6400 temporary attention
                on  + k 6400 temporary attention
                on  + v 6400 temporary attention
                on  + out 6400 activation attention
                on  + attention#1 1024 activation
                on  + again 6400 temporary
                off + q 6400 temporary
                off + k 6400 temporary
                off + v 6400 temporary
                off + scaled_q 6400 temporary
                off + scaled_k 6400 temporary
                off + scores 40000 temporary
                    + cublas-workspace#2 8519680 workspace
                on  - again
                on  + gy 6400 temporary attention
                on  + gv 6400 gradient attention
                on  + gk 6400 gradient attention
                on  + gq 6400 gradient attention
                on  + attention#2 6400 workspace
                on  + attention#3 800 workspace
                on  + attention#4 800 workspace
                on  - attention#3
                on  - attention#2
                on  + attention#5 65600 workspace
                on  - attention#4
                on  - attention#5
                on  - h
                off + p 40000 temporary
                off - scores
                off + noise 10000 temporary dropout-mask
                off + dropped 40000 temporary
                off + out 6400 temporary
                off + again 6400 temporary
                    - q
                    - k
                on  - v
                off - again
                off + gy 6400 temporary
                    - out
                off - h
                off + gv 6400 gradient
                off + g_dropped 40000 temporary
                off - dropped
                    - gy
                on  - attention#1
                off - v
                off + g_p 40000 temporary
                off - noise
                off - g_dropped
                off + g_scores 40000 temporary
                off + softmax-backward#1 40000 workspace
                off - softmax-backward#1
                off - p
                off - g_p
                off + g_scaled_q 6400 temporary
                off + g_scaled_k 6400 temporary
                off - scaled_q
                off - scaled_k
                off - g_scores
                off + gk 6400 gradient
                off - g_scaled_k
                off + gq 6400 gradient
                off - g_scaled_q
                    - gq
                    - gk
                    - gv
            "#]],
        },
        Case {
            rule: RULE.name,
            shows: "dropout: the CPU's math path gives way, query, key and value are kept instead",
            script: math(Inputs::Separate, Mask::None),
            target: target(),
            requests: expect![[r#"
                dropout: the CPU's math path gives way, query, key and value are kept instead
                on  + q 6400 input attention
                on  + k 6400 input attention
                on  + v 6400 input attention
                on  + out 6400 activation attention
                on  + attention#1 1024 activation
                on  + gy 6400 temporary attention
                on  + gv 6400 gradient attention
                on  + gk 6400 gradient attention
                on  + gq 6400 gradient attention
                on  + attention#2 6400 workspace
                on  + attention#3 800 workspace
                on  + attention#4 800 workspace
                on  - attention#3
                on  - attention#2
                on  + attention#5 65600 workspace
                on  - attention#4
                on  - attention#5
                off + q 6400 input
                off + k 6400 input
                off + v 6400 input
                off + scaled_q 6400 activation
                off + scaled_k 6400 activation
                off + scores 40000 temporary
                off + cublas-workspace#1 8519680 workspace
                off + p 40000 activation
                off - scores
                off + noise 10000 activation dropout-mask
                off + dropped 40000 activation
                off + out 6400 temporary
                    - q
                    - k
                on  - v
                off + y 6400 activation
                    - out
                off + gy 6400 temporary
                off - y
                off + gv 6400 gradient
                off + cublas-workspace#2 8519680 workspace
                off + g_dropped 40000 temporary
                off - dropped
                    - gy
                on  - attention#1
                off - v
                off + g_p 40000 temporary
                off - noise
                off - g_dropped
                off + g_scores 40000 temporary
                off + softmax-backward#1 40000 workspace
                off - softmax-backward#1
                off - p
                off - g_p
                off + g_scaled_q 6400 temporary
                off + g_scaled_k 6400 temporary
                off - scaled_q
                off - scaled_k
                off - g_scores
                off + gk 6400 gradient
                off - g_scaled_k
                off + gq 6400 gradient
                off - g_scaled_q
                    - gq
                    - gk
                    - gv
            "#]],
        },
        Case {
            rule: RULE.name,
            shows: "dropout and a boolean mask: kept as an additive one in the input's type",
            script: math(Inputs::Separate, Mask::Boolean),
            target: target(),
            requests: expect![[r#"
                dropout and a boolean mask: kept as an additive one in the input's type
                on  + q 6400 input attention
                on  + k 6400 input attention
                on  + v 6400 input attention
                off + q 6400 input
                off + k 6400 input
                off + v 6400 input
                    + mask 5000 input
                on  + attention#1 4 temporary
                on  + attention#2 4 temporary
                on  + attention#3 20000 activation
                on  - attention#2
                on  - attention#1
                on  + attention#4 22400 activation
                on  + out 6400 activation attention
                on  + attention#5 1024 activation
                on  - attention#3
                off + scaled_q 6400 activation
                off + scaled_k 6400 activation
                off + scores 40000 temporary
                off + cublas-workspace#1 8519680 workspace
                off + p 40000 activation
                off - scores
                off + noise 10000 activation dropout-mask
                off + dropped 40000 activation
                off + out 6400 temporary
                    - mask
                on  + gy 6400 temporary attention
                on  + gv 6400 gradient attention
                on  + gk 6400 gradient attention
                on  + gq 6400 gradient attention
                on  + attention#6 6400 workspace
                on  + attention#7 800 workspace
                on  + attention#8 800 workspace
                on  - attention#7
                on  - attention#6
                on  + attention#9 65600 workspace
                on  - attention#8
                on  - attention#9
                    - q
                    - k
                on  - v
                off + y 6400 activation
                    - out
                off + gy 6400 temporary
                off - y
                off + gv 6400 gradient
                off + cublas-workspace#2 8519680 workspace
                off + g_dropped 40000 temporary
                off - dropped
                    - gy
                on  - attention#5
                on  - attention#4
                off - v
                off + g_p 40000 temporary
                off - noise
                off - g_dropped
                off + g_scores 40000 temporary
                off + softmax-backward#1 40000 workspace
                off - softmax-backward#1
                off - p
                off - g_p
                off + g_scaled_q 6400 temporary
                off + g_scaled_k 6400 temporary
                off - scaled_q
                off - scaled_k
                off - g_scores
                off + gk 6400 gradient
                off - g_scaled_k
                off + gq 6400 gradient
                off - g_scaled_q
                    - gq
                    - gk
                    - gv
            "#]],
        },
        Case {
            rule: RULE.name,
            shows: "dropout and an additive mask: kept until backward",
            script: math(Inputs::Separate, Mask::Additive),
            target: target(),
            requests: expect![[r#"
                dropout and an additive mask: kept until backward
                on  + q 6400 input attention
                on  + k 6400 input attention
                on  + v 6400 input attention
                off + q 6400 input
                off + k 6400 input
                off + v 6400 input
                    + mask 20000 input
                on  + attention#1 22400 activation
                on  + out 6400 activation attention
                on  + attention#2 1024 activation
                off + scaled_q 6400 activation
                off + scaled_k 6400 activation
                off + scores 40000 temporary
                off + cublas-workspace#1 8519680 workspace
                off + p 40000 activation
                off - scores
                off + noise 10000 activation dropout-mask
                off + dropped 40000 activation
                off + out 6400 temporary
                    - mask
                on  + gy 6400 temporary attention
                on  + gv 6400 gradient attention
                on  + gk 6400 gradient attention
                on  + gq 6400 gradient attention
                on  + attention#3 6400 workspace
                on  + attention#4 800 workspace
                on  + attention#5 800 workspace
                on  - attention#4
                on  - attention#3
                on  + attention#6 65600 workspace
                on  - attention#5
                on  - attention#6
                    - q
                    - k
                on  - v
                off + y 6400 activation
                    - out
                off + gy 6400 temporary
                off - y
                off + gv 6400 gradient
                off + cublas-workspace#2 8519680 workspace
                off + g_dropped 40000 temporary
                off - dropped
                    - gy
                on  - attention#2
                on  - attention#1
                off - v
                off + g_p 40000 temporary
                off - noise
                off - g_dropped
                off + g_scores 40000 temporary
                off + softmax-backward#1 40000 workspace
                off - softmax-backward#1
                off - p
                off - g_p
                off + g_scaled_q 6400 temporary
                off + g_scaled_k 6400 temporary
                off - scaled_q
                off - scaled_k
                off - g_scores
                off + gk 6400 gradient
                off - g_scaled_k
                off + gq 6400 gradient
                off - g_scaled_q
                    - gq
                    - gk
                    - gv
            "#]],
        },
        Case {
            rule: RULE.name,
            shows: "CPU flash, 32 bits, sequence first: copies on the way out and back in",
            script: flash("f32", 4, Layout::SequenceFirst),
            target: target(),
            requests: expect![[r#"
                CPU flash, 32 bits, sequence first: copies on the way out and back in
                    + q 8192 input
                    + k 8192 input
                    + v 8192 input
                    + out 8192 activation
                on  + row_sums 1024 activation attention
                on  + attention#1 8192 activation
                on  - attention#1
                off + row_sums 256 activation
                    + gq 8192 gradient
                    + gk 8192 gradient
                    + gv 8192 gradient
                on  + attention#2 8192 workspace
                on  + attention#3 8192 workspace
                on  + attention#4 256 workspace
                on  + attention#5 256 workspace
                on  - attention#4
                on  - attention#3
                on  + attention#6 131200 workspace
                on  - attention#5
                on  - attention#6
                on  - attention#2
                    - q
                    - k
                    - v
                    - out
                    - row_sums
                    - gq
                    - gk
                    - gv
            "#]],
        },
        Case {
            rule: RULE.name,
            shows: "dropout, query, key and value in one block: it is kept as a whole",
            script: math(Inputs::Packed, Mask::None),
            target: target(),
            requests: expect![[r#"
                dropout, query, key and value in one block: it is kept as a whole
                on  + qkv 19200 input attention
                on  + out 6400 activation attention
                on  + attention#1 1024 activation
                on  + gy 6400 temporary attention
                on  + gv 6400 gradient attention
                on  + gk 6400 gradient attention
                on  + gq 6400 gradient attention
                on  + attention#2 6400 workspace
                on  + attention#3 800 workspace
                on  + attention#4 800 workspace
                on  - attention#3
                on  - attention#2
                on  + attention#5 65600 workspace
                on  - attention#4
                on  - attention#5
                on  - qkv
                off + qkv 19200 input
                off + scaled_q 6400 activation
                off + scaled_k 6400 activation
                off + scores 40000 temporary
                off + cublas-workspace#1 8519680 workspace
                off + p 40000 activation
                off - scores
                off + noise 10000 activation dropout-mask
                off + dropped 40000 activation
                off + out 6400 temporary
                off + y 6400 activation
                    - out
                off + gy 6400 temporary
                off - y
                off + gv 6400 gradient
                off + cublas-workspace#2 8519680 workspace
                off + g_dropped 40000 temporary
                off - dropped
                    - gy
                on  - attention#1
                off - qkv
                off + g_p 40000 temporary
                off - noise
                off - g_dropped
                off + g_scores 40000 temporary
                off + softmax-backward#1 40000 workspace
                off - softmax-backward#1
                off - p
                off - g_p
                off + g_scaled_q 6400 temporary
                off + g_scaled_k 6400 temporary
                off - scaled_q
                off - scaled_k
                off - g_scores
                off + gk 6400 gradient
                off - g_scaled_k
                off + gq 6400 gradient
                off - g_scaled_q
                    - gq
                    - gk
                    - gv
            "#]],
        },
        Case {
            rule: RULE.name,
            shows: "dropout, a query that is a part of its block: the block is kept, with key and value",
            script: math(Inputs::PackedQuery, Mask::None),
            target: target(),
            requests: expect![[r#"
                dropout, a query that is a part of its block: the block is kept, with key and value
                on  + qkv 19200 input attention
                on  + k 6400 input attention
                on  + v 6400 input attention
                on  + out 6400 activation attention
                on  + attention#1 1024 activation
                on  + gy 6400 temporary attention
                on  + gv 6400 gradient attention
                on  + gk 6400 gradient attention
                on  + gq 6400 gradient attention
                on  + attention#2 6400 workspace
                on  + attention#3 800 workspace
                on  + attention#4 800 workspace
                on  - attention#3
                on  - attention#2
                on  + attention#5 65600 workspace
                on  - attention#4
                on  - attention#5
                off + qkv 19200 input
                off + k 6400 input
                off + v 6400 input
                off + scaled_q 6400 activation
                off + scaled_k 6400 activation
                off + scores 40000 temporary
                off + cublas-workspace#1 8519680 workspace
                off + p 40000 activation
                off - scores
                off + noise 10000 activation dropout-mask
                off + dropped 40000 activation
                off + out 6400 temporary
                    - qkv
                    - k
                on  - v
                off + y 6400 activation
                    - out
                off + gy 6400 temporary
                off - y
                off + gv 6400 gradient
                off + cublas-workspace#2 8519680 workspace
                off + g_dropped 40000 temporary
                off - dropped
                    - gy
                on  - attention#1
                off - v
                off + g_p 40000 temporary
                off - noise
                off - g_dropped
                off + g_scores 40000 temporary
                off + softmax-backward#1 40000 workspace
                off - softmax-backward#1
                off - p
                off - g_p
                off + g_scaled_q 6400 temporary
                off + g_scaled_k 6400 temporary
                off - scaled_q
                off - scaled_k
                off - g_scores
                off + gk 6400 gradient
                off - g_scaled_k
                off + gq 6400 gradient
                off - g_scaled_q
                    - gq
                    - gk
                    - gv
            "#]],
        },
        Case {
            rule: RULE.name,
            shows: "dropout and a learned mask: its gradient comes for each batch entry and is summed",
            script: math(Inputs::Separate, Mask::Learned),
            target: target(),
            requests: expect![[r#"
                dropout and a learned mask: its gradient comes for each batch entry and is summed
                on  + q 6400 input attention
                on  + k 6400 input attention
                on  + v 6400 input attention
                off + q 6400 input
                off + k 6400 input
                off + v 6400 input
                    + mask 20000 input
                on  + attention#1 22400 activation
                on  + out 6400 activation attention
                on  + attention#2 1024 activation
                on  + gy 6400 temporary attention
                on  + gv 6400 gradient attention
                on  + gk 6400 gradient attention
                on  + gq 6400 gradient attention
                on  + attention#3 51200 temporary
                on  + attention#4 6400 workspace
                on  + attention#5 800 workspace
                on  + attention#6 800 workspace
                on  - attention#5
                on  - attention#4
                on  + attention#7 65600 workspace
                on  - attention#6
                on  - attention#7
                on  + attention#8 20000 temporary
                on  - attention#3
                on  + attention#9 22400 temporary
                on  - attention#8
                on  + g_mask 20000 gradient attention
                on  - attention#9
                off + scaled_q 6400 activation
                off + scaled_k 6400 activation
                off + scores 40000 temporary
                off + cublas-workspace#1 8519680 workspace
                off + p 40000 activation
                off - scores
                off + noise 10000 activation dropout-mask
                off + dropped 40000 activation
                off + out 6400 temporary
                    - q
                    - k
                on  - v
                off + y 6400 activation
                    - out
                off + gy 6400 temporary
                off - y
                off + gv 6400 gradient
                off + cublas-workspace#2 8519680 workspace
                off + g_dropped 40000 temporary
                off - dropped
                    - gy
                on  - attention#2
                on  - attention#1
                off - v
                off + g_p 40000 temporary
                off - noise
                off - g_dropped
                off + g_scores 40000 temporary
                off + softmax-backward#1 40000 workspace
                off - softmax-backward#1
                off - p
                off - g_p
                off + g_mask 20000 gradient
                off + g_scaled_q 6400 temporary
                off + g_scaled_k 6400 temporary
                off - scaled_q
                off - scaled_k
                off - g_scores
                off + gk 6400 gradient
                off - g_scaled_k
                off + gq 6400 gradient
                off - g_scaled_q
                    - gq
                    - gk
                    - gv
                    - mask
                    - g_mask
            "#]],
        },
    ]
}
