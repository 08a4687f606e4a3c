//! A convolution as one line of text: the request to the worker, and the key in the cache.

use xmem_convolutions::{ConvPass, ConvolutionQuestion, ElementType, Layout, PlanChoice};

/// One convolution call with the sizes that cuDNN reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Query {
    pub(crate) wanted: Wanted,
    pub(crate) pass: ConvPass,
    pub(crate) element: ElementType,
    pub(crate) layout: Layout,
    pub(crate) input: Vec<i64>,
    pub(crate) weight: Vec<i64>,
    pub(crate) output: Vec<i64>,
    pub(crate) stride: Vec<i64>,
    pub(crate) padding: Vec<i64>,
    pub(crate) dilation: Vec<i64>,
}

/// The plans that a query is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Those that PyTorch tries until one fits.
    Tried,
    /// All of them, in its order, as for `torch.backends.cudnn.benchmark`.
    All,
}

/// The first word of a query about all plans.
const ALL: &str = "all ";

const PASSES: [(&str, ConvPass); 3] = [
    ("forward", ConvPass::Forward),
    ("backward-data", ConvPass::BackwardData),
    ("backward-weight", ConvPass::BackwardWeight),
];
const ELEMENTS: [(&str, ElementType); 3] =
    [("f32", ElementType::F32), ("f16", ElementType::F16), ("bf16", ElementType::Bf16)];
const LAYOUTS: [(&str, Layout); 2] = [("nchw", Layout::Nchw), ("nhwc", Layout::Nhwc)];

impl Query {
    /// The query of a convolution; `None` if a size, or the number of elements of a tensor, does not
    /// fit into the 64-bit integers of cuDNN.
    pub(crate) fn new(question: &ConvolutionQuestion) -> Option<Self> {
        let ConvolutionQuestion { pass, shape, choice } = question;
        let [stride, padding, dilation, kernel, input, output] = match shape.volume {
            Some(v) => [v.stride, v.padding, v.dilation, v.kernel, v.input, v.output].map(Some),
            None => [None; 6],
        };
        let tensor = |[n, c, h, w]: [u64; 4], depth: Option<u64>| {
            integers([Some(n), Some(c), depth, Some(h), Some(w)])
        };
        let spatial = |[y, x]: [u64; 2], depth: Option<u64>| integers([depth, Some(y), Some(x)]);
        let query = Self {
            wanted: match choice {
                PlanChoice::Heuristics => Wanted::Tried,
                PlanChoice::Benchmark { .. } => Wanted::All,
            },
            pass: *pass,
            element: shape.element,
            layout: shape.layout,
            input: tensor(shape.input, input)?,
            weight: tensor(shape.weight, kernel)?,
            output: tensor(shape.output, output)?,
            stride: spatial(shape.stride, stride)?,
            padding: spatial(shape.padding, padding)?,
            dilation: spatial(shape.dilation, dilation)?,
        };
        query.has_countable_tensors().then_some(query)
    }

    /// True if no tensor has more elements than fit into the integers of cuDNN.
    fn has_countable_tensors(&self) -> bool {
        [&self.input, &self.weight, &self.output].into_iter().all(|dims| {
            dims.iter().try_fold(1i64, |product, &n| product.checked_mul(n.max(1))).is_some()
        })
    }

    /// The line, without its end.
    pub(crate) fn to_line(&self) -> String {
        let lists =
            [&self.input, &self.weight, &self.output, &self.stride, &self.padding, &self.dilation]
                .map(|list| list.iter().map(i64::to_string).collect::<Vec<_>>().join(","));
        let (pass, element, layout) =
            (word(&PASSES, self.pass), word(&ELEMENTS, self.element), word(&LAYOUTS, self.layout));
        let wanted = if self.wanted == Wanted::All { ALL } else { "" };
        format!("{wanted}{pass} {element} {layout} {}", lists.join(" "))
    }

    /// Reads a line; `None` if it is not a query, or a tensor has too many elements.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let (wanted, line) = match line.strip_prefix(ALL) {
            Some(rest) => (Wanted::All, rest),
            None => (Wanted::Tried, line),
        };
        let mut words = line.split(' ');
        let pass = meaning(&PASSES, words.next()?)?;
        let element = meaning(&ELEMENTS, words.next()?)?;
        let layout = meaning(&LAYOUTS, words.next()?)?;
        let mut list =
            || -> Option<Vec<i64>> { words.next()?.split(',').map(|n| n.parse().ok()).collect() };
        let query = Self {
            wanted,
            pass,
            element,
            layout,
            input: list()?,
            weight: list()?,
            output: list()?,
            stride: list()?,
            padding: list()?,
            dilation: list()?,
        };
        (words.next().is_none() && query.has_countable_tensors()).then_some(query)
    }
}

fn integers<const N: usize>(values: [Option<u64>; N]) -> Option<Vec<i64>> {
    values.into_iter().flatten().map(|value| i64::try_from(value).ok()).collect()
}

fn word<T: PartialEq>(table: &[(&'static str, T)], value: T) -> &'static str {
    table.iter().find(|(_, v)| *v == value).map(|(word, _)| *word).expect("tables are complete")
}

fn meaning<T: Copy>(table: &[(&str, T)], text: &str) -> Option<T> {
    table.iter().find(|(word, _)| *word == text).map(|&(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use xmem_convolutions::{ConvShape, Volume};

    fn shape() -> ConvShape {
        ConvShape {
            input: [8, 64, 32, 30],
            weight: [128, 64, 3, 5],
            output: [8, 128, 16, 15],
            stride: [2, 2],
            padding: [1, 2],
            dilation: [1, 1],
            volume: None,
            transposed: false,
            groups: 1,
            element: ElementType::Bf16,
            layout: Layout::Nhwc,
        }
    }

    #[test]
    fn a_query_round_trips_through_one_line() {
        let volume = Volume { input: 7, kernel: 3, output: 6, stride: 4, padding: 9, dilation: 2 };
        for (pass, shape, line) in [
            (
                ConvPass::BackwardWeight,
                shape(),
                "backward-weight bf16 nhwc 8,64,32,30 128,64,3,5 8,128,16,15 2,2 1,2 1,1",
            ),
            (
                ConvPass::Forward,
                ConvShape { volume: Some(volume), element: ElementType::F32, ..shape() },
                "forward f32 nhwc 8,64,7,32,30 128,64,3,3,5 8,128,6,16,15 4,2,2 9,1,2 2,1,1",
            ),
        ] {
            let query = Query::new(&ConvolutionQuestion::new(pass, shape)).expect("small numbers");
            assert_eq!(query.to_line(), line);
            assert_eq!(Query::parse(line), Some(query));
            let all = ConvolutionQuestion::new(pass, shape).chosen_by(PlanChoice::BENCHMARK);
            let query = Query::new(&all).expect("small numbers");
            assert_eq!(query.to_line(), format!("all {line}"));
            assert_eq!(Query::parse(&query.to_line()), Some(query));
        }
    }

    #[test]
    fn other_lines_are_refused() {
        for line in [
            "",
            "forward",
            "sideways f32 nchw 1 1 1 1 1 1",
            "forward f32 nchw 1 1 1 1 1",
            "forward f32 nchw 1 1 1 1 1 x",
            "forward f32 nchw 1 1 1 1 1 1 1",
            "forward f32 nchw 4294967296,4294967296,4294967296 1 1 1 1 1",
        ] {
            assert_eq!(Query::parse(line), None, "{line}");
        }
    }

    #[test]
    fn sizes_beyond_64_bit_integers_have_no_query() {
        for extent in [u64::MAX, 1 << 32] {
            let shape = ConvShape { input: [extent; 4], ..shape() };
            let question = ConvolutionQuestion::new(ConvPass::Forward, shape);
            assert_eq!(Query::new(&question), None, "{extent}");
        }
    }
}
