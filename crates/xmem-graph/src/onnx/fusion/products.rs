//! Linear layers: a product with a weight that the exporter has transposed, and a sum with a bias.

use super::super::model::{Attribute, Name, Node};
use super::replaced;
use super::view::View;

/// `F.linear` of tensors that are no matrices; of matrices exporters write `Gemm`.
pub(super) fn linear(view: &View<'_>, node: &Node) -> Option<Node> {
    match node.operator.as_str() {
        "Add" => {
            let is_bias = |name| view.is_weight(name, 1);
            let (bias, product) = view.beside(node, is_bias)?;
            let product = view.only_for(product, "MatMul")?;
            of_product(view, node, product, bias)
        }
        "MatMul" => of_product(view, node, node, None),
        _ => None,
    }
}

fn of_product(view: &View<'_>, node: &Node, product: &Node, bias: Option<Name>) -> Option<Node> {
    let weight = product.input(1);
    let (weight, is_transposed) = if view.is_weight(weight, 2) {
        (weight, 0)
    } else {
        let turned = view.made_by(weight, "Transpose")?.input(0);
        (turned.filter(|turned| view.is_weight(Some(*turned), 2)), 1)
    };
    let mut linear = replaced(node, "xmem::Linear", vec![product.input(0), Some(weight?), bias]);
    linear.attributes.insert("transB".to_owned(), Attribute::Int(is_transposed));
    Some(linear)
}
