//! The browser on a recorded trace: keys in, screens out.
#![allow(clippy::disallowed_methods, reason = "a test reads the recorded traces")]

use expect_test::{Expect, expect};
use proptest::prelude::*;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier};
use std::path::Path;
use std::sync::{Arc, LazyLock};
use xmem::convolutions::FittedModel;
use xmem::predict::{SnapshotEnd, Timeline};
use xmem::{Bytes, Device, Estimate, Job, ReadOptions, find};
use xmem_look::{Browser, Key, KeyOutcome, Palette, Subject, draw};

fn timeline(trace: &str, device: Device) -> Timeline {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces").join(trace);
    let job = Job::from_path(path.join("trace.json.zst"), &ReadOptions::default());
    let estimate = Estimate::builder(device).convolutions(Arc::new(FittedModel)).build();
    estimate.predict(&job.expect("a trace")).expect("a prediction").timeline(SnapshotEnd::Job)
}

static GPT2: LazyLock<Timeline> =
    LazyLock::new(|| timeline("gpt2_adamw", find("a100-40g").expect("a known device").clone()));
static SMALL: LazyLock<Timeline> =
    LazyLock::new(|| timeline("mlp_adam", find("a100-40g").expect("a known device").clone()));

fn browser(timeline: &Timeline) -> Browser {
    Browser::new(Subject {
        name: "runs/gpt2.json.zst".to_owned(),
        device: "a100-40g".to_owned(),
        verdict: "fits".to_owned(),
        timeline: timeline.clone(),
    })
}

/// Keys as a text: letters are themselves, names stand in angle brackets.
fn press(browser: &mut Browser, keys: &str) {
    let mut rest = keys;
    while let Some(first) = rest.chars().next() {
        let named = rest.strip_prefix('<').and_then(|rest| rest.split_once('>'));
        let key = match named {
            Some((name, after)) => {
                rest = after;
                match name {
                    "left" => Key::Left,
                    "right" => Key::Right,
                    "down" => Key::Down,
                    "up" => Key::Up,
                    "page-down" => Key::PageDown,
                    "enter" => Key::Enter,
                    "escape" => Key::Escape,
                    "tab" => Key::Tab,
                    other => panic!("no key `{other}`"),
                }
            }
            None => {
                rest = &rest[first.len_utf8()..];
                Key::Char(first)
            }
        };
        assert_eq!(browser.press(key), KeyOutcome::Continue, "{keys}");
    }
}

fn screen(browser: &mut Browser, palette: Palette, (width, height): (u16, u16)) -> Buffer {
    browser.fit(width, height);
    let mut screen = Buffer::empty(Rect::new(0, 0, width, height));
    draw(browser, palette, &mut screen);
    screen
}

fn lines(screen: &Buffer) -> String {
    let cells = |y| (0..screen.area.width).map(move |x| screen[(x, y)].symbol());
    let line = |y| format!("{}\n", cells(y).collect::<String>().trim_end());
    (0..screen.area.height).map(line).collect()
}

fn check(keys: &str, palette: Palette, size: (u16, u16), expected: &Expect) {
    let mut browser = browser(&GPT2);
    browser.fit(size.0, size.1);
    press(&mut browser, keys);
    expected.assert_eq(&lines(&screen(&mut browser, palette, size)));
}

#[test]
fn a_run_at_its_peak() {
    check(
        "",
        Palette::Color,
        (80, 24),
        &expect![[r#"
            …pt2.json.zst  on a100-40g: fits  peak 186.89 MiB allocated, 210.00 MiB reserved
            210.00 MiB                        ─────────▃─────────────────────▃──────────────
                                ──────────────         █▃▁                   █▃▁
            140.00 MiB       ─█▂            ▁▃▄▃▁   ▂▅██████▆▆▅▃▃ ▃▃▄▃▁   ▂▅██████▆▆▄▃▃ ▃▃▄▃
                           ─▂▅██▇▇▇▄▄▃▂▂ ▂▄▆█████▄▄▇███████████████████▄▄▇██████████████████
                         ▂▄▇████████████▇███████████████████████████████████████████████████
                   0 B ▄▅███████████████████████████████████████████████████████████████████
                       ||     |backward  |step   ||    |backward   |   ||    ▲backward   |
                       ||iteration 0             |iteration 1          |iteration 2
                       █ param  █ grad  █ optim  █ activ  █ input  █ temp  █ work
            186.89 MiB allocated, 210.00 MiB reserved  request 1767, backward of iteration 2
                  bytes      %  blocks  by role, at the peak
              69.98 MiB   37.4      88    activation
              41.11 MiB   22.0     104    optimizer_state
              38.00 MiB   20.3       7    temporary
              20.55 MiB   11.0      52    parameter
              17.25 MiB    9.2       3    workspace
               4.00 KiB    0.0       1    input




            activation
            q quit  ? help  arrows move  +/- zoom  p peak  1-5 by  tab list  / search
        "#]],
    );
    check(
        "",
        Palette::Letters,
        (80, 24),
        &expect![[r#"
            …pt2.json.zst  on a100-40g: fits  peak 186.89 MiB allocated, 210.00 MiB reserved
            210.00 MiB                        ─────────W─────────────────────W──────────────
                                ──────────────         TWW                   TWW
            140.00 MiB       ─TW            WWWWW   WWWATTWWWWWWW WWWWW   WWTATTWWWWWWW WWWW
                           ─WWATWWWWWWWW WWWTTTTTWWWAAAAAAAAAATTTWTTTTTWWWAAAAAAAAAATTTWTTTT
                         WWTAAAAAAAATTTTWOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOO
                   0 B PPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPP
                       ||     |backward  |step   ||    |backward   |   ||    ▲backward   |
                       ||iteration 0             |iteration 1          |iteration 2
                       P param  G grad  O optim  A activ  I input  T temp  W work
            186.89 MiB allocated, 210.00 MiB reserved  request 1767, backward of iteration 2
                  bytes      %  blocks  by role, at the peak
              69.98 MiB   37.4      88    activation
              41.11 MiB   22.0     104    optimizer_state
              38.00 MiB   20.3       7    temporary
              20.55 MiB   11.0      52    parameter
              17.25 MiB    9.2       3    workspace
               4.00 KiB    0.0       1    input




            activation
            q quit  ? help  arrows move  +/- zoom  p peak  1-5 by  tab list  / search
        "#]],
    );
}

#[test]
fn the_page_shows_a_screen() {
    let page = include_str!("../../../../docs/guide/look.md");
    let mut browser = browser(&GPT2);
    let shown = lines(&screen(&mut browser, Palette::Color, (80, 24)));
    assert!(page.contains(&format!("```text\n{shown}```\n")), "{shown}");
}

#[test]
fn modules_that_are_opened() {
    check(
        "2<enter><down><enter>",
        Palette::Letters,
        (80, 24),
        &expect![[r#"
            …pt2.json.zst  on a100-40g: fits  peak 186.89 MiB allocated, 210.00 MiB reserved
            210.00 MiB                        ─────────W─────────────────────W──────────────
                                ──────────────         TWW                   TWW
            140.00 MiB       ─TW            WWWWW   WWWATTWWWWWWW WWWWW   WWTATTWWWWWWW WWWW
                           ─WWATWWWWWWWW WWWTTTTTWWWAAAAAAAAAATTTWTTTTTWWWAAAAAAAAAATTTWTTTT
                         WWTAAAAAAAATTTTWOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOO
                   0 B PPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPP
                       ||     |backward  |step   ||    |backward   |   ||    ▲backward   |
                       ||iteration 0             |iteration 1          |iteration 2
                       P param  G grad  O optim  A activ  I input  T temp  W work
            186.89 MiB allocated, 210.00 MiB reserved  request 1767, backward of iteration 2
                  bytes      %  blocks  by module, at the peak
             125.23 MiB   67.0      97  - GPT2LMHeadModel_0
              69.10 MiB   37.0      92    - GPT2Model_0
              23.77 MiB   12.7      23      + GPT2Block_0
              14.77 MiB    7.9      21      + GPT2Block_2
              14.77 MiB    7.9      21      + GPT2Block_3
              14.65 MiB    7.8      21      + GPT2Block_1
             640.00 KiB    0.3       2        Dropout_0
             516.00 KiB    0.3       3        LayerNorm_8
               8.12 MiB    4.3       1      Linear_0
              61.66 MiB   33.0     158    (no module)
            GPT2LMHeadModel_0 > GPT2Model_0
            q quit  ? help  arrows move  +/- zoom  p peak  1-5 by  tab list  / search
        "#]],
    );
}

#[test]
fn a_block_with_its_details() {
    check(
        "<tab><down><down>",
        Palette::Letters,
        (80, 24),
        &expect![[r#"
            …pt2.json.zst  on a100-40g: fits  peak 186.89 MiB allocated, 210.00 MiB reserved
            210.00 MiB                        ─────────W─────────────────────W──────────────
                                ──────────────         TWW                   TWW
            140.00 MiB       ─TW            WWWWW   WWWATTWWWWWWW WWWWW   WWTATTWWWWWWW WWWW
                           ─WWATWWWWWWWW WWWTTTTTWWWAAAAAAAAAATTTWTTTTTWWWAAAAAAAAAATTTWTTTT
                         WWTAAAAAAAATTTTWOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOO
                   0 B PPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPP
                       ||     |backward  |step   ||    |backward   |   ||    ▲backward   |
                       ||iteration 0             |iteration 1          |iteration 2
                       P param  G grad  O optim  A activ  I input  T temp  W work
            186.89 MiB allocated, 210.00 MiB reserved  request 1767, backward of iteration 2
                  bytes  role            block, 255 in all
              16.00 MiB  activation      aten::_log_softmax  GPT2LMHeadModel_0
              16.00 MiB  temporary       aten::nll_loss_backward  GPT2LMHeadModel_0
              16.00 MiB  temporary       aten::_log_softmax_backward_data  GPT2LMHeadModel_0
               8.12 MiB  workspace       aten::addmm  …2Block_0 > GPT2Attention_0 > Conv1D_0
               8.12 MiB  workspace       aten::mm  GPT2LMHeadModel_0 > Linear_0
               8.00 MiB  parameter       aten::empty  …/gpt2/modeling_gpt2.py(485): __init__
               8.00 MiB  optimizer_state aten::zeros_like  train.py(86): job
            temporary (made and freed within backward): 16.00 MiB for 16.00 MiB requested, a
            allocated by request 1767 (backward of iteration 2), freed by request 1772 (back
            at …LogSoftmaxBackward0 > LogSoftmaxBackward0 > aten::_log_softmax_backward_data
            in GPT2LMHeadModel_0, transformers/loss/loss_utils.py(34): fixed_cross_entropy
            q quit  ? help  arrows move  +/- zoom  p peak  1-5 by  tab list  / search
        "#]],
    );
}

#[test]
fn a_part_of_the_run() {
    check(
        "++[.<right>",
        Palette::Letters,
        (80, 24),
        &expect![[r#"
            …pt2.json.zst  on a100-40g: fits  peak 186.89 MiB allocated, 210.00 MiB reserved
            210.00 MiB ──────────────────────────────────────────────────────W──────────────
                                                                            WTWWWWWW
            140.00 MiB WWWW      WWWWWWWWWWWWWWW               WWWWWWWWWWWTTAATTTTTTWWWWWWWW
                       TTTTWWWWWWTTTTTTTTTTTTTTTWWWWWWWWWWWWWWWTTAAAAAAAAAAAAAAAAAAAAAAAAAAA
                       OOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOO
                   0 B PPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPP
                       |backward  |step         ▲zero |forward               |backward
                       |iteration 1             |iteration 2
                       P param  G grad  O optim  A activ  I input  T temp  W work
            90.21 MiB allocated, 210.00 MiB reserved  request 1528, zero of iteration 2
                  bytes      %  blocks  by role
              41.11 MiB   45.6     104    optimizer_state
              20.55 MiB   22.8      52    parameter
              17.25 MiB   19.1       3    workspace
              11.30 MiB   12.5      47    gradient
               4.00 KiB    0.0       1    input
                  512 B    0.0       1    activation




            activation
            q quit  ? help  arrows move  +/- zoom  p peak  1-5 by  tab list  / search
        "#]],
    );
}

#[test]
fn a_wide_screen_has_both_lists() {
    check(
        "4",
        Palette::Color,
        (140, 34),
        &expect![[r#"
            runs/gpt2.json.zst  on a100-40g: fits                                                         peak 186.89 MiB allocated, 210.00 MiB reserved
            210.00 MiB                                                             ─────────────────────────────────────────────────────────────────────
                                                                ───────────────────▁█                                       ▂█
                                                           ─────                   ██▂▂                                     ██▂▂
                                     ▅─────────────────────                      ▃▆████▆▆▅▆▆▁▁▁▁                          ▄▆████▅▆▅▆▆▁▁▁▁
            126.00 MiB             ─▇█▃▂                        ▃▄▆▆▄▃       ▁▃▆█████████████████▅▅▅▅▂  ▄▃▅▆▆▄▃       ▁▃▇████████████████▇▅▅▅▅▁  ▄▃▅▆▆▄▃
                                 ──▃████▆▆▅▆▆▁▂▁▂▁          ▂▃▅▆██████▆▂   ▄▅██████████████████████████████████▆▂   ▄▆██████████████████████████████████
                                ▃▅▇███████████████▅▅▅▅▂▁ ▅▆██████████████▇████████████████████████████████████████▇█████████████████████████████████████
                            ▁▃▆█████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████
                       ───▁▅████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████
                   0 B ▅▆███████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████
                       |  |forward   |backward            |step       || |forward   |backward            |step || |forward   ▲backward            |step
                       |  |iteration 0                                |iteration 1                             |iteration 2
                       █ param  █ grad  █ optim  █ activ  █ input  █ temp  █ work  ─ reserved
            186.89 MiB allocated, 210.00 MiB reserved  request 1767, backward of iteration 2
                  bytes      %  blocks  by op, at the peak                               bytes  role            block, 255 in all
              41.11 MiB   22.0     104    aten::zeros_like                           16.00 MiB  activation      aten::_log_softmax  GPT2LMHeadModel_0
              23.88 MiB   12.8      10    aten::addmm                                16.00 MiB  temporary       aten::nll_loss_backward  …2LMHeadModel_0
              20.52 MiB   11.0      36    aten::empty                                16.00 MiB  temporary       aten::_log_softmax_backward_data  …del_0
              17.00 MiB    9.1       9    aten::mul                                   8.12 MiB  workspace       aten::addmm  …GPT2Attention_0 > Conv1D_0
              16.00 MiB    8.6       1    aten::_log_softmax                          8.12 MiB  workspace       aten::mm  GPT2LMHeadModel_0 > Linear_0
              16.00 MiB    8.6       1    aten::_log_softmax_backward_data            8.00 MiB  parameter       aten::empty  …ing_gpt2.py(485): __init__
              16.00 MiB    8.6       1    aten::nll_loss_backward                     8.00 MiB  optimizer_state aten::zeros_like  train.py(86): job
              12.00 MiB    6.4      13    aten::add                                   8.00 MiB  optimizer_state aten::zeros_like  train.py(86): job
               8.50 MiB    4.5       4    aten::tanh                                  2.50 MiB  activation      aten::tanh  …MLP_2 > NewGELUActivation_2
               8.12 MiB    4.3       1    aten::mm                                    2.50 MiB  activation      aten::mul  …2MLP_3 > NewGELUActivation_3
               4.54 MiB    2.4      27    aten::native_layer_norm                     2.38 MiB  activation      aten::addmm  …k_0 > GPT2MLP_0 > Conv1D_2
               2.00 MiB    1.1       4    aten::bmm                                   2.38 MiB  activation      aten::addmm  …k_1 > GPT2MLP_1 > Conv1D_6
               1.12 MiB    0.6       9    aten::dropout                               2.00 MiB  activation      aten::mul  …2MLP_0 > NewGELUActivation_0
            activation (made in forward and freed in backward): 16.00 MiB for 16.00 MiB requested, at 0x3ffffa000000, in 20.00 MiB of device memory
            allocated by request 1757 (forward of iteration 2), freed by request 1769 (backward of iteration 2)
            at ## iter 2 ## > ## forward ## > aten::cross_entropy_loss > aten::log_softmax > aten::_log_softmax
            in GPT2LMHeadModel_0, transformers/loss/loss_utils.py(34): fixed_cross_entropy
            q quit  ? help  arrows move  +/- zoom  p peak  1-5 by  tab list  / search
        "#]],
    );
}

#[test]
fn a_small_screen() {
    check(
        "",
        Palette::Letters,
        (60, 16),
        &expect![[r#"
            …son.zst  on a100-40g: fits  peak 186.89 MiB allocated, 210.
            210.00 MiB       ────────────────WWW─────────────WW─────────
            140.00 MiB    WWTWWWWWW WWWWWWWWTAAATTTWWWWWWWWWAAAATTTWWWWW
                   0 B PWAAAAAAAAAATGGGGGOOOOOOOOOOOOOGGGOOOOOOOOOOOOGGG
                       ||   |       |step||   |       |  ||  ▲backward|
                       ||iteration 0     |iteration 1    |iteration 2
                       P param  G grad  O optim  A activ  I input  T tem
            186.89 MiB allocated, 210.00 MiB reserved  request 1767, bac
                  bytes      %  blocks  by role, at the peak
              69.98 MiB   37.4      88    activation
              41.11 MiB   22.0     104    optimizer_state
              38.00 MiB   20.3       7    temporary
              20.55 MiB   11.0      52    parameter
              17.25 MiB    9.2       3    workspace
            activation
            q quit  ? help  arrows move  +/- zoom  p peak  1-5 by  tab l
        "#]],
    );
    check(
        "",
        Palette::Letters,
        (40, 5),
        &expect![[r#"
            too small: 50x14 at least; q quits




        "#]],
    );
}

#[test]
fn lines_that_are_cut_off_keep_their_ends() {
    let mut browser = browser(&GPT2);
    press(&mut browser, "3");
    let shown = lines(&screen(&mut browser, Palette::Letters, (50, 24)));
    for end in [".py(645): forward", ".py(262): forward"] {
        assert!(shown.contains(end), "{end}:\n{shown}");
    }
}

#[test]
fn the_help() {
    check(
        "?",
        Palette::Letters,
        (80, 24),
        &expect![[r#"
            …pt2.json.zst  on a100-40g: fits  peak 186.89 MiB allocated, 210.00 MiB reserved

              left right, h l   move the cursor by a column; H L by ten
              , .               move the cursor by a request
              [ ]               to the iteration before, to the next one
              p r o             to the peak of allocated, of reserved, to out of memory
              + - 0             zoom in, zoom out, show all of the run

              1 2 3 4 5         list by role, module, line, op, stack
              tab               the tree of what is allocated, or the largest blocks
              up down, k j      select a row; page up, page down; g first, G last
              enter, space      open or close a part of the tree, or list its blocks
              b, escape         list the blocks of the selected part; back to the tree
              / n N             search in the list; the next one, the one before

              ?                 this page
              q, ctrl-c         quit

              The chart shows the moment of the highest allocated bytes in each column,
              by role. The line above is the memory that the allocator reserves.



            any key goes back, ctrl-c quits
        "#]],
    );
}

#[test]
fn a_search_opens_what_it_finds() {
    check(
        "2/gelu<enter>n",
        Palette::Letters,
        (80, 24),
        &expect![[r#"
            …pt2.json.zst  on a100-40g: fits  peak 186.89 MiB allocated, 210.00 MiB reserved
            210.00 MiB                        ─────────W─────────────────────W──────────────
                                ──────────────         TWW                   TWW
            140.00 MiB       ─TW            WWWWW   WWWATTWWWWWWW WWWWW   WWTATTWWWWWWW WWWW
                           ─WWATWWWWWWWW WWWTTTTTWWWAAAAAAAAAATTTWTTTTTWWWAAAAAAAAAATTTWTTTT
                         WWTAAAAAAAATTTTWOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOO
                   0 B PPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPP
                       ||     |backward  |step   ||    |backward   |   ||    ▲backward   |
                       ||iteration 0             |iteration 1          |iteration 2
                       P param  G grad  O optim  A activ  I input  T temp  W work
            186.89 MiB allocated, 210.00 MiB reserved  request 1767, backward of iteration 2
                  bytes      %  blocks  by module, at the peak
             128.00 KiB    0.1       1            Dropout_2
             516.00 KiB    0.3       3          LayerNorm_0
             516.00 KiB    0.3       3          LayerNorm_1
              14.77 MiB    7.9      21      - GPT2Block_2
              10.63 MiB    5.7       9        - GPT2MLP_2
               8.50 MiB    4.5       7            NewGELUActivation_2
               2.00 MiB    1.1       1            Conv1D_10
             128.00 KiB    0.1       1            Dropout_6
               2.14 MiB    1.1       4        + GPT2Attention_2
             516.00 KiB    0.3       3          LayerNorm_4
            GPT2LMHeadModel_0 > GPT2Model_0 > GPT2Block_2 > GPT2MLP_2 > NewGELUActivation_2
            q quit  ? help  arrows move  +/- zoom  p peak  1-5 by  tab list  / search
        "#]],
    );
    let mut browser = browser(&GPT2);
    press(&mut browser, "/no such thing<enter>");
    let shown = lines(&screen(&mut browser, Palette::Letters, (80, 24)));
    assert!(shown.ends_with("nothing here has `no such thing`\n"), "{shown}");
    press(&mut browser, "<tab>/softmax<enter>");
    let shown = lines(&screen(&mut browser, Palette::Letters, (80, 24)));
    assert!(shown.contains("LogSoftmaxBackward0 > aten::_log_softmax_backward_data\n"), "{shown}");
}

#[test]
fn letters_need_no_color() {
    let mut browser = browser(&GPT2);
    for keys in ["", "<tab>", "?"] {
        press(&mut browser, keys);
        let letters = screen(&mut browser, Palette::Letters, (80, 24));
        let is_plain =
            |cell: &ratatui_core::buffer::Cell| cell.fg == Color::Reset && cell.bg == Color::Reset;
        assert!(letters.content.iter().all(is_plain), "{keys}");
    }
    press(&mut browser, "<escape><escape>");
    let colored = screen(&mut browser, Palette::Color, (80, 24));
    assert!(colored.content.iter().any(|cell| cell.fg == Color::Green));
}

#[test]
fn the_figures_at_the_cursor_are_those_of_the_run() {
    let mut browser = browser(&GPT2);
    let peak = GPT2.moments[GPT2.peak as usize].allocated;
    for (keys, allocated) in [
        ("", peak),
        (",", GPT2.moments[GPT2.peak as usize - 1].allocated),
        ("p", peak),
        ("r", GPT2.moments[GPT2.reserved_peak as usize].allocated),
        ("++++LL-p", peak),
    ] {
        press(&mut browser, keys);
        let shown = lines(&screen(&mut browser, Palette::Letters, (80, 24)));
        assert!(shown.contains(&format!("\n{allocated} allocated, ")), "{keys}: {shown}");
    }
}

#[test]
fn the_cursor_is_where_memory_runs_out() {
    let timeline = timeline("gpt2_adamw", Device::custom(Bytes::mib(600)));
    let moment = timeline.out_of_memory.expect("too little memory");
    let mut browser = browser(&timeline);
    press(&mut browser, "o");
    let shown = lines(&screen(&mut browser, Palette::Letters, (80, 24)));
    assert!(shown.contains(&format!("request {}, ", moment + 1)), "{shown}");
    assert!(shown.contains("by role, where memory runs out"), "{shown}");
}

#[test]
fn names_do_not_control_the_terminal() {
    let subject = Subject {
        name: "\u{1b}[2Jevil\u{202e}".to_owned(),
        device: "a\nb".to_owned(),
        verdict: "fits".to_owned(),
        timeline: Timeline::default(),
    };
    let mut browser = Browser::new(subject);
    press(&mut browser, "<tab><right>+p/\u{9b}x<enter>");
    let screen = screen(&mut browser, Palette::Color, (100, 24));
    assert!(
        screen.content.iter().all(|cell| cell.symbol().chars().all(xmem::types::is_printable)),
        "{screen:?}"
    );
    let shown = lines(&screen);
    assert!(shown.contains("\\u001b[2Jevil\\u202e  on a\\nb: fits"), "{shown}");
    assert!(shown.contains("nothing is allocated in this run"), "{shown}");
}

#[test]
fn the_selected_row_is_the_only_one_that_is_marked() {
    let mut browser = browser(&GPT2);
    press(&mut browser, "2<enter>G");
    let screen = screen(&mut browser, Palette::Letters, (80, 24));
    let is_marked = |y: &u16| screen[(2, *y)].modifier.contains(Modifier::REVERSED);
    assert_eq!((0..24).filter(is_marked).count(), 1);
}

fn key() -> impl Strategy<Value = Key> {
    let letters: Vec<char> = "hlHL,.[]pro+-0b12345kjgG nN/x?".chars().collect();
    prop_oneof![
        5 => prop::sample::select(letters).prop_map(Key::Char),
        1 => prop::sample::select(vec![
            Key::Left, Key::Right, Key::Up, Key::Down, Key::PageUp, Key::PageDown, Key::Home,
            Key::End, Key::Enter, Key::Escape, Key::Tab, Key::Backspace,
        ]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_keys_and_no_size_are_too_much(
        keys in prop::collection::vec(key(), 0..40),
        size in (0..200_u16, 0..60_u16),
    ) {
        let mut browser = browser(&SMALL);
        browser.fit(size.0, size.1);
        for key in keys {
            prop_assert_eq!(browser.press(key), KeyOutcome::Continue);
            screen(&mut browser, Palette::Letters, size);
        }
        prop_assert_eq!(browser.press(Key::Interrupt), KeyOutcome::Quit);
    }
}
