//! Options whose values are those of a type of a library.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// A type that options take by name.
pub(crate) trait Choice: Copy + Send + Sync + 'static {
    /// Every value, in the order of the help.
    const ALL: &'static [Self];

    /// The name of a value, with its help and aliases.
    fn possible_value(self) -> PossibleValue;
}

/// The parser of an option with the values of a type.
pub(crate) fn choice<T: Choice>() -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(T::ALL.iter().map(|value| value.possible_value())).map(|name| {
        // The case of letters was checked, where it matters.
        let is_named = |value: &&T| value.possible_value().matches(&name, true);
        *T::ALL.iter().find(is_named).expect("the parser accepts names only")
    })
}

/// Lists the values of a type, in one of two forms: with the description of each, or with the help of each where the type
/// has a function for its names. A value of the type that is not listed does not compile.
macro_rules! choices {
    ($type:ident by $name:ident { $($value:ident => $help:literal,)+ }) => {
        $crate::choice::choices! {
            $type {
                $($value => clap::builder::PossibleValue::new($type::$value.$name()).help($help),)+
            }
        }
    };
    ($type:ident { $($value:ident => $possible_value:expr,)+ }) => {
        impl $crate::choice::Choice for $type {
            const ALL: &'static [Self] = &[$(Self::$value,)+];

            fn possible_value(self) -> clap::builder::PossibleValue {
                match self {
                    $(Self::$value => $possible_value,)+
                }
            }
        }
    };
}

pub(crate) use choices;

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Arg, Command};

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Fruit {
        Apple,
        Pear,
    }

    choices! {
        Fruit {
            Apple => PossibleValue::new("apple").alias("pomme"),
            Pear => PossibleValue::new("Pear").hide(true),
        }
    }

    #[test]
    fn values_are_known_by_names_and_aliases() {
        let parse = |text: &str, ignore_case: bool| {
            let arg = Arg::new("fruit").value_parser(choice::<Fruit>()).ignore_case(ignore_case);
            let matches = Command::new("test").arg(arg).try_get_matches_from(["test", text]);
            matches.ok().and_then(|matches| matches.get_one::<Fruit>("fruit").copied())
        };
        for (text, exact, any_case) in [
            ("apple", Some(Fruit::Apple), Some(Fruit::Apple)),
            ("pomme", Some(Fruit::Apple), Some(Fruit::Apple)),
            ("Pear", Some(Fruit::Pear), Some(Fruit::Pear)),
            ("pear", None, Some(Fruit::Pear)),
            ("plum", None, None),
        ] {
            assert_eq!((parse(text, false), parse(text, true)), (exact, any_case), "{text}");
        }
    }
}
