//! The release of cuDNN that a job will run with, as far as a recording and the release of PyTorch tell.

use super::{AllocatorSetup, Origin};
use xmem_analyzer::recording::Recording;
use xmem_convolutions::{ConvolutionAnswers, CudnnRelease};
use xmem_types::TorchVersion;

/// The first release of PyTorch whose wheels have a cuDNN that answers without a GPU: 2.8.0 requires 9.10.2, 2.7.1
/// required 9.5.1 (`nvidia-cudnn-cu12` in the metadata of the wheels).
const FIRST_ASKED: TorchVersion = TorchVersion::new(2, 8);

/// The reason why the job runs with a release of cuDNN that may answer otherwise than the one that was asked. `None`
/// if it is that release or one like it: all releases that can be asked give nearly the same plans.
#[must_use]
pub fn other_cudnn_release(
    answers: &ConvolutionAnswers,
    is_automatic: bool,
    recording: Option<&Recording>,
    setup: &AllocatorSetup,
) -> Option<String> {
    let torch = setup.release;
    let library = recording.and_then(|recording| recording.cudnn.as_ref()?.release.as_deref());
    match (library.and_then(CudnnRelease::parse), setup.release_from) {
        (Some(release), Origin::Input | Origin::Default) => (!release.can_be_asked()).then(|| {
            format!("cuDNN {release} of the recorded environment gives no answers without a GPU")
        }),
        _ if torch < FIRST_ASKED => Some(format!(
            "PyTorch {torch} comes with a cuDNN before {}, which gives no answers without a GPU",
            CudnnRelease::FIRST_ASKED
        )),
        (None, Origin::Default) if is_automatic && answers.release().is_some() => {
            Some("the trace does not say with which PyTorch the job will run".to_owned())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocator::{AllocatorSettings, JobEnvironment};
    use xmem_analyzer::recording::CudnnLibrary;

    #[test]
    fn a_release_that_cannot_be_asked_is_another_than_the_one_that_was() {
        let device = xmem_devices::find("rtx3060-12g").expect("built in");
        let setup = |torch: Option<(u16, u16)>, release_from| {
            let release = torch.map(|(major, minor)| TorchVersion::new(major, minor));
            let settings = AllocatorSettings { release, ..AllocatorSettings::default() };
            let environment = JobEnvironment::default();
            let setup = settings.resolve_leniently(&environment, device).expect("known");
            AllocatorSetup { release_from, ..setup }
        };
        let library =
            ConvolutionAnswers::new("cuDNN", []).with_release(CudnnRelease::parse("9.19.0"));
        let model = ConvolutionAnswers::new("model", []);
        use Origin::{Default as Assumed, Given, Input};
        for (torch, from, recorded, answers, is_automatic, reason) in [
            (Some((2, 11)), Input, None, &library, true, None),
            (Some((2, 11)), Input, Some("9.10.2"), &library, true, None),
            (Some((2, 11)), Input, Some("9.5.1"), &library, true, Some("cuDNN 9.5 of")),
            (Some((2, 6)), Input, None, &library, true, Some("PyTorch 2.6 comes with")),
            (Some((2, 6)), Input, None, &library, false, Some("PyTorch 2.6 comes with")),
            (Some((2, 6)), Input, None, &model, true, Some("PyTorch 2.6 comes with")),
            (Some((2, 6)), Given, Some("9.10.2"), &library, true, Some("PyTorch 2.6 comes with")),
            (Some((2, 8)), Given, Some("9.5.1"), &library, true, None),
            (None, Assumed, None, &library, true, Some("the trace does not say")),
            (None, Assumed, None, &library, false, None),
            (None, Assumed, None, &model, true, None),
        ] {
            let release = recorded.map(str::to_owned);
            let recording = Recording {
                cudnn: release
                    .map(|release| CudnnLibrary { library: None, release: Some(release) }),
                ..Recording::default()
            };
            let found =
                other_cudnn_release(answers, is_automatic, Some(&recording), &setup(torch, from));
            let row = format!("{torch:?} {from:?} {recorded:?} {is_automatic}: {found:?}");
            assert_eq!(found.is_some(), reason.is_some(), "{row}");
            assert!(found.unwrap_or_default().starts_with(reason.unwrap_or_default()), "{row}");
        }
    }
}
