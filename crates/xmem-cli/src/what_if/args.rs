//! Arguments that change the job. Each what-if of the table has the form `--what-if NAME=VALUE`; some have an option of their
//! own besides.

use crate::values::Offered;
use clap::Args;
use clap::builder::ValueParser;
use clap::builder::{PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser};
use xmem::orchestrator::{ChosenWhatIf, ParseWhatIfError, Values, WHAT_IFS, WhatIf};

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "What if")]
pub(crate) struct WhatIfArgs {
    /// Change the job: NAME=VALUE, several with commas or repeated
    #[arg(long, value_name = "NAME=VALUE", value_delimiter = ',', long_help = what_if_help())]
    pub(crate) what_if: Vec<ChosenWhatIf>,
    /// Short for --what-if zero-grad=PLACE: clear gradients at another place
    #[arg(long, value_name = "PLACE", value_parser = short_form("zero-grad"))]
    pub(crate) zero_grad: Option<ChosenWhatIf>,
    /// Short for --what-if set-to-none=BOOL: let zero_grad free gradients (true) or keep them as zeroed tensors (false)
    #[arg(long, value_name = "BOOL", value_parser = short_form("set-to-none"))]
    pub(crate) set_to_none: Option<ChosenWhatIf>,
    /// Short for --what-if optimizer-impl=IMPL: implementation of the optimizer on the GPU (PyTorch's default: foreach)
    #[arg(long, value_name = "IMPL", value_parser = short_form("optimizer-impl"))]
    pub(crate) optimizer_impl: Option<ChosenWhatIf>,
    /// Short for --what-if cublas-workspace=CONFIG: CUBLAS_WORKSPACE_CONFIG of the job, for example :4096:8 (default: the
    /// value in the input, else PyTorch's default for the device)
    #[arg(long, value_name = "CONFIG", value_parser = short_form("cublas-workspace"))]
    pub(crate) cublas_workspace_config: Option<ChosenWhatIf>,
    /// Short for --what-if collectives=WHEN: when collectives, and other work on the streams of a virtual GPU, are
    /// complete. at-once is what was recorded; the range of the answer goes up to run-ahead
    #[arg(long, value_name = "WHEN", value_parser = short_form("collectives"))]
    pub(crate) collectives: Option<ChosenWhatIf>,
    /// Parameters of --what-if collectives=bandwidth: nvlink, pcie and network are per-direction bandwidths in GB/s; host is
    /// the fraction of recorded host time left without profiling (network=50,host=0.3)
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',', value_parser = rate)]
    pub(crate) rates: Vec<(Rate, f64)>,
    /// Disable a rule of the CPU-to-GPU lowering (`xmem replay --explain` lists them); repeatable
    #[arg(long, value_name = "NAME", value_parser = Offered::new(rules), hide_possible_values = true)]
    pub(crate) no_rule: Vec<String>,
}

impl WhatIfArgs {
    /// What is changed, by options of both forms, each once and in the order of the table. Of two of one name, that of
    /// `--what-if` counts.
    pub(crate) fn chosen(&self) -> Vec<&ChosenWhatIf> {
        let Self {
            what_if,
            zero_grad,
            set_to_none,
            optimizer_impl,
            cublas_workspace_config,
            collectives,
            rates: _,
            no_rule: _,
        } = self;
        let short = [zero_grad, set_to_none, optimizer_impl, cublas_workspace_config, collectives];
        let all = || what_if.iter().rev().chain(short.into_iter().flatten());
        WHAT_IFS.iter().filter_map(|known| all().find(|it| it.name() == known.name)).collect()
    }
}

/// The rules that a shell offers.
fn rules() -> Vec<PossibleValue> {
    let known = xmem::orchestrator::rules().iter();
    known.map(|rule| PossibleValue::new(rule.name).help(rule.summary)).collect()
}

/// The parser of an option that is short for a what-if.
fn short_form(name: &'static str) -> ValueParser {
    let read = move |value: String| ChosenWhatIf::new(name, &value);
    match WhatIf::named(name).map(|what_if| what_if.values) {
        Some(Values::Named(values)) => {
            let values = values.iter().map(|(name, help)| PossibleValue::new(*name).help(*help));
            ValueParser::new(PossibleValuesParser::new(values).try_map(read))
        }
        _ => ValueParser::new(StringValueParser::new().try_map(move |value| {
            // The name of the option is in the message already.
            read(value).map_err(|error| match error {
                ParseWhatIfError::Value { problem, .. } => problem,
                other => other.to_string(),
            })
        })),
    }
}

/// The long help of `--what-if`, with all of them.
fn what_if_help() -> String {
    let mut help =
        "Change the job: NAME=VALUE, several with commas or repeated. The recording stays as it is:".to_owned();
    for what_if in &WHAT_IFS {
        help += &format!("\n- {}: {}", what_if.usage(), what_if.help);
    }
    help
}

/// A parameter of `--rates`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rate {
    Nvlink,
    Pcie,
    Network,
    Host,
}

/// Reads one of `--rates`.
fn rate(text: &str) -> Result<(Rate, f64), String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE, for example network=50")?;
    let rate = match key {
        "nvlink" => Rate::Nvlink,
        "pcie" => Rate::Pcie,
        "network" => Rate::Network,
        "host" => Rate::Host,
        _ => {
            return Err(format!(
                "unknown parameter `{key}`: expected nvlink, pcie, network or host"
            ));
        }
    };
    match value.parse::<f64>() {
        Ok(number) if number > 0.0 && number <= 1e6 => Ok((rate, number)),
        _ => Err(format!("`{value}` is not a number above 0 and up to 1000000")),
    }
}

#[cfg(test)]
mod tests {
    use super::WhatIfArgs;
    use clap::{Args, FromArgMatches};

    fn chosen(words: &[&str]) -> Vec<String> {
        let command = WhatIfArgs::augment_args(clap::Command::new("test"));
        let matches = command.try_get_matches_from([&["test"], words].concat()).expect("valid");
        let args = WhatIfArgs::from_arg_matches(&matches).expect("valid");
        args.chosen().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn options_of_their_own_are_short_forms() {
        for (short, long) in [
            (&["--zero-grad", "pos0"][..], "zero-grad=pos0"),
            (&["--set-to-none", "false"], "set-to-none=false"),
            (&["--optimizer-impl", "for-loop"], "optimizer-impl=for-loop"),
            (&["--cublas-workspace-config", ":4096:8"], "cublas-workspace=:4096:8"),
            (&["--collectives", "run-ahead"], "collectives=run-ahead"),
            (
                &["--zero-grad", "pos1", "--what-if", "world-size=16", "--optimizer-impl", "fused"],
                "world-size=16,optimizer-impl=fused,zero-grad=pos1",
            ),
        ] {
            assert_eq!(chosen(short), chosen(&["--what-if", long]), "{long}");
        }
        let both =
            ["--zero-grad", "pos1", "--what-if", "zero-grad=pos0", "--what-if", "amsgrad=true"];
        assert_eq!(chosen(&both), ["zero-grad=pos0", "amsgrad=true"]);
    }
}
