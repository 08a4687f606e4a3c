//! Memory-efficient attention with heads wider than a block.

use super::scripts::wide_flash;
use crate::rules::attention::RULE;
use crate::testing::Case;
use crate::testing::case::on;
use expect_test::expect;

pub(super) fn cases() -> Vec<Case> {
    vec![Case {
        rule: RULE.name,
        shows: "CPU flash, 16 bits, wide heads on Turing: the output and two gradients are summed in 32 bits",
        script: wide_flash(),
        target: on("t4-16g", 11),
        requests: expect![[r#"
                CPU flash, 16 bits, wide heads on Turing: the output and two gradients are summed in 32 bits
                    + q 1280 input
                    + k 1280 input
                    + v 1280 input
                    + out 1280 activation
                on  + row_sums 128 activation attention
                on  + attention#1 2560 workspace
                on  - attention#1
                off + row_sums 16 activation
                    + gq 1280 gradient
                    + gk 1280 gradient
                    + gv 1280 gradient
                on  + attention#2 16 workspace
                on  + attention#3 229424 workspace
                on  - attention#2
                on  - attention#3
                    - q
                    - k
                    - v
                    - out
                    - row_sums
                    - gq
                    - gk
                    - gv
            "#]],
    }]
}
