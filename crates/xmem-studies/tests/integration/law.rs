//! The memory of a recorded network as a function of its batch size.

use xmem::predict::CapacitySearch;
use xmem::{Bytes, Device, Estimate, Job, PredictedJob, ReadOptions};
use xmem_studies::law::{JobLaw, LawError, LawPoint, LawSubject, LawTable, RecordedPart};

const SIZES: [u64; 4] = [4, 10, 24, 32];

fn device() -> Device {
    xmem::find("t4-16g").expect("known").clone()
}

/// A recording with a batch size.
fn job(size: u64) -> Job {
    let trace = format!("tests/data/law/batch-{size}.json.zst");
    Job::from_path(&trace, &ReadOptions::default()).expect("a trace")
}

fn predicted(job: &Job) -> PredictedJob<'_> {
    let estimate = Estimate::builder(device()).capacity_search(CapacitySearch::Run).build();
    estimate.predict(job).expect("a prediction")
}

/// The law of the recordings with some batch sizes, and what it says about another one; the plans of convolutions are those that
/// were kept with the recordings.
fn law_of(sizes: &[u64], asked: u64, asks: bool) -> (LawPoint, LawPoint) {
    let jobs: Vec<(u64, Job)> = sizes.iter().map(|&size| (size, job(size))).collect();
    let all: Vec<(u64, PredictedJob<'_>)> =
        jobs.iter().map(|(size, job)| (*size, predicted(job))).collect();
    let predictions = all.iter().map(|(size, job)| (*size, job.prediction()));
    let mut law = JobLaw::new(predictions, RecordedPart::Iterations, 24).expect("a law");
    let recorded = job(asked);
    let real = predicted(&recorded);
    if asks {
        let kept = real.answer().convolutions;
        law = law.with_convolutions((&kept, &device()), &[asked]);
    }
    let own = JobLaw::new(
        [(asked, real.prediction()), (1 << 20, real.prediction())],
        RecordedPart::Iterations,
        24,
    );
    let own = own.expect("a law of one").at(asked).expect("its own value");
    (law.at(asked).expect("within the law"), own)
}

#[test]
fn a_batch_that_was_not_recorded_needs_what_its_own_recording_says() {
    for asked in [10, 24] {
        let others: Vec<u64> = SIZES.into_iter().filter(|size| *size != asked).collect();
        let (law, recorded) = law_of(&others, asked, true);
        assert_eq!(law.allocated, recorded.allocated, "{asked}");
        assert_eq!(law.reserved, recorded.reserved, "{asked}");
        assert_eq!(law.needs, recorded.needs, "{asked}");
    }
}

#[test]
fn workspaces_that_are_not_asked_about_lie_between_those_of_recordings() {
    let (law, recorded) = law_of(&[4, 10, 32], 24, false);
    let off = law.allocated.get().abs_diff(recorded.allocated.get());
    assert!(law.allocated != recorded.allocated, "the plans matter");
    assert!(off * 10 < recorded.allocated.get(), "{law:?} {recorded:?}");
}

#[test]
fn a_table_has_every_value_and_the_recorded_ones_as_they_are() {
    let jobs: Vec<(u64, Job)> = SIZES.iter().map(|&size| (size, job(size))).collect();
    let all: Vec<_> = jobs.iter().map(|(size, job)| (*size, predicted(job))).collect();
    let predictions = all.iter().map(|(size, job)| (*size, job.prediction()));
    let law = JobLaw::new(predictions, RecordedPart::Iterations, 4).expect("a law");
    let table = LawTable::new(&law, LawSubject::default());
    assert_eq!(table.points.len(), 29);
    assert_eq!(table.recorded, SIZES);
    assert_eq!(table.checks.len(), 2);
    for (size, job) in &all {
        let need = table.at(*size).expect("recorded");
        let ample = job.prediction().ample_outline();
        assert!(need.is_recorded);
        assert_eq!(need.point.allocated, ample.allocated, "{size}");
        assert!(need.point.reserved >= ample.reserved && need.range.0 == need.range.1);
    }
    let room = table.at(17).expect("between").point.needs;
    let found = law.last_within(room, (4, 4096), None);
    assert!(table.at(found).is_none_or(|need| need.point.needs <= room), "{found}");
    assert!((17..=18).contains(&found), "{found}");
}

#[test]
fn one_value_is_no_law() {
    let recorded = job(4);
    let one = predicted(&recorded);
    let found = JobLaw::new([(4, one.prediction())], RecordedPart::Whole, 24);
    assert_eq!(found.err(), Some(LawError::TooFew { found: 1 }));
    assert!(one.prediction().device().taken > Bytes::ZERO);
}
