//! Sizes as formulas of symbols, as torch.export writes them: SymPy's constructor calls, such as
//! `Mul(Integer(4), Symbol('s17', positive=True, integer=True))` (torch/_export/serde/serialize.py).

use std::collections::BTreeMap;

/// Deeper formulas are refused.
const DEEPEST: usize = 200;

/// A formula over whole numbers.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Expression {
    /// A number.
    Number(i64),
    /// A symbol.
    Symbol(String),
    /// A function of others.
    Call(Function, Vec<Expression>),
}

/// A function in a formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Function {
    /// Sum.
    Add,
    /// Product.
    Mul,
    /// First to the power of the second.
    Pow,
    /// Quotient, rounded down.
    FloorDiv,
    /// Quotient, rounded up.
    CeilDiv,
    /// Remainder.
    Mod,
    /// The largest.
    Max,
    /// The smallest.
    Min,
}

impl Expression {
    /// Reads a formula; `None` if it has a part that is not known.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parser = Parser { text, at: 0 };
        let expression = parser.expression(0)?;
        parser.spaces();
        (parser.at == text.len()).then_some(expression)
    }

    /// The value with these symbols; `None` if one is missing or the value is not a number that fits.
    #[must_use]
    pub fn value(&self, symbols: &BTreeMap<String, i64>) -> Option<i64> {
        match self {
            Self::Number(value) => Some(*value),
            Self::Symbol(name) => symbols.get(name).copied(),
            Self::Call(function, parts) => {
                let values: Option<Vec<i64>> = parts.iter().map(|p| p.value(symbols)).collect();
                function.of(&values?)
            }
        }
    }

    /// The symbol, if the formula is nothing else.
    #[must_use]
    pub fn symbol(&self) -> Option<&str> {
        match self {
            Self::Symbol(name) => Some(name),
            _ => None,
        }
    }
}

impl Function {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "Add" => Self::Add,
            "Mul" => Self::Mul,
            "Pow" | "PowByNatural" => Self::Pow,
            "FloorDiv" | "CleanDiv" => Self::FloorDiv,
            "CeilDiv" | "CeilToInt" => Self::CeilDiv,
            "Mod" | "PythonMod" => Self::Mod,
            "Max" => Self::Max,
            "Min" => Self::Min,
            _ => return None,
        })
    }

    fn of(self, values: &[i64]) -> Option<i64> {
        let pair = || match values {
            [a, b] => Some((*a, *b)),
            _ => None,
        };
        match self {
            Self::Add => values.iter().try_fold(0_i64, |sum, v| sum.checked_add(*v)),
            Self::Mul => values.iter().try_fold(1_i64, |product, v| product.checked_mul(*v)),
            Self::Max => values.iter().copied().max(),
            Self::Min => values.iter().copied().min(),
            Self::Pow => {
                let (base, exponent) = pair()?;
                base.checked_pow(u32::try_from(exponent).ok()?)
            }
            Self::FloorDiv => {
                let (a, b) = pair()?;
                a.checked_div_euclid(b)
            }
            Self::CeilDiv => {
                let (a, b) = pair()?;
                a.checked_neg()?.checked_div_euclid(b)?.checked_neg()
            }
            Self::Mod => {
                let (a, b) = pair()?;
                a.checked_rem_euclid(b)
            }
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn spaces(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn takes(&mut self, word: &str) -> bool {
        self.spaces();
        let found = self.rest().starts_with(word);
        if found {
            self.at += word.len();
        }
        found
    }

    fn word(&mut self) -> String {
        self.spaces();
        let rest = self.rest();
        let end = rest
            .find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.'))
            .unwrap_or(rest.len());
        let word = rest[..end].to_owned();
        self.at += end;
        word
    }

    fn expression(&mut self, depth: usize) -> Option<Expression> {
        if depth > DEEPEST {
            return None;
        }
        self.spaces();
        if self.takes("-") {
            let Expression::Number(value) = self.expression(depth + 1)? else { return None };
            return Some(Expression::Number(-value));
        }
        let word = self.word();
        if let Ok(value) = word.parse() {
            return Some(Expression::Number(value));
        }
        // A class may have its module before it.
        let name = word.rsplit('.').next().unwrap_or(&word);
        if !self.takes("(") {
            // A bare symbol.
            return (!word.is_empty()).then(|| Expression::Symbol(word.clone()));
        }
        if name == "Symbol" {
            return self.symbol();
        }
        let parts = self.parts(depth)?;
        match (name, parts.as_slice()) {
            ("Integer", [number]) => Some(number.clone()),
            ("Rational", [Expression::Number(a), Expression::Number(b)])
                if *b != 0 && a % b == 0 =>
            {
                Some(Expression::Number(a / b))
            }
            _ => Some(Expression::Call(Function::named(name)?, parts)),
        }
    }

    /// Arguments up to the closing parenthesis; those with names (`evaluate=False`) say nothing.
    fn parts(&mut self, depth: usize) -> Option<Vec<Expression>> {
        let mut parts = Vec::new();
        loop {
            if self.takes(")") {
                return Some(parts);
            }
            let before = self.at;
            let name = self.word();
            if !name.is_empty() && self.takes("=") {
                self.word();
            } else {
                self.at = before;
                parts.push(self.expression(depth + 1)?);
            }
            if !self.takes(",") && !self.rest().trim_start().starts_with(')') {
                return None;
            }
        }
    }

    fn symbol(&mut self) -> Option<Expression> {
        self.spaces();
        let quote = self.rest().chars().next().filter(|c| matches!(c, '\'' | '"'))?;
        self.at += 1;
        let end = self.rest().find(quote)?;
        let name = self.rest()[..end].to_owned();
        self.at += end + 1;
        let close = self.rest().find(')')?;
        self.at += close + 1;
        Some(Expression::Symbol(name))
    }
}

#[cfg(test)]
mod tests {
    use super::Expression;
    use std::collections::BTreeMap;

    fn value(text: &str) -> Option<i64> {
        let symbols = BTreeMap::from([("s17".to_owned(), 8), ("s0".to_owned(), 5)]);
        Expression::parse(text)?.value(&symbols)
    }

    #[test]
    fn formulas_of_sympy_have_values() {
        for (text, expected) in [
            ("Integer(12)", Some(12)),
            ("-1", Some(-1)),
            ("s17", Some(8)),
            ("Symbol('s17', positive=True, integer=True)", Some(8)),
            ("Mul(Integer(4), Symbol('s17', positive=True, integer=True))", Some(32)),
            (
                "Add(Mul(Integer(2), FloorDiv(Symbol('s0', positive=True, integer=True), Integer(2))), Integer(1))",
                Some(5),
            ),
            ("torch.utils._sympy.functions.Mod(Symbol('s17'), Integer(3))", Some(2)),
            ("CeilDiv(Symbol('s17'), Integer(3))", Some(3)),
            ("Max(Integer(1), Symbol('s0'))", Some(5)),
            ("Pow(Symbol('s0'), Integer(2))", Some(25)),
            ("Mul(Integer(4611686018427387904), Symbol('s17'))", None),
            ("FloorDiv(Integer(1), Integer(0))", None),
            ("Symbol('s9')", None),
            ("Mul(Integer(4)", None),
            ("sin(Symbol('s0'))", None),
        ] {
            assert_eq!(value(text), expected, "{text}");
        }
        let deep = "Mul(".repeat(10_000);
        assert_eq!(value(&deep), None);
    }
}
