//! The decision trees that stand for cuDNN's heuristics: reading them and walking down.

use super::recipe::{Recipe, Terms};
use crate::{ConvPass, ConvShape, Layout};
use std::str::SplitAsciiWhitespace;
use std::sync::{LazyLock, OnceLock};

static DATA: &str = include_str!("../../data/cudnn-9.19.tsv");

/// Element widths that have trees of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Precision {
    F32,
    F16,
}

/// The answer without a tree: from nothing to copies of all three tensors.
const UNKNOWN: Choice =
    Choice { recipe: Recipe::Zero, spread: Some(Spread { percent: 0, low: 0.0, high: 1.0 }) };

/// The convolutions and devices that a tree is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    /// Compute capability times ten.
    pub(super) arch: u8,
    pub(super) element: Precision,
    pub(super) layout: Layout,
    pub(super) pass: ConvPass,
}

/// The leaf of a tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Choice {
    pub(super) recipe: Recipe,
    /// `None` where every tabulated convolution at this leaf follows the recipe.
    pub(super) spread: Option<Spread>,
}

/// The scatter of the tabulated convolutions of one leaf.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    /// Per cent of them that follow the recipe.
    pub(super) percent: u8,
    /// 5 % quantile of workspace over input, weight and output together.
    pub(super) low: f64,
    /// 95 % quantile of the same.
    pub(super) high: f64,
}

/// A node, in depth-first order: the left child comes right after its parent. Its text is read where a walk passes.
#[derive(Debug)]
enum Node {
    Split { condition: &'static str, right: usize },
    Leaf(&'static str),
}

/// One line of the table, read on first use.
struct Tree {
    /// Its compute capability; `None` if that is one of the tree's features.
    arch: Option<u8>,
    element: Precision,
    layout: Layout,
    pass: ConvPass,
    text: &'static str,
    nodes: OnceLock<Vec<Node>>,
}

static TREES: LazyLock<Vec<Tree>> = LazyLock::new(|| DATA.lines().filter_map(header).collect());

/// The choice of cuDNN's heuristics for this convolution.
pub(super) fn choose(key: Key, shape: &ConvShape, terms: &Terms) -> Choice {
    let Some(tree) = find(key) else {
        return UNKNOWN;
    };
    let features = features(key.arch, shape, terms);
    let nodes = tree.nodes.get_or_init(|| read_tree(tree.text));
    let mut at = 0;
    loop {
        match nodes[at] {
            Node::Leaf(text) => return read_leaf(text).expect(READ_BY_A_TEST),
            Node::Split { condition, right } => {
                let (feature, limit) = read_condition(condition).expect(READ_BY_A_TEST);
                at = if features[feature] <= limit { at + 1 } else { right };
            }
        }
    }
}

fn find(key: Key) -> Option<&'static Tree> {
    let fits = |arch: Option<u8>| {
        TREES.iter().find(|tree| {
            (tree.arch, tree.element, tree.layout, tree.pass)
                == (arch, key.element, key.layout, key.pass)
        })
    };
    fits(Some(key.arch)).or_else(|| fits(None))
}

/// Reads the columns before the nodes; `None` for comments.
fn header(line: &'static str) -> Option<Tree> {
    let mut columns = line.split('\t');
    if columns.next()? != "tree" {
        return None;
    }
    let arch = match columns.next()? {
        "any" => None,
        arch => Some(arch.parse().ok()?),
    };
    let element = match columns.next()? {
        "f32" => Precision::F32,
        "f16" => Precision::F16,
        _ => return None,
    };
    let layout = match columns.next()? {
        "nchw" => Layout::Nchw,
        "nhwc" => Layout::Nhwc,
        _ => return None,
    };
    let pass = match columns.next()? {
        "forward" => ConvPass::Forward,
        "backward-data" => ConvPass::BackwardData,
        "backward-weight" => ConvPass::BackwardWeight,
        _ => return None,
    };
    Some(Tree { arch, element, layout, pass, text: columns.next()?, nodes: OnceLock::new() })
}

const READ_BY_A_TEST: &str = "every tree of the built-in table is read by a test";

/// Reads a tree from its depth-first list of nodes.
fn read_tree(text: &'static str) -> Vec<Node> {
    let mut nodes = Vec::new();
    read_node(&mut text.split_ascii_whitespace(), &mut nodes).expect(READ_BY_A_TEST);
    nodes
}

fn read_node(tokens: &mut SplitAsciiWhitespace<'static>, nodes: &mut Vec<Node>) -> Option<()> {
    let token = tokens.next()?;
    if !token.contains('<') {
        nodes.push(Node::Leaf(token));
        return Some(());
    }
    let at = nodes.len();
    nodes.push(Node::Split { condition: token, right: 0 });
    read_node(tokens, nodes)?;
    let right_child = nodes.len();
    if let Node::Split { right, .. } = &mut nodes[at] {
        *right = right_child;
    }
    read_node(tokens, nodes)
}

/// `feature<limit`.
fn read_condition(token: &str) -> Option<(usize, f64)> {
    let (feature, limit) = token.split_once('<')?;
    let feature = feature.parse().ok().filter(|&feature| feature < FEATURES)?;
    Some((feature, limit.parse().ok()?))
}

/// `recipe`, or `recipe~percent,low,high` with the quantiles in hundredths.
fn read_leaf(token: &str) -> Option<Choice> {
    let Some((name, spread)) = token.split_once('~') else {
        return Some(Choice { recipe: Recipe::parse(token)?, spread: None });
    };
    let mut numbers = spread.split(',');
    let percent = numbers.next()?.parse().ok()?;
    let mut quantile = || Some(numbers.next()?.parse::<f64>().ok()? / 100.0);
    let spread = Spread { percent, low: quantile()?, high: quantile()? };
    Some(Choice { recipe: Recipe::parse(name)?, spread: Some(spread) })
}

const FEATURES: usize = 36;

/// The features of the trees, in the order of the table's header.
fn features(arch: u8, shape: &ConvShape, t: &Terms) -> [f64; FEATURES] {
    let taps = t.kernel_height * t.kernel_width;
    let group_filters = t.filters / t.groups;
    let image = t.height * t.width;
    let out_image = t.out_height * t.out_width;
    let pixels = t.batch * image;
    let out_pixels = t.batch * out_image;
    let depth = t.group_channels * taps;
    let tiles = |n: f64| (n / 128.0).ceil();
    [
        t.batch,
        t.channels,
        t.filters,
        t.group_channels,
        group_filters,
        t.height,
        t.width,
        t.out_height,
        t.out_width,
        t.kernel_height,
        t.kernel_width,
        taps,
        shape.stride[0] as f64,
        shape.padding[0] as f64,
        shape.dilation[0] as f64,
        t.groups,
        twos(shape.weight[1]),
        twos(shape.weight[0] / shape.groups.max(1)),
        out_pixels,
        pixels,
        depth,
        out_pixels * t.filters,
        pixels * t.channels,
        t.filters * depth,
        out_pixels * t.filters * depth,
        tiles(out_pixels) * tiles(t.filters),
        tiles(pixels) * tiles(t.channels),
        tiles(t.filters) * tiles(depth),
        image,
        out_image,
        t.batch * t.filters,
        t.batch * t.channels,
        t.filters / t.channels,
        pixels * t.channels,
        out_pixels * t.filters,
        f64::from(arch),
    ]
    .map(|feature| f64::from(feature as f32))
}

/// The exponent of two in `n`, at most six.
fn twos(n: u64) -> f64 {
    f64::from(n.trailing_zeros().min(6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tree_of_the_table_reads_completely() {
        let lines = DATA.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(lines, TREES.len());
        for tree in TREES.iter() {
            let mut tokens = tree.text.split_ascii_whitespace();
            let mut nodes = Vec::new();
            assert!(read_node(&mut tokens, &mut nodes).is_some(), "{}", &tree.text[..20]);
            assert_eq!(tokens.next(), None, "{}", &tree.text[..20]);
            assert_eq!(nodes.len(), tree.text.split_ascii_whitespace().count());
            for node in nodes {
                match node {
                    Node::Split { condition, .. } => assert!(read_condition(condition).is_some()),
                    Node::Leaf(text) => assert!(read_leaf(text).is_some()),
                }
            }
        }
    }

    #[test]
    fn every_combination_has_a_tree() {
        for arch in [75, 80, 86, 89, 90, 100, 120] {
            for element in [Precision::F32, Precision::F16] {
                for layout in [Layout::Nchw, Layout::Nhwc] {
                    for pass in
                        [ConvPass::Forward, ConvPass::BackwardData, ConvPass::BackwardWeight]
                    {
                        let key = Key { arch, element, layout, pass };
                        assert!(find(key).is_some(), "{key:?}");
                    }
                }
            }
        }
    }
}
