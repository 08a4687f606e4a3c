//! Modules of both runs, matched along their trees.
//!
//! Kineto numbers modules by class, in the order in which they are first called (`Block_3`), so that one more module
//! of a class shifts the numbers of those after it. Below a pair of modules, those of one class are paired one by one
//! if they are as many, with equal structure; else in order, first with equal structure and equal bytes, then, between
//! these pairs, with equal structure and bytes that differ least. Bytes are those that a module requests in the run:
//! what it holds at the peak depends on where the peak is. What is left is a class with another name if it has equal
//! structure, or equal bytes, and no other class has.

mod tree;

use super::align::pairs;
use super::group_row::{DifferenceRow, GroupFigures, NameMatch, row};
use super::groups::{self, DifferenceKey};
use std::collections::{BTreeMap, BTreeSet};
use tree::{Node, Tree};
use xmem_predict::Timeline;

/// The rows by module path.
pub(super) fn rows(a: &Timeline, b: &Timeline) -> Vec<DifferenceRow> {
    let in_a = groups::at_peak(a, DifferenceKey::Module);
    let in_b = groups::at_peak(b, DifferenceKey::Module);
    matched((&groups::modules(a), &in_a), (&groups::modules(b), &in_b))
}

/// The modules of a run in order, with all that they allocate, and what those hold that have blocks at the peak.
type Modules<'t, 'r> = (&'r [(&'t str, GroupFigures)], &'r BTreeMap<&'t str, GroupFigures>);

fn matched(a: Modules<'_, '_>, b: Modules<'_, '_>) -> Vec<DifferenceRow> {
    let (tree_a, tree_b) = (Tree::new(a.0), Tree::new(b.0));
    let mut pairing = Pairing::default();
    pairing.descend((&tree_a, 0), (&tree_b, 0), NameMatch::Same);
    let mut rows = Vec::new();
    let mut left: BTreeMap<&str, GroupFigures> = b.1.clone();
    for (&name, &figures) in a.1 {
        let partner = tree_a.find(name).and_then(|node| pairing.partner.get(&node));
        match partner.map(|&(node, how)| (tree_b.path(node), how)) {
            Some((other, how)) => {
                let in_b = left.remove(other);
                let how =
                    if how == NameMatch::Shifted && name == other { NameMatch::Same } else { how };
                rows.push(row((name, Some(figures)), (other, in_b), how));
            }
            None => rows.push(row((name, Some(figures)), ("", None), NameMatch::Single)),
        }
    }
    rows.extend(
        left.into_iter()
            .map(|(name, figures)| row(("", None), (name, Some(figures)), NameMatch::Single)),
    );
    rows
}

/// The module of the second run for each of the first that has one.
#[derive(Default)]
struct Pairing {
    partner: BTreeMap<usize, (usize, NameMatch)>,
}

impl Pairing {
    /// Pairs two modules, and what is in them.
    fn descend(&mut self, (a, at_a): (&Tree, usize), (b, at_b): (&Tree, usize), how: NameMatch) {
        self.partner.insert(at_a, (at_b, how));
        let (mut left_a, mut left_b) = (a.classes(at_a), b.classes(at_b));
        let classes: Vec<&str> =
            left_a.keys().filter(|class| left_b.contains_key(*class)).copied().collect();
        for class in classes {
            let (of_a, of_b) = (left_a.remove(class), left_b.remove(class));
            let (of_a, of_b) = (of_a.unwrap_or_default(), of_b.unwrap_or_default());
            let found = pairs(&a.nodes_of(&of_a), &b.nodes_of(&of_b));
            for &(row_a, row_b) in &found {
                let (node_a, node_b) = (of_a[row_a], of_b[row_b]);
                let is_same = a.nodes[node_a].name == b.nodes[node_b].name;
                let below = match how {
                    NameMatch::Same if !is_same => NameMatch::Shifted,
                    how => how,
                };
                self.descend((a, node_a), (b, node_b), below);
            }
            let (paired_a, paired_b): (BTreeSet<usize>, BTreeSet<usize>) =
                found.into_iter().unzip();
            let rest = |all: &[usize], paired: &BTreeSet<usize>| -> Vec<usize> {
                let rows = (0..all.len()).filter(|row| !paired.contains(row));
                rows.map(|row| all[row]).collect()
            };
            let (rest_a, rest_b) = (rest(&of_a, &paired_a), rest(&of_b, &paired_b));
            if !rest_a.is_empty() {
                left_a.insert(class, rest_a);
            }
            if !rest_b.is_empty() {
                left_b.insert(class, rest_b);
            }
        }
        for (of_a, of_b) in renamed(a, &left_a, b, &left_b) {
            for (node_a, node_b) in of_a.into_iter().zip(of_b) {
                self.descend((a, node_a), (b, node_b), NameMatch::Renamed);
            }
        }
    }
}

/// The modules of each class that stand for those of another class: equal in number and, each with its counterpart, in
/// what is in them and in bytes, else in what is in them alone, else in the shape of the tree below them; if no other
/// class is like that.
fn renamed(
    a: &Tree,
    left_a: &BTreeMap<&str, Vec<usize>>,
    b: &Tree,
    left_b: &BTreeMap<&str, Vec<usize>>,
) -> Vec<(Vec<usize>, Vec<usize>)> {
    let mut found = Vec::new();
    let (mut left_a, mut left_b) = (left_a.clone(), left_b.clone());
    let keys: [fn(&Node) -> Option<u64>; 3] = [Node::content, Node::structure, Node::shape];
    for key in keys {
        let of = |tree: &Tree, nodes: &[usize]| -> Option<Vec<u64>> {
            nodes.iter().map(|&node| key(&tree.nodes[node])).collect()
        };
        let grouped = |tree: &Tree, left: &BTreeMap<&str, Vec<usize>>| {
            let mut by_key: BTreeMap<Vec<u64>, Vec<String>> = BTreeMap::new();
            for (class, nodes) in left {
                if let Some(keys) = of(tree, nodes) {
                    by_key.entry(keys).or_default().push((*class).to_owned());
                }
            }
            by_key
        };
        let (by_a, by_b) = (grouped(a, &left_a), grouped(b, &left_b));
        for (key, classes) in by_a {
            let ([class_a], Some([class_b])) = (&classes[..], by_b.get(&key).map(|all| &all[..]))
            else {
                continue;
            };
            if let Some(pair) = left_a.remove(&class_a[..]).zip(left_b.remove(&class_b[..])) {
                found.push(pair);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use xmem_types::Bytes;

    /// The modules and what they hold at the peak: all that they allocate.
    type Run = (Vec<(&'static str, GroupFigures)>, BTreeMap<&'static str, GroupFigures>);

    /// Modules with their bytes, `0` for those that have none at the peak.
    fn run(lines: Lines) -> Run {
        let figures = |bytes| GroupFigures { bytes: Bytes(bytes), blocks: Some(1) };
        let all: Vec<_> = lines.iter().map(|&(name, bytes)| (name, figures(bytes))).collect();
        let at_peak = all.iter().filter(|line| line.1.bytes > Bytes::ZERO).copied().collect();
        (all, at_peak)
    }

    type Lines = &'static [(&'static str, u64)];

    fn check(a: Lines, b: Lines, expected: &Expect) {
        let ((names_a, a), (names_b, b)) = (run(a), run(b));
        let rows = matched((&names_a, &a), (&names_b, &b));
        let shown = rows.iter().map(|row| {
            format!(
                "{} | {} | {} | {} {}\n",
                row.name_a.as_deref().unwrap_or("-"),
                row.name_b.as_deref().unwrap_or("-"),
                row.matched.name(),
                row.a.bytes.get(),
                row.b.bytes.get()
            )
        });
        expected.assert_eq(&shown.collect::<String>());
        let back = matched((&names_b, &b), (&names_a, &a));
        let key = |row: &DifferenceRow| (row.name_a.clone(), row.name_b.clone());
        let mut swapped: Vec<_> =
            back.iter().map(|row| (row.name_b.clone(), row.name_a.clone())).collect();
        let mut rows: Vec<_> = rows.iter().map(key).collect();
        swapped.sort();
        rows.sort();
        assert_eq!(rows, swapped, "matched the other way round");
    }

    #[test]
    fn a_layer_in_front_shifts_the_counters_of_the_others() {
        check(
            &[("Net_0 > Linear_0", 10), ("Net_0 > Linear_1", 20), ("Net_0 > Linear_2", 30)],
            &[
                ("Net_0 > Linear_0", 99),
                ("Net_0 > Linear_1", 10),
                ("Net_0 > Linear_2", 20),
                ("Net_0 > Linear_3", 30),
            ],
            &expect![[r#"
                Net_0 > Linear_0 | Net_0 > Linear_1 | shifted | 10 10
                Net_0 > Linear_1 | Net_0 > Linear_2 | shifted | 20 20
                Net_0 > Linear_2 | Net_0 > Linear_3 | shifted | 30 30
                - | Net_0 > Linear_0 | single | 0 99
            "#]],
        );
    }

    #[test]
    fn with_other_sizes_everywhere_the_structure_decides() {
        check(
            &[
                ("Net_0 > Block_0 > Linear_0", 10),
                ("Net_0 > Block_1 > Linear_1", 10),
                ("Net_0 > Block_1 > GELU_0", 5),
            ],
            &[
                ("Net_0 > Block_0 > Conv2d_0", 7),
                ("Net_0 > Block_1 > Linear_0", 20),
                ("Net_0 > Block_2 > Linear_1", 20),
                ("Net_0 > Block_2 > GELU_0", 10),
            ],
            &expect![[r#"
                Net_0 > Block_0 > Linear_0 | Net_0 > Block_1 > Linear_0 | shifted | 10 20
                Net_0 > Block_1 > GELU_0 | Net_0 > Block_2 > GELU_0 | shifted | 5 10
                Net_0 > Block_1 > Linear_1 | Net_0 > Block_2 > Linear_1 | shifted | 10 20
                - | Net_0 > Block_0 > Conv2d_0 | single | 0 7
            "#]],
        );
    }

    #[test]
    fn one_more_layer_in_front_is_not_taken_for_the_last_one() {
        check(
            &[("Net_0 > Linear_0", 100)],
            &[("Net_0 > Linear_0", 10), ("Net_0 > Linear_1", 110)],
            &expect![[r#"
                Net_0 > Linear_0 | Net_0 > Linear_1 | shifted | 100 110
                - | Net_0 > Linear_0 | single | 0 10
            "#]],
        );
    }

    #[test]
    fn layers_that_all_doubled_are_not_taken_for_their_neighbors() {
        check(
            &[("Net_0 > ReLU_0", 10), ("Net_0 > ReLU_1", 20), ("Net_0 > ReLU_2", 40)],
            &[("Net_0 > ReLU_0", 20), ("Net_0 > ReLU_1", 40), ("Net_0 > ReLU_2", 80)],
            &expect![[r#"
                Net_0 > ReLU_0 | Net_0 > ReLU_0 | same | 10 20
                Net_0 > ReLU_1 | Net_0 > ReLU_1 | same | 20 40
                Net_0 > ReLU_2 | Net_0 > ReLU_2 | same | 40 80
            "#]],
        );
    }

    #[test]
    fn another_class_of_equal_structure_is_a_renamed_one() {
        check(
            &[
                ("GPT_0 > Block_0 > Linear_0", 10),
                ("GPT_0 > Block_1 > Linear_1", 10),
                ("GPT_0 > ReLU_0", 3),
            ],
            &[
                ("Model_0 > Layer_0 > Linear_0", 10),
                ("Model_0 > Layer_1 > Linear_1", 12),
                ("Model_0 > GELU_0", 3),
            ],
            &expect![[r#"
                GPT_0 > Block_0 > Linear_0 | Model_0 > Layer_0 > Linear_0 | renamed | 10 10
                GPT_0 > Block_1 > Linear_1 | Model_0 > Layer_1 > Linear_1 | renamed | 10 12
                GPT_0 > ReLU_0 | Model_0 > GELU_0 | renamed | 3 3
            "#]],
        );
    }

    #[test]
    fn equal_bytes_of_several_classes_are_not_matched() {
        check(
            &[("Net_0 > ReLU_0", 3), ("Net_0 > Tanh_0", 3)],
            &[("Net_0 > GELU_0", 3), ("Net_0 > SiLU_0", 4)],
            &expect![[r#"
                Net_0 > ReLU_0 | - | single | 3 0
                Net_0 > Tanh_0 | - | single | 3 0
                - | Net_0 > GELU_0 | single | 0 3
                - | Net_0 > SiLU_0 | single | 0 4
            "#]],
        );
    }

    #[test]
    fn one_activation_of_another_class_has_the_bytes_of_the_one_before() {
        check(
            &[("Net_0 > ReLU_0", 3), ("Net_0 > ReLU_1", 5), ("Net_0 > ReLU_2", 7)],
            &[("Net_0 > ReLU_0", 3), ("Net_0 > GELU_0", 5), ("Net_0 > ReLU_1", 7)],
            &expect![[r#"
                Net_0 > ReLU_0 | Net_0 > ReLU_0 | same | 3 3
                Net_0 > ReLU_1 | Net_0 > GELU_0 | renamed | 5 5
                Net_0 > ReLU_2 | Net_0 > ReLU_1 | shifted | 7 7
            "#]],
        );
    }
}
