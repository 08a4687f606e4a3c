//! Given answers as a source: the answers of a library, where the library is not installed.

use crate::answers::ConvolutionAnswers;
use crate::fitted::FittedModel;
use crate::question::ConvolutionQuestion;
use crate::source::ConvolutionSource;
use xmem_devices::Device;

impl ConvolutionSource for ConvolutionAnswers {
    /// Repeats the answers, whatever the device: they are those of the device of the first time.
    fn answer(&self, device: &Device, questions: &[ConvolutionQuestion]) -> ConvolutionAnswers {
        let mut missing = 0usize;
        let plans: Vec<_> = questions
            .iter()
            .map(|question| {
                let plans = self.get(question).cloned().unwrap_or_else(|| {
                    missing += 1;
                    FittedModel.predict(question, device.compute_capability)
                });
                (*question, plans)
            })
            .collect();
        let unanswered = (missing > 0).then(|| {
            format!(
                "{missing} convolutions are not among the given answers; the {} answers instead",
                FittedModel::NAME
            )
        });
        ConvolutionAnswers::new(self.source(), plans)
            .with_warning(unanswered.or_else(|| self.warning().map(str::to_owned)))
            .with_doubt(self.doubt().map(str::to_owned))
            .with_release(self.release())
            .with_other_release(self.other_release().map(str::to_owned))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::tests::conv;
    use crate::{Basis, ConvPass, ElementType, Layout, NoWorkspaces, Plans};
    use xmem_types::Bytes;

    fn question(channels: u64) -> ConvolutionQuestion {
        let shape = conv(channels, 1, ElementType::F32, Layout::Nchw);
        ConvolutionQuestion::new(ConvPass::Forward, shape)
    }

    #[test]
    fn answers_replay_and_the_model_answers_what_is_missing() {
        let device = xmem_devices::find("a100-40g").expect("built in");
        let of_the_library = Plans {
            sizes: vec![Bytes(700), Bytes(0)],
            low: Bytes(700),
            high: Bytes(700),
            basis: Basis::Library,
            trial: None,
        };
        let first =
            ConvolutionAnswers::new("cuDNN 9.19.0", [(question(64), of_the_library.clone())]);
        let again = first.answer(device, &[question(64)]);
        assert_eq!(again, first);

        let more = first.answer(device, &[question(32), question(64)]);
        assert_eq!(more.get(&question(64)), Some(&of_the_library));
        let fitted = FittedModel.answer(device, &[question(32)]);
        assert_eq!(more.get(&question(32)), fitted.get(&question(32)));
        assert_eq!(
            more.warning(),
            Some(
                "1 convolutions are not among the given answers; the model fitted to cuDNN 9.19 answers instead"
            )
        );
    }

    #[test]
    fn every_question_is_answered_once_and_in_order() {
        let device = xmem_devices::find("a100-40g").expect("built in");
        let questions = [question(64), question(8), question(64)];
        let sources: [&dyn ConvolutionSource; 2] = [&FittedModel, &NoWorkspaces];
        for source in sources {
            let answers = source.answer(device, &questions);
            let order: Vec<_> = answers.iter().map(|(question, _)| *question).collect();
            assert_eq!(order, [question(8), question(64)], "{source:?}");
            assert_eq!(answers.warning(), None);
            assert_eq!(answers.get(&question(16)), None);
        }
    }
}
