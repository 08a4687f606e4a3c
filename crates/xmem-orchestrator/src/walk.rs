//! One walk over the operators in program order: each is handed to the rule that claims it.

use crate::frame::call::Call;
use crate::frame::context::Context;
use crate::frame::definition::{Applies, Lowering, Outcome, RuleDefinition};
use crate::frame::draft::Draft;
use crate::rule::{Rule, RuleId};
use crate::rules::DEFINITIONS;
use rustc_hash::{FxHashMap, FxHashSet};
use xmem_types::{Diagnostics, Location, Severity, Sym};

/// Applies every rule about operators.
pub(crate) fn operators<'p>(draft: &mut Draft<'p>, cx: &Context<'p>, notes: &mut Diagnostics) {
    let profile = cx.profile;
    let mut rules = active(cx);
    let claims = Claims::of(cx, &rules);
    let mut replaced = FxHashSet::default();
    let mut without_epilogue = FxHashSet::default();
    let order = profile.tree.preorder();
    let mut at = 0;
    while let Some(&op) = order.get(at) {
        at += 1;
        if replaced.contains(&op) {
            at += profile.tree.descendants(op).len();
            continue;
        }
        let annotation = profile.is_annotation(op);
        let Some(rule) = claims.of_name(profile.op_symbol(op), annotation) else { continue };
        let Active { id, lowering, .. } = &mut rules[rule];
        let mut call = Call::new(op, cx, (draft, *id), &mut without_epilogue);
        match lowering.lower(&mut call) {
            Outcome::Unclaimed | Outcome::Done => {}
            Outcome::ReplacedInside => at += profile.tree.descendants(op).len(),
            Outcome::ReplacedNodes(nodes) => {
                replaced.extend(nodes);
                at += profile.tree.descendants(op).len();
            }
            Outcome::KeptAsRecorded(reason) => {
                let place = Some(Location::Op(op));
                notes.report(reason.code, Severity::Warning, place, || reason.message);
            }
        }
    }
    for rule in &rules {
        rule.lowering.finish(cx, notes);
    }
}

/// A rule at work.
struct Active {
    id: RuleId,
    definition: &'static RuleDefinition,
    lowering: Box<dyn Lowering>,
}

/// The rules about operators that are switched on, or through which another one is.
fn active(cx: &Context<'_>) -> Vec<Active> {
    let through = |rule: &Rule| {
        DEFINITIONS.iter().any(|other| match other.applies {
            Applies::Through(by) => by.rule == *rule && cx.enables(other),
            _ => false,
        })
    };
    let active = |(index, definition): (usize, &&'static RuleDefinition)| {
        let (Applies::ToOperators(make) | Applies::ToAnnotations(_, make)) = definition.applies
        else {
            return None;
        };
        let id = RuleId::new(index);
        let on = cx.enables(definition) || through(definition);
        on.then(|| Active { id, definition, lowering: make(cx) })
    };
    DEFINITIONS.iter().enumerate().filter_map(active).collect()
}

/// Rules by the names in the trace that they claim.
struct Claims {
    operators: FxHashMap<Sym, usize>,
    annotations: FxHashMap<Sym, usize>,
}

impl Claims {
    fn of(cx: &Context<'_>, rules: &[Active]) -> Self {
        let profile = cx.profile;
        let mut claims =
            Self { operators: FxHashMap::default(), annotations: FxHashMap::default() };
        for (index, active) in rules.iter().enumerate() {
            let rule = active.definition;
            let symbols = rule.operators.iter().filter_map(|name| profile.symbol(name));
            claims.operators.extend(symbols.map(|symbol| (symbol, index)));
            if let Applies::ToAnnotations(prefix, _) = rule.applies {
                let marks = profile.symbols().filter(|(_, text)| text.starts_with(prefix));
                claims.annotations.extend(marks.map(|(symbol, _)| (symbol, index)));
            }
        }
        claims
    }

    /// The rule that claims an operator, or an annotation, of this name.
    fn of_name(&self, name: Sym, annotation: bool) -> Option<usize> {
        let claims = if annotation { &self.annotations } else { &self.operators };
        claims.get(&name).copied()
    }
}
