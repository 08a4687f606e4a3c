//! The kinds of a Transformer's layers in a recording without modules, by how the layers follow each other.
//!
//! Attention is a fused operator, or a softmax between two matrix products. The matrix products that feed it, and the one that
//! reads it, are its projections. An activation function between two other matrix products makes an MLP.

use std::collections::BTreeSet;
use xmem_offload::{Layer, LayerKind};

/// The layers between a matrix product and the next, at most: scaling, masks, rotations, dropout.
const BETWEEN: usize = 12;

/// Names the layers of attention and MLP. A step without attention is left as it is.
pub(super) fn name_kinds(layers: &mut [Layer]) {
    let links = Links::of(layers);
    let mut attention = links.attention(layers);
    if attention.is_empty() {
        return;
    }
    let cores: Vec<usize> = attention.iter().copied().collect();
    for core in cores {
        let around = links.products_before(layers, core);
        attention.extend(around.into_iter().chain(links.products_after(layers, core)));
    }
    let mut mlp = BTreeSet::new();
    for act in (0..layers.len()).filter(|&row| layers[row].kind == LayerKind::Act) {
        let before = links.products_before(layers, act);
        let after = links.products_after(layers, act);
        let is_other = |row: &usize| !attention.contains(row);
        if before.iter().any(is_other) && after.iter().any(is_other) {
            mlp.insert(act);
            mlp.extend(before.into_iter().chain(after).filter(is_other));
            // A gate: what is multiplied with the activation.
            let gates = links.readers[act].iter().filter(|&&row| layers[row].name.ends_with("mul"));
            for &gate in gates {
                mlp.insert(gate);
                mlp.extend(links.products_before(layers, gate).into_iter().filter(is_other));
            }
        }
    }
    mlp.into_iter().for_each(|row| layers[row].kind = LayerKind::Mlp);
    attention.into_iter().for_each(|row| layers[row].kind = LayerKind::Attention);
}

/// The layers that read and feed each layer.
struct Links {
    inputs: Vec<Vec<usize>>,
    readers: Vec<Vec<usize>>,
}

impl Links {
    fn of(layers: &[Layer]) -> Self {
        let inputs: Vec<Vec<usize>> = layers
            .iter()
            .map(|layer| layer.inputs.iter().map(|input| input.index()).collect())
            .collect();
        let mut readers = vec![Vec::new(); layers.len()];
        for (row, inputs) in inputs.iter().enumerate() {
            inputs.iter().for_each(|&input: &usize| readers[input].push(row));
        }
        Self { inputs, readers }
    }

    /// Fused attention, and a softmax between two matrix products with them.
    fn attention(&self, layers: &[Layer]) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        for (row, layer) in layers.iter().enumerate() {
            if layer.kind == LayerKind::Attention {
                found.insert(row);
            }
            if layer.kind == LayerKind::Softmax {
                let (before, after) =
                    (self.products_before(layers, row), self.products_after(layers, row));
                if !before.is_empty() && !after.is_empty() {
                    found.insert(row);
                    found.extend(before.into_iter().chain(after));
                }
            }
        }
        found
    }

    /// The matrix products that a layer reads from, through layers that compute little.
    fn products_before(&self, layers: &[Layer], row: usize) -> Vec<usize> {
        products(layers, &self.inputs, row, |_| true)
    }

    /// Those that read from it, no farther than the addition of a residual.
    fn products_after(&self, layers: &[Layer], row: usize) -> Vec<usize> {
        products(layers, &self.readers, row, |layer| !layer.name.ends_with("add"))
    }
}

/// The matrix products that are reached over `next`, through layers that are neither normalization nor attention and that
/// `passes` allows.
fn products(
    layers: &[Layer],
    next: &[Vec<usize>],
    row: usize,
    passes: impl Fn(&Layer) -> bool,
) -> Vec<usize> {
    let (mut found, mut seen) = (Vec::new(), BTreeSet::from([row]));
    let mut reached = vec![row];
    for _ in 0..BETWEEN {
        let mut farther = Vec::new();
        for other in reached.iter().flat_map(|&row| &next[row]).copied() {
            if !seen.insert(other) {
                continue;
            }
            match layers[other].kind {
                LayerKind::Fc => found.push(other),
                LayerKind::Norm | LayerKind::Attention | LayerKind::Conv => {}
                _ if passes(&layers[other]) => farther.push(other),
                _ => {}
            }
        }
        reached = farther;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use xmem_offload::LayerId;

    fn layers(of: &[(LayerKind, &str, &[u32])]) -> Vec<Layer> {
        of.iter()
            .map(|&(kind, name, inputs)| Layer {
                name: name.to_owned(),
                kind,
                inputs: inputs.iter().copied().map(LayerId).collect(),
            })
            .collect()
    }

    fn kinds(mut layers: Vec<Layer>) -> Vec<LayerKind> {
        name_kinds(&mut layers);
        layers.into_iter().map(|layer| layer.kind).collect()
    }

    #[test]
    fn a_block_of_a_transformer_without_modules() {
        use LayerKind::{Act, Attention, Dropout, Fc, Join, Mlp, Norm, Other, Softmax};
        let block = |scores: &[(LayerKind, &'static str, &'static [u32])]| {
            let mut all: Vec<(LayerKind, &str, &[u32])> =
                vec![(Norm, "layer_norm", &[]), (Fc, "linear", &[0])];
            all.extend(scores);
            layers(&all)
        };
        // Scores, scaled, softmax, dropout, values, projection, residual, norm, gated MLP.
        let found = kinds(block(&[
            (Fc, "matmul", &[1]),
            (Other, "div", &[2]),
            (Softmax, "softmax", &[3]),
            (Dropout, "dropout", &[4]),
            (Fc, "matmul", &[5, 1]),
            (Fc, "linear", &[6]),
            (Join, "add", &[7, 0]),
            (Norm, "layer_norm", &[8]),
            (Fc, "linear", &[9]),
            (Act, "silu", &[10]),
            (Fc, "linear", &[9]),
            (Join, "mul", &[11, 12]),
            (Fc, "linear", &[13]),
            (Join, "add", &[14, 8]),
        ]));
        let expected = [
            Norm, Attention, Attention, Other, Attention, Dropout, Attention, Attention, Join,
            Norm, Mlp, Mlp, Mlp, Mlp, Mlp, Join,
        ];
        assert_eq!(found, expected);
        // A fused operator instead.
        let found = kinds(block(&[
            (Attention, "scaled_dot_product_attention", &[1]),
            (Fc, "linear", &[2]),
            (Join, "add", &[3, 0]),
        ]));
        assert_eq!(found, [Norm, Attention, Attention, Attention, Join]);
    }

    #[test]
    fn a_network_without_attention_keeps_its_kinds() {
        use LayerKind::{Act, Fc, Softmax};
        let chain = [
            (Fc, "linear", &[][..]),
            (Act, "relu", &[0]),
            (Fc, "linear", &[1]),
            (Softmax, "cross_entropy_loss", &[2]),
        ];
        assert_eq!(kinds(layers(&chain)), [Fc, Act, Fc, Softmax]);
    }
}
