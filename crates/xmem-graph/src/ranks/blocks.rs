//! The blocks of a model: the modules of the classes that repeat, which `fully_shard` divides one by one.

use super::is_below;
use crate::graph::{Graph, InputRole};
use std::collections::{BTreeMap, BTreeSet};

/// A class is of blocks if it has this share of the parameters of the largest one.
const LARGE: f64 = 0.25;
/// Stages are at most so many, and blocks inside them have this share of their parameters.
const MAX_STAGES: usize = 5;
const MAX_OF_STAGES: f64 = 0.8;

/// The paths of the blocks of a graph's models. They are of the class that repeats and has the most parameters, and of
/// classes with at least a quarter as many; of blocks inside blocks these are the outer ones, unless those are a few
/// stages that consist of many smaller blocks. None if the graph does not name modules.
#[must_use]
pub fn blocks(graph: &Graph) -> Vec<String> {
    Modules::of(graph).blocks("").unwrap_or_default()
}

/// The modules that a graph calls.
struct Modules {
    /// Classes by path.
    classes: BTreeMap<String, String>,
    /// Elements of the parameters by path.
    parameters: Vec<(String, f64)>,
}

impl Modules {
    fn of(graph: &Graph) -> Self {
        let mut classes = BTreeMap::new();
        for frame in graph.body.nodes.iter().flat_map(|node| &node.modules) {
            classes.entry(frame.path.clone()).or_insert_with(|| frame.class.clone());
        }
        let parameters = graph.inputs.iter().filter_map(|input| {
            let InputRole::Parameter(path) = &input.role else { return None };
            let info = graph.body.values.get(input.value.0 as usize)?.tensor.as_ref()?;
            let elements = info.dims.iter().filter_map(|dim| dim.value(&graph.symbols));
            Some((path.clone(), elements.map(|n| n as f64).product()))
        });
        Self { classes, parameters: parameters.collect() }
    }

    /// The blocks below a module, in the order of their paths.
    fn blocks(&self, root: &str) -> Option<Vec<String>> {
        let mut found: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (path, class) in &self.classes {
            if is_below(path, root) && self.is_block(path, class) {
                found.entry(class).or_default().push(path);
            }
        }
        let mut repeated: Vec<(&str, Vec<&str>)> = found
            .into_iter()
            .map(|(class, paths)| (class, outermost(&paths)))
            .filter(|(_, paths)| paths.len() > 1)
            .collect();
        // Plain Sequential modules only where nothing else repeats.
        if repeated.iter().any(|(class, _)| *class != "Sequential") {
            repeated.retain(|(class, _)| *class != "Sequential");
        }
        let size = |paths: &[&str]| -> f64 { paths.iter().map(|path| self.size(path)).sum() };
        repeated.sort_by(|(_, a), (_, b)| {
            size(b).total_cmp(&size(a)).then_with(|| depth(a[0]).cmp(&depth(b[0])))
        });
        let largest = size(&repeated.first()?.1);
        let mut chosen: Vec<&str> = Vec::new();
        let mut result = Vec::new();
        for (_, paths) in &repeated {
            let is_apart = paths.iter().all(|path| {
                chosen.iter().all(|other| !is_below(path, other) && !is_below(other, path))
            });
            if size(paths) < LARGE * largest || !is_apart {
                continue;
            }
            chosen.extend(paths);
            match self.inside(paths) {
                Some(smaller) => result.extend(smaller),
                None => result.extend(paths.iter().map(|&path| path.to_owned())),
            }
        }
        Some(result)
    }

    /// The smaller blocks, if blocks are stages: few, and made of many others almost entirely.
    fn inside(&self, stages: &[&str]) -> Option<Vec<String>> {
        if stages.len() > MAX_STAGES {
            return None;
        }
        let inner: Vec<String> =
            stages.iter().filter_map(|stage| self.blocks(stage)).flatten().collect();
        let size: f64 = inner.iter().map(|path| self.size(path)).sum();
        let all: f64 = stages.iter().map(|path| self.size(path)).sum();
        (size >= MAX_OF_STAGES * all && inner.len() >= 2 * stages.len()).then_some(inner)
    }

    fn size(&self, module: &str) -> f64 {
        let own = self.parameters.iter().filter(|(path, _)| is_below(path, module));
        own.map(|(_, elements)| elements).sum()
    }

    /// Returns whether a module is one of a list, or of numbered attributes, and has modules and parameters.
    fn is_block(&self, path: &str, class: &str) -> bool {
        let (parent, name) = path.rsplit_once('.').unwrap_or(("", path));
        if name.contains("expert")
            || parent.rsplit('.').next().is_some_and(|n| n.contains("expert"))
        {
            return false;
        }
        // Lists are never called, so that a graph does not have them; a Sequential it has.
        let parent_class = self.classes.get(parent).map(String::as_str);
        let is_in_list = matches!(parent_class, None | Some("Sequential"));
        let is_numbered = name.ends_with(|c: char| c.is_ascii_digit());
        if !is_in_list && (class == "Sequential" || !is_numbered) {
            return false;
        }
        let has_modules = self.classes.keys().any(|other| other != path && is_below(other, path));
        has_modules && self.size(path) > 0.0
    }
}

fn depth(path: &str) -> usize {
    path.split('.').count()
}

/// The modules that are in no other of them.
fn outermost<'a>(paths: &[&'a str]) -> Vec<&'a str> {
    let all: BTreeSet<&str> = paths.iter().copied().collect();
    let is_outer = |path: &&&str| !all.iter().any(|other| other != *path && is_below(path, other));
    paths.iter().filter(is_outer).copied().collect()
}
