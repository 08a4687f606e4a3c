//! The math path on CUDA where the CPU took its flash kernel.

use super::scripts::{Layout, flash};
use crate::rules::attention::RULE;
use crate::testing::case::on;
use crate::testing::{Case, target};
use expect_test::expect;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case {
            rule: RULE.name,
            shows: "CPU flash, 32 bits, fewer key heads: the math path with its copies, and its backward",
            script: flash("f32", 2, Layout::BatchFirst),
            target: target(),
            requests: expect![[r#"
                CPU flash, 32 bits, fewer key heads: the math path with its copies, and its backward
                on  + q 8192 input attention
                on  + k 4096 input attention
                on  + v 4096 input attention
                on  + attention#1 8192 activation
                on  + attention#2 64 temporary
                on  + attention#3 64 temporary
                on  - attention#2
                on  + attention#4 4 temporary
                on  + attention#5 4 temporary
                on  + attention#6 256 temporary
                on  - attention#5
                on  - attention#4
                on  - attention#3
                on  + attention#7 8192 temporary
                on  + attention#8 8192 activation
                on  + attention#9 8192 activation
                on  + attention#10 2048 temporary
                on  + attention#11 2048 activation
                on  + attention#12 512 temporary
                on  + attention#13 64 temporary
                on  + attention#14 4 temporary
                on  - attention#14
                on  - attention#13
                on  - attention#12
                on  - attention#10
                on  + out 8192 activation attention
                on  - attention#7
                on  - attention#6
                on  + attention#15 8192 activation
                off + q 8192 input
                off + k 4096 input
                off + v 4096 input
                off + out 8192 activation
                off + row_sums 256 activation
                off + gq 8192 gradient
                off + gk 4096 gradient
                off + gv 4096 gradient
                    - q
                    - k
                    - v
                    - out
                on  + attention#16 8192 temporary
                on  + attention#17 8192 temporary
                on  + attention#18 2048 temporary
                on  - attention#16
                on  - attention#8
                on  + attention#19 2048 temporary
                on  + attention#20 2048 temporary
                on  - attention#20
                on  - attention#18
                on  - attention#11
                on  + attention#21 8192 temporary
                on  + attention#22 8192 temporary
                on  - attention#19
                on  - attention#9
                on  - attention#1
                on  + attention#23 8192 temporary
                on  - attention#21
                on  + gv 4096 gradient attention
                on  - attention#17
                on  + gk 4096 gradient attention
                on  - attention#23
                on  + gq 8192 gradient attention
                on  - attention#22
                on  - attention#15
                off - row_sums
                    - gq
                    - gk
                    - gv
            "#]],
        },
        Case {
            rule: RULE.name,
            shows: "CPU flash, bfloat16 on a T4: the math path in 32-bit copies",
            script: flash("bf16", 4, Layout::BatchFirst),
            target: on("t4-16g", 11),
            requests: expect![[r#"
                CPU flash, bfloat16 on a T4: the math path in 32-bit copies
                on  + q 4096 input attention
                on  + k 4096 input attention
                on  + v 4096 input attention
                on  + attention#1 8192 temporary
                on  + attention#2 8192 temporary
                on  + attention#3 8192 activation
                on  + attention#4 8192 activation
                on  + attention#5 64 temporary
                on  + attention#6 64 temporary
                on  - attention#5
                on  + attention#7 4 temporary
                on  + attention#8 4 temporary
                on  + attention#9 256 temporary
                on  - attention#8
                on  - attention#7
                on  - attention#6
                on  + attention#10 8192 activation
                on  + attention#11 2048 temporary
                on  + attention#12 2048 activation
                on  + attention#13 512 temporary
                on  + attention#14 64 temporary
                on  + attention#15 4 temporary
                on  - attention#15
                on  - attention#14
                on  - attention#13
                on  - attention#11
                on  + attention#16 1024 temporary
                on  + attention#17 8192 temporary
                on  + out 4096 activation attention
                on  - attention#17
                on  - attention#9
                on  - attention#2
                on  - attention#1
                on  - attention#16
                on  + attention#18 4096 activation
                off + q 4096 input
                off + k 4096 input
                off + v 4096 input
                off + out 4096 activation
                off + row_sums 256 activation
                off + gq 4096 gradient
                off + gk 4096 gradient
                off + gv 4096 gradient
                    - q
                    - k
                    - v
                    - out
                on  + attention#19 8192 temporary
                on  + attention#20 8192 temporary
                on  - attention#19
                on  + attention#21 8192 temporary
                on  + attention#22 2048 temporary
                on  - attention#20
                on  - attention#3
                on  + attention#23 2048 temporary
                on  + attention#24 2048 temporary
                on  - attention#24
                on  - attention#22
                on  - attention#12
                on  + attention#25 8192 temporary
                on  + attention#26 8192 temporary
                on  - attention#23
                on  - attention#10
                on  - attention#4
                on  + attention#27 8192 temporary
                on  - attention#25
                on  + attention#28 8192 temporary
                on  - attention#26
                on  + gv 4096 gradient attention
                on  - attention#21
                on  + gk 4096 gradient attention
                on  - attention#27
                on  + gq 4096 gradient attention
                on  - attention#28
                on  - attention#18
                off - row_sums
                    - gq
                    - gk
                    - gv
            "#]],
        },
    ]
}
