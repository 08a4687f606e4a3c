//! `aten::einsum`, by batched products (aten/src/ATen/native/Linear.cpp, `einsum` and `sumproduct_pair`).

use super::Axes;
use super::arithmetic::Binary;

use crate::eager::Eager;
use crate::eager::arguments::{Absent, args};
use crate::eager::tensor::{Tensor, count};

/// An equation: the labels of each operand, and all labels, those of the result first.
#[derive(Debug, PartialEq, Eq)]
struct Equation {
    operands: Vec<Vec<char>>,
    labels: Vec<char>,
    /// How many of the labels are those of the result.
    results: usize,
}

/// A label of a dimension that `...` stands for; letters come before.
const ELLIPSIS: u32 = 0x1000;

impl Equation {
    /// Reads an equation for operands of these ranks; none if it is not of the common kind, in which a label occurs once in an
    /// operand.
    fn read(text: &str, ranks: &[usize]) -> Option<Self> {
        let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        let (left, right) = match text.split_once("->") {
            Some((left, right)) => (left.to_owned(), Some(right.to_owned())),
            None => (text, None),
        };
        let terms: Vec<&str> = left.split(',').collect();
        if terms.len() != ranks.len() {
            return None;
        }
        let hidden = |term: &str, rank: usize| match term.contains("...") {
            true => rank.checked_sub(term.chars().filter(|c| c.is_alphabetic()).count()),
            false => Some(0),
        };
        let counts = terms.iter().zip(ranks).map(|(term, rank)| hidden(term, *rank));
        let dots = counts.collect::<Option<Vec<usize>>>()?;
        let most = dots.iter().copied().max().unwrap_or(0);
        let operands = terms
            .iter()
            .zip(&dots)
            .map(|(term, dots)| labels(term, most - dots..most))
            .collect::<Option<Vec<_>>>()?;
        let fits = operands.iter().zip(ranks).all(|(labels, rank)| labels.len() == *rank);
        let results = match right {
            Some(right) => labels(&right, 0..most)?,
            None => implied(&operands),
        };
        let mut all = results.clone();
        for label in operands.iter().flatten() {
            if !all.contains(label) {
                all.push(*label);
            }
        }
        let is_known = |label: &char| operands.iter().flatten().any(|known| known == label);
        (fits && results.iter().all(is_known)).then_some(Self {
            operands,
            labels: all,
            results: results.len(),
        })
    }
}

/// The labels of a term; `hidden` are those of the dimensions that `...` stands for.
fn labels(term: &str, hidden: std::ops::Range<usize>) -> Option<Vec<char>> {
    let (before, after) = term.split_once("...").unwrap_or((term, ""));
    let dots = if term.contains("...") { hidden } else { 0..0 };
    let dots = dots.map(|at| char::from_u32(ELLIPSIS + u32::try_from(at).ok()?));
    let letters =
        |part: &str| part.chars().map(|c| c.is_alphabetic().then_some(c)).collect::<Vec<_>>();
    let all = letters(before).into_iter().chain(dots).chain(letters(after));
    let labels = all.collect::<Option<Vec<char>>>()?;
    let is_once = (1..labels.len()).all(|at| !labels[..at].contains(&labels[at]));
    is_once.then_some(labels)
}

/// The labels of a result that is not written: those that occur once, sorted, behind the dimensions of `...`.
fn implied(operands: &[Vec<char>]) -> Vec<char> {
    let all: Vec<char> = operands.iter().flatten().copied().collect();
    let mut once: Vec<char> = all
        .iter()
        .copied()
        .filter(|label| {
            u32::from(*label) >= ELLIPSIS || all.iter().filter(|l| *l == label).count() == 1
        })
        .collect();
    once.sort_unstable_by_key(|label| (u32::from(*label) < ELLIPSIS, *label));
    once.dedup();
    once
}

impl Eager {
    /// The sum of products; none if the equation is not of the common kind.
    pub(crate) fn einsum(&self, text: &str, operands: &[Tensor]) -> Option<Tensor> {
        let ranks: Vec<usize> = operands.iter().map(Tensor::rank).collect();
        let equation = Equation::read(text, &ranks)?;
        Some(self.call("aten::einsum", args![Absent, operands, Absent], || {
            let mut aligned: Vec<Tensor> = operands
                .iter()
                .zip(&equation.operands)
                .map(|(operand, labels)| self.aligned(operand, labels, &equation.labels))
                .collect();
            let mut uses: Vec<usize> = (0..equation.labels.len())
                .map(|dim| aligned.iter().filter(|operand| operand.dims()[dim] != 1).count())
                .collect();
            let mut result = aligned.remove(0);
            let several = !aligned.is_empty();
            for operand in aligned {
                result = self.contracted(
                    (result, operand),
                    &mut uses[equation.results..],
                    equation.results,
                );
            }
            let kept = &result.dims()[..equation.results];
            match (several, equation.labels.len() > equation.results) {
                (_, false) => result,
                (true, true) => self.view(&result, kept),
                (false, true) => {
                    let summed = (equation.results..equation.labels.len()).map(|dim| dim as i64);
                    self.sum(&result, &Axes::Some(summed.collect()), false, None)
                }
            }
        }))
    }

    /// An operand with a dimension for each label, in their order.
    fn aligned(&self, operand: &Tensor, own: &[char], labels: &[char]) -> Tensor {
        let mut operand = operand.clone();
        let mut next = own.len();
        let order: Vec<i64> = labels
            .iter()
            .map(|label| {
                own.iter().position(|known| known == label).unwrap_or_else(|| {
                    operand = self.unsqueeze(&operand, -1);
                    next += 1;
                    next - 1
                }) as i64
            })
            .collect();
        self.permute(&operand, &order)
    }

    /// The product of two operands, with the dimensions summed that no other one has. `uses` are the operands that have each of
    /// the dimensions behind the first `results`.
    fn contracted(&self, (a, b): (Tensor, Tensor), uses: &mut [usize], results: usize) -> Tensor {
        let (mut of_a, mut of_b, mut of_both) = (Vec::new(), Vec::new(), Vec::new());
        for (at, uses) in uses.iter_mut().enumerate() {
            let dim = results + at;
            match (a.dims()[dim] != 1, b.dims()[dim] != 1) {
                (true, true) => {
                    *uses -= 1;
                    if *uses == 1 {
                        of_both.push(dim);
                        *uses = 0;
                    }
                }
                (has_a, has_b) if *uses == 1 => {
                    if has_a {
                        of_a.push(dim as i64);
                        *uses = 0;
                    } else if has_b {
                        of_b.push(dim as i64);
                        *uses = 0;
                    }
                }
                _ => {}
            }
        }
        let summed = |x: Tensor, dims: Vec<i64>| match dims.is_empty() {
            true => x,
            false => self.sum(&x, &Axes::Some(dims), true, None),
        };
        let (a, b) = (summed(a, of_a), summed(b, of_b));
        match of_both.is_empty() {
            true => self.binary(Binary::Mul, &(&a).into(), &(&b).into()),
            false => self.product_of_pair(&a, &b, &of_both),
        }
    }

    /// `sumproduct_pair` with `keepdim`.
    fn product_of_pair(&self, a: &Tensor, b: &Tensor, summed: &[usize]) -> Tensor {
        let (mut both, mut of_a, mut of_b) = (Vec::new(), Vec::new(), Vec::new());
        let (mut a, mut b) = (a.clone(), b.clone());
        for dim in 0..a.rank() {
            let (in_a, in_b) = (a.dims()[dim] != 1, b.dims()[dim] != 1);
            match (in_a, in_b) {
                _ if summed.contains(&dim) => {}
                (true, true) => both.push(dim),
                (true, false) => of_a.push(dim),
                _ => of_b.push(dim),
            }
        }
        let sizes = |of: &Tensor, dims: &[usize]| {
            dims.iter().map(|dim| of.dims()[*dim]).collect::<Vec<i64>>()
        };
        let (batch, rows) = (sizes(&a, &both), sizes(&a, &of_a));
        let (columns, inner) = (sizes(&b, &of_b), sizes(&a, summed));
        let order = |groups: [&[usize]; 4]| {
            groups.concat().iter().map(|dim| *dim as i64).collect::<Vec<i64>>()
        };
        a = self.permute(&a, &order([&both, &of_a, summed, &of_b]));
        a = self.reshape(&a, &[count(&batch), count(&rows), count(&inner)]);
        b = self.permute(&b, &order([&both, summed, &of_b, &of_a]));
        b = self.reshape(&b, &[count(&batch), count(&inner), count(&columns)]);
        let product = self.bmm(&a, &b);
        let ones = vec![1; summed.len()];
        let product = self.view(&product, &[batch, rows, ones, columns].concat());
        let made = order([&both, &of_a, summed, &of_b]);
        let back: Vec<i64> = (0..made.len() as i64)
            .map(|dim| made.iter().position(|made| *made == dim).unwrap_or_default() as i64)
            .collect();
        self.permute(&product, &back)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, ranks: &[usize]) -> Option<(String, usize)> {
        let equation = Equation::read(text, ranks)?;
        Some((equation.labels.into_iter().filter(char::is_ascii).collect(), equation.results))
    }

    #[test]
    fn equations_are_read() {
        assert_eq!(read("b h i d, b h j d -> b h i j", &[4, 4]), Some(("bhijd".to_owned(), 4)));
        assert_eq!(read("ij,jk", &[2, 2]), Some(("ikj".to_owned(), 2)));
        assert_eq!(read("...ij,...jk->...ik", &[4, 4]), Some(("ikj".to_owned(), 4)));
        for (wrong, ranks) in
            [("ii->i", &[2][..]), ("ij,jk->ik", &[2]), ("ij->ik", &[2]), ("ij->i", &[3])]
        {
            assert_eq!(read(wrong, ranks), None, "{wrong}");
        }
    }

    #[test]
    fn results_have_the_sizes_of_their_labels() {
        let eager = Eager::new();
        let make = |dims: &[i64]| eager.empty_called(dims, crate::DType::F32);
        let cases = [
            ("bhid,bhjd->bhij", vec![make(&[2, 3, 4, 5]), make(&[2, 3, 6, 5])], vec![2, 3, 4, 6]),
            ("ij,jk", vec![make(&[2, 3]), make(&[3, 4])], vec![2, 4]),
            ("...ij,...jk->...ik", vec![make(&[7, 2, 3]), make(&[7, 3, 4])], vec![7, 2, 4]),
            ("i,j->ji", vec![make(&[2]), make(&[3])], vec![3, 2]),
            ("ijk->ki", vec![make(&[2, 3, 4])], vec![4, 2]),
            ("ab,bc,cd->da", vec![make(&[2, 3]), make(&[3, 4]), make(&[4, 5])], vec![5, 2]),
        ];
        for (equation, operands, result) in cases {
            let made = eager.einsum(equation, &operands).expect(equation);
            assert_eq!(made.dims(), result, "{equation}");
        }
    }
}
