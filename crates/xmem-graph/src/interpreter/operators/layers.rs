//! Layers, pooling and losses.

use super::{Value, one};
use crate::aten::{Activation, Attention, BatchNorm, Binary, Geometry, Reduction, Window, spread};
use crate::eager::arguments::args;
use crate::interpreter::call::Call;

/// Runs a call of a layer or a loss.
pub(super) fn run(call: &Call<'_>, name: &str) -> Option<Vec<Value>> {
    let e = call.eager;
    match name {
        "linear" => {
            let x = call.maybe("input")?;
            one(e.linear(&x, &call.maybe("weight")?, call.maybe("bias").as_ref()))
        }
        "addmm" => one(e.addmm(&call.maybe("self")?, &call.maybe("mat1")?, &call.maybe("mat2")?)),
        "mm" => one(e.mm(&call.maybe("self")?, &call.maybe("mat2")?)),
        "bmm" => one(e.bmm(&call.maybe("self")?, &call.maybe("mat2")?)),
        "einsum" => {
            let operands: Vec<_> = call.tensors("tensors").into_iter().flatten().collect();
            e.einsum(call.text("equation")?, &operands).and_then(one)
        }
        "baddbmm" => {
            one(e.baddbmm(&call.maybe("self")?, &call.maybe("batch1")?, &call.maybe("batch2")?))
        }
        "matmul" => one(e.matmul(
            &call.maybe("self").or_else(|| call.maybe("input"))?,
            &call.maybe("other").or_else(|| call.maybe("tensor2"))?,
        )),
        "conv1d" | "conv2d" | "conv3d" | "conv_transpose1d" | "conv_transpose2d"
        | "conv_transpose3d" | "convolution" => convolution(call, name),
        "batch_norm" => {
            let (weight, bias) = (call.maybe("weight"), call.maybe("bias"));
            let (mean, variance) = (call.maybe("running_mean"), call.maybe("running_var"));
            let norm = BatchNorm {
                weight: weight.as_ref(),
                bias: bias.as_ref(),
                mean: mean.as_ref(),
                variance: variance.as_ref(),
                training: call.flag("training", true),
                momentum: call.float("momentum", 0.1),
                eps: call.float("eps", 1e-5),
            };
            one(e.batch_norm(&call.maybe("input")?, &norm))
        }
        "layer_norm" => {
            let (weight, bias) = (call.maybe("weight"), call.maybe("bias"));
            let x = call.maybe("input")?;
            one(e.layer_norm(
                &x,
                &call.ints("normalized_shape"),
                (weight.as_ref(), bias.as_ref()),
                call.float("eps", 1e-5),
            ))
        }
        "group_norm" => {
            let (weight, bias) = (call.maybe("weight"), call.maybe("bias"));
            let x = call.maybe("input")?;
            one(e.group_norm(
                &x,
                call.int("num_groups", 1),
                (weight.as_ref(), bias.as_ref()),
                call.float("eps", 1e-5),
            ))
        }
        "rms_norm" => {
            let x = call.maybe("input")?;
            one(e.rms_norm(
                &x,
                &call.ints("normalized_shape"),
                call.maybe("weight").as_ref(),
                call.maybe_float("eps"),
            ))
        }
        "_weight_norm" => {
            one(e.weight_norm(&call.maybe("v")?, &call.maybe("g")?, call.int("dim", 0)))
        }
        "dropout" => {
            one(e.dropout(&call.maybe("input")?, call.float("p", 0.5), call.flag("train", true)))
        }
        "dropout_" => one(e.dropout_in_place(
            &call.maybe("self")?,
            call.float("p", 0.5),
            call.flag("train", true),
        )),
        "feature_dropout" => one(e.feature_dropout(
            &call.maybe("input")?,
            call.float("p", 0.5),
            call.flag("train", true),
        )),
        "softmax" | "log_softmax" => one(e.softmax(
            name == "log_softmax",
            &call.maybe("self")?,
            call.int("dim", -1),
            call.dtype("dtype"),
        )),
        "glu" => one(e.glu(&call.maybe("self")?, call.int("dim", -1))),
        "embedding" => one(e.embedding(
            &call.maybe("weight")?,
            &call.maybe("indices")?,
            call.int("padding_idx", -1),
        )),
        "embedding_bag" => {
            let result = e.embedding_bag(
                &call.maybe("weight")?,
                &call.maybe("indices")?,
                &call.maybe("offsets")?,
                call.int("mode", 0),
            );
            Some(vec![Value::Tensor(result), Value::None, Value::None, Value::None])
        }
        "scaled_dot_product_attention" => {
            let (query, key, value) =
                (call.maybe("query")?, call.maybe("key")?, call.maybe("value")?);
            one(e.attention(&Attention {
                query: &query,
                key: &key,
                value: &value,
                mask: call.maybe("attn_mask").as_ref(),
                dropout: call.float("dropout_p", 0.0),
                causal: call.flag("is_causal", false),
                scale: call.maybe_float("scale"),
                gqa: call.flag("enable_gqa", false),
            }))
        }
        "gru_cell" => gru_cell(call),
        _ => pooling(call, name).or_else(|| losses(call, name)),
    }
}

fn convolution(call: &Call<'_>, name: &str) -> Option<Vec<Value>> {
    let (x, weight, bias) = (call.maybe("input")?, call.maybe("weight")?, call.maybe("bias"));
    let rank = weight.rank().checked_sub(2)?;
    let dilation = spread(&call.ints("dilation"), rank, 1);
    let padding = match call.text("padding") {
        Some("same") => (0..rank)
            .map(|at| dilation.get(at).unwrap_or(&1).saturating_mul(weight.dims()[at + 2] - 1) / 2)
            .collect(),
        Some(_) => vec![0; rank],
        None => spread(&call.ints("padding"), rank, 0),
    };
    let transposed = name.contains("transpose") || call.flag("transposed", false);
    let geometry = Geometry {
        stride: spread(&call.ints("stride"), rank, 1),
        padding,
        dilation,
        output_padding: spread(&call.ints("output_padding"), rank, 0),
        transposed,
        groups: call.int("groups", 1),
    };
    let name = match (transposed, rank) {
        (false, 1) => "aten::conv1d",
        (false, 2) => "aten::conv2d",
        (false, _) => "aten::conv3d",
        (true, 1) => "aten::conv_transpose1d",
        (true, 2) => "aten::conv_transpose2d",
        (true, _) => "aten::conv_transpose3d",
    };
    one(call.eager.convolution(name, (&x, &weight, bias.as_ref()), &geometry))
}

fn window(call: &Call<'_>, rank: usize) -> Window {
    let kernel = spread(&call.ints("kernel_size"), rank, 1);
    let stride = call.ints("stride");
    Window {
        stride: if stride.is_empty() { kernel.clone() } else { spread(&stride, rank, 1) },
        kernel,
        padding: spread(&call.ints("padding"), rank, 0),
        dilation: spread(&call.ints("dilation"), rank, 1),
        ceil: call.flag("ceil_mode", false),
    }
}

fn pooling(call: &Call<'_>, name: &str) -> Option<Vec<Value>> {
    let e = call.eager;
    let x = call.maybe("self").or_else(|| call.maybe("input"))?;
    match name {
        "max_pool1d" => one(e.max_pool1d(&x, &window(call, 1))),
        "max_pool2d" => one(e.max_pool(2, &x, &window(call, 2))),
        "max_pool3d" => one(e.max_pool(3, &x, &window(call, 3))),
        "avg_pool1d" => one(e.avg_pool(1, &x, &window(call, 1))),
        "avg_pool2d" => one(e.avg_pool(2, &x, &window(call, 2))),
        "avg_pool3d" => one(e.avg_pool(3, &x, &window(call, 3))),
        "adaptive_avg_pool1d" => {
            one(e.adaptive_avg_pool(1, &x, &spread(&call.ints("output_size"), 1, 1)))
        }
        "adaptive_avg_pool2d" => {
            one(e.adaptive_avg_pool(2, &x, &spread(&call.ints("output_size"), 2, 1)))
        }
        "adaptive_avg_pool3d" => {
            one(e.adaptive_avg_pool(3, &x, &spread(&call.ints("output_size"), 3, 1)))
        }
        "upsample_nearest2d"
        | "upsample_nearest1d"
        | "upsample_nearest3d"
        | "upsample_bilinear2d"
        | "upsample_bicubic2d"
        | "upsample_linear1d"
        | "upsample_trilinear3d" => {
            let names = match name {
                "upsample_nearest1d" => (
                    "aten::upsample_nearest1d",
                    "UpsampleNearest1DBackward0",
                    "aten::upsample_nearest1d_backward",
                ),
                "upsample_nearest2d" => (
                    "aten::upsample_nearest2d",
                    "UpsampleNearest2DBackward0",
                    "aten::upsample_nearest2d_backward",
                ),
                "upsample_nearest3d" => (
                    "aten::upsample_nearest3d",
                    "UpsampleNearest3DBackward0",
                    "aten::upsample_nearest3d_backward",
                ),
                "upsample_bilinear2d" => (
                    "aten::upsample_bilinear2d",
                    "UpsampleBilinear2DBackward0",
                    "aten::upsample_bilinear2d_backward",
                ),
                "upsample_bicubic2d" => (
                    "aten::upsample_bicubic2d",
                    "UpsampleBicubic2DBackward0",
                    "aten::upsample_bicubic2d_backward",
                ),
                "upsample_linear1d" => (
                    "aten::upsample_linear1d",
                    "UpsampleLinear1DBackward0",
                    "aten::upsample_linear1d_backward",
                ),
                _ => (
                    "aten::upsample_trilinear3d",
                    "UpsampleTrilinear3DBackward0",
                    "aten::upsample_trilinear3d_backward",
                ),
            };
            let dims = call.expected_dims()?;
            one(e.upsample(names, &x, dims.get(2..)?))
        }
        "pixel_shuffle" => one(e.pixel_shuffle(&x, call.int("upscale_factor", 1))),
        _ => None,
    }
}

fn losses(call: &Call<'_>, name: &str) -> Option<Vec<Value>> {
    let e = call.eager;
    let (x, target) =
        (&call.maybe("self").or_else(|| call.maybe("input"))?, &call.maybe("target")?);
    let reduction = Reduction::of(call.int("reduction", 1));
    match name {
        "cross_entropy_loss" => {
            let weight = call.maybe("weight");
            let last = (call.int("ignore_index", -100), call.float("label_smoothing", 0.0));
            one(e.cross_entropy((x, target), weight.as_ref(), reduction, last))
        }
        "nll_loss" | "nll_loss_nd" | "nll_loss2d" => one(e.nll_loss(
            x,
            target,
            call.maybe("weight").as_ref(),
            reduction,
            call.int("ignore_index", -100),
        )),
        "mse_loss" => one(e.pointwise_loss(
            ("aten::mse_loss", "MseLossBackward0", "aten::mse_loss_backward"),
            (x, target),
            reduction,
        )),
        "smooth_l1_loss" => one(e.pointwise_loss(
            ("aten::smooth_l1_loss", "SmoothL1LossBackward0", "aten::smooth_l1_loss_backward"),
            (x, target),
            reduction,
        )),
        "huber_loss" => one(e.pointwise_loss(
            ("aten::huber_loss", "HuberLossBackward0", "aten::huber_loss_backward"),
            (x, target),
            reduction,
        )),
        "l1_loss" => one(e.l1_loss(x, target, reduction)),
        "binary_cross_entropy_with_logits" => one(e.bce_with_logits(
            (x, target),
            (call.maybe("weight").as_ref(), call.maybe("pos_weight").as_ref()),
            reduction,
        )),
        "binary_cross_entropy" => one(e.bce((x, target), reduction)),
        "kl_div" => one(e.kl_div(x, target, reduction, call.flag("log_target", false))),
        _ => None,
    }
}

/// aten/src/ATen/native/RNN.cpp, `GRUCell`.
fn gru_cell(call: &Call<'_>) -> Option<Vec<Value>> {
    let e = call.eager;
    let (x, hidden) = (call.maybe("input")?, call.maybe("hx")?);
    let (w_ih, w_hh) = (call.maybe("w_ih")?, call.maybe("w_hh")?);
    let (b_ih, b_hh) = (call.maybe("b_ih"), call.maybe("b_hh"));
    let size = hidden.dim(-1);
    let sigmoid = Activation::of("sigmoid")?;
    let tanh = Activation::of("tanh")?;
    let result = e.call("aten::gru_cell", args![x, hidden, w_ih, w_hh, b_ih, b_hh], || {
        let names = ("aten::unsafe_split", "UnsafeSplitBackward0");
        let thirds = [size; 3];
        let gates = e.linear(&x, &w_ih, b_ih.as_ref());
        let input = e.split(names, &gates, &thirds, 1);
        drop(gates);
        let gates = e.linear(&hidden, &w_hh, b_hh.as_ref());
        let state = e.split(names, &gates, &thirds, 1);
        drop(gates);
        let gate = |at: usize| {
            let sum = e.binary_in_place(Binary::Add, &state[at], &(&input[at]).into());
            e.activation_in_place((sigmoid, "aten::sigmoid_"), &sum)
        };
        let (reset, update) = (gate(0), gate(1));
        let masked = e.binary_in_place(Binary::Mul, &state[2], &(&reset).into());
        let sum = e.binary(Binary::Add, &(&input[2]).into(), &(&masked).into());
        let new = e.activation_in_place((tanh, "aten::tanh_"), &sum);
        let difference = e.binary(Binary::Sub, &(&hidden).into(), &(&new).into());
        let product = e.binary_in_place(Binary::Mul, &difference, &(&update).into());
        e.binary_in_place(Binary::Add, &product, &(&new).into())
    });
    one(result)
}
