//! What a script says about itself: how it is recorded, and what must come out.
//!
//! The header is TOML in comments, between `# /// xmem` and `# ///`; `README.md` beside the scripts
//! describes the keys.

use super::expect::Expectation;
use crate::error::CorpusError;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use xmem_task::Error;

const BEGIN: &str = "# /// xmem";
const END: &str = "# ///";

/// The header of a script.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Header {
    /// Options of `xmem profile`.
    #[serde(default)]
    pub(super) options: Vec<String>,
    /// The recorded command; `{python}`, `{bin}`, `{script}`, `{scripts}` and `{scratch}` are replaced.
    #[serde(default = "plain_command")]
    pub(super) command: Vec<String>,
    #[serde(default)]
    pub(super) environment: BTreeMap<String, String>,
    /// Which releases of torch the script is for.
    #[serde(default)]
    pub(super) torch: Option<String>,
    /// The reason why the script is not recorded on the CPU.
    #[serde(default)]
    pub(super) skip_on_cpu: Option<String>,
    #[serde(default)]
    pub(super) exit: i32,
    /// Whether a trace is there at the end.
    #[serde(default)]
    pub(super) trace: Trace,
    /// Iterations that xmem finds in the trace.
    #[serde(default)]
    pub(super) iterations: Option<usize>,
    #[serde(default)]
    pub(super) stdout: Vec<String>,
    #[serde(default)]
    pub(super) stdout_without: Vec<String>,
    #[serde(default)]
    pub(super) stderr: Vec<String>,
    #[serde(default)]
    pub(super) stderr_without: Vec<String>,
    /// Texts that are neither in the trace nor in an answer about it; `{host}` is the name of this machine.
    #[serde(default)]
    pub(super) trace_without: Vec<String>,
    /// What the hook wrote into the trace (`xmem.recording.1`), by JSON pointer.
    #[serde(default)]
    pub(super) recording: BTreeMap<String, Expectation>,
    /// What stands in the answer of `xmem inspect`.
    #[serde(default)]
    pub(super) inspect: BTreeMap<String, Expectation>,
    /// The same for `xmem replay`.
    #[serde(default)]
    pub(super) replay: BTreeMap<String, Expectation>,
    /// What `xmem export` says about the loop, in the archive's `xmem.job.json`; nothing is exported without.
    #[serde(default)]
    pub(super) export: BTreeMap<String, Expectation>,
    /// What is other on a virtual GPU.
    #[serde(default)]
    pub(super) virtual_gpu: VirtualGpu,
    /// Another script whose trace has the same peak.
    #[serde(default)]
    pub(super) same_peak: Option<SamePeak>,
}

/// What is expected of a recording on a virtual GPU, where it is not what is expected on the CPU.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct VirtualGpu {
    /// The reason why the script is not recorded on one.
    pub(super) skip: Option<String>,
    /// Which releases of torch are recorded on one.
    pub(super) torch: Option<String>,
    pub(super) exit: Option<i32>,
    /// Further options of `xmem profile`.
    #[serde(default)]
    pub(super) options: Vec<String>,
    #[serde(default)]
    pub(super) stdout: Vec<String>,
    #[serde(default)]
    pub(super) stdout_without: Vec<String>,
    #[serde(default)]
    pub(super) stderr: Vec<String>,
    #[serde(default)]
    pub(super) stderr_without: Vec<String>,
    /// What the hook wrote into the trace.
    #[serde(default)]
    pub(super) recording: BTreeMap<String, Expectation>,
    /// What stands in the answer of `xmem replay`.
    #[serde(default)]
    pub(super) replay: BTreeMap<String, Expectation>,
    /// By how many per cent the peaks of the same script's recording on the CPU may lie outside of the range of
    /// the answer; none if they are not compared.
    pub(super) contains_cpu: Option<f64>,
}

/// Whether a recording leaves a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Trace {
    #[default]
    Written,
    None,
}

/// A peak that must be that of another trace.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct SamePeak {
    #[serde(rename = "as")]
    pub(super) script: String,
    pub(super) within_percent: f64,
}

fn plain_command() -> Vec<String> {
    ["{python}", "{script}"].map(str::to_owned).to_vec()
}

impl Header {
    /// The header in the text of the script at `path`.
    pub(super) fn read(path: &Path, text: &str) -> Result<Self, Error> {
        let unclear = |what: String| CorpusError::Unusable { path: path.to_owned(), what };
        let lines = text.lines().skip_while(|line| *line != BEGIN).skip(1);
        let mut header = String::new();
        for line in lines {
            if line == END {
                return Ok(toml::from_str(&header).map_err(|error| unclear(error.to_string()))?);
            }
            let bare = line.strip_prefix('#').ok_or_else(|| unclear(format!("no `{END}`")))?;
            header.push_str(bare.strip_prefix(' ').unwrap_or(bare));
            header.push('\n');
        }
        Err(unclear(format!("no header: `{BEGIN}` … `{END}`")).into())
    }

    /// Whether a release of torch exports graphs of training.
    pub(super) fn can_export(torch: &str) -> bool {
        is_among(Some(">=2.6"), torch).unwrap_or(false)
    }

    /// Whether the script is for this release of torch.
    pub(super) fn is_for(&self, torch: &str) -> Result<bool, String> {
        is_among(self.torch.as_deref(), torch)
    }
}

impl VirtualGpu {
    /// Whether the script is recorded on a virtual GPU with this release of torch.
    pub(super) fn is_for(&self, torch: &str) -> Result<bool, String> {
        is_among(self.torch.as_deref(), torch)
    }
}

/// Whether a release is among those that are wanted; none for all.
fn is_among(wanted: Option<&str>, torch: &str) -> Result<bool, String> {
    let Some(wanted) = wanted else { return Ok(true) };
    let compare = |bound: &str| -> Result<std::cmp::Ordering, String> {
        Ok(release(torch)?.cmp(&release(bound)?))
    };
    if let Some(bound) = wanted.strip_prefix(">=") {
        Ok(compare(bound)?.is_ge())
    } else if let Some(bound) = wanted.strip_prefix('<') {
        Ok(compare(bound)?.is_lt())
    } else {
        Err(format!("`torch = \"{wanted}\"` is neither `>=…` nor `<…`"))
    }
}

/// Major and minor of a release.
fn release(text: &str) -> Result<(u32, u32), String> {
    let mut parts = text.split('.').map(str::parse);
    match (parts.next(), parts.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => Ok((major, minor)),
        _ => Err(format!("`{text}` is no release of torch")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Header, String> {
        Header::read(Path::new("a.py"), text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_header_is_toml_in_comments() {
        let text = "\"\"\"Trains.\"\"\"\n# /// xmem\n# exit = 4\n#\n# [inspect]\n\
                    # \"/job/threads\" = 1\n# ///\nimport torch\n";
        let header = read(text).unwrap();
        assert_eq!((header.exit, header.trace), (4, Trace::Written));
        assert_eq!(header.command, ["{python}", "{script}"]);
        assert!(header.inspect.contains_key("/job/threads"));
    }

    #[test]
    fn a_header_that_is_missing_open_or_misspelled_is_refused() {
        for text in ["import torch\n", "# /// xmem\nexit = 0\n", "# /// xmem\n# exitt = 0\n# ///\n"]
        {
            read(text).unwrap_err();
        }
    }

    #[test]
    fn releases_are_compared_by_number() {
        let header =
            |torch: &str| read(&format!("# /// xmem\n# torch = \"{torch}\"\n# ///\n")).unwrap();
        for (wanted, torch, is) in [
            (">=2.7", "2.15.0", Ok(true)),
            (">=2.7", "2.6.0", Ok(false)),
            ("<2.7", "2.6.0", Ok(true)),
            ("<2.7", "2.7.1", Ok(false)),
        ] {
            assert_eq!(header(wanted).is_for(torch), is, "{torch} {wanted}");
        }
        header("2.7").is_for("2.7.0").unwrap_err();
    }
}
