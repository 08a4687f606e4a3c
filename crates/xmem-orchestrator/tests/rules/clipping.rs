//! Norms of all gradients at once.

use crate::support::{Case, Script, check, target};
use expect_test::expect;

const RULE: &str = "gradient-norm";

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case {
            rule: RULE,
            shows: "partial results for the chunks of the largest gradient, for each gradient",
            script: norms("2."),
            target: target(),
            requests: expect![[r#"
                partial results for the chunks of the largest gradient, for each gradient
                on  + gradient-norm#1 48 workspace
                    + of_w 4 temporary
                off + reduction-buffer#1 172 workspace
                off + reduction-buffer#2 4 workspace
                off - reduction-buffer#1
                off - reduction-buffer#2
                    + of_b 4 temporary
                on  - gradient-norm#1
                    + norms 8 temporary
                    - of_b
                    - of_w
                    - norms
            "#]],
        },
        Case {
            rule: RULE,
            shows: "norm 3: tensor by tensor",
            script: norms("3."),
            target: target(),
            requests: expect![[r#"
                norm 3: tensor by tensor
                    + of_w 4 temporary
                    + reduction-buffer#1 172 workspace
                    + reduction-buffer#2 4 workspace
                    - reduction-buffer#1
                    - reduction-buffer#2
                    + of_b 4 temporary
                    + norms 8 temporary
                    - of_b
                    - of_w
                    - norms
            "#]],
        },
    ]
}

/// Gradients of 350000 and 500 elements: six chunks of 65536 and one, as recorded with PyTorch 2.11's
/// CUDA build, kernels stubbed (with eight gradients, 192 bytes).
fn norms(order: &str) -> Script {
    let mut t = Script::default();
    t.iteration(0, |t| {
        t.op("aten::_foreach_norm", &format!("- {order} -"), |t| {
            for (shape, name) in [("f32[500,700]", "of_w"), ("f32[500]", "of_b")] {
                let arguments = format!("{shape} {order} - False -");
                t.makes("aten::linalg_vector_norm", &arguments, name, 4);
            }
        });
        t.makes("aten::stack", "- 0", "norms", 8);
        t.free("of_b of_w norms");
    });
    t
}

#[test]
fn schedules_are_as_expected() {
    check(cases());
}
