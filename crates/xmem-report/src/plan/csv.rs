//! Plans and their fragmentation as CSV.

use xmem::types::printable;
use xmem_studies::planner::Moment;
use xmem_studies::planning::{FragmentationSeries, PlanAnswer};

/// The heap map of the best plan: a row for each block, with its time and its place. None if there is no plan.
#[must_use]
pub fn plan(answer: &PlanAnswer) -> Option<String> {
    let plan = &answer.best()?.plan;
    let mut rows = Rows::new(["id", "start", "end", "offset", "size", "category", "op"]);
    let blocks = &answer.blocks;
    for (id, (block, facts)) in blocks.list.blocks().iter().zip(&blocks.facts).enumerate() {
        rows.row([
            text(&facts.name),
            block.start.to_string(),
            block.end.to_string(),
            plan.offsets()[id].get().to_string(),
            block.size.get().to_string(),
            facts.role.map(|role| role.name().to_owned()).unwrap_or_default(),
            text(&facts.op),
        ]);
    }
    Some(rows.finish())
}

/// Fragmentation over time: a row for each placement, moment and class of requests.
#[must_use]
pub fn plan_series(answer: &PlanAnswer) -> String {
    let mut rows = Rows::new([
        "placement",
        "tick",
        "live_bytes",
        "top_bytes",
        "waste_bytes",
        "free_bytes",
        "free_pieces",
        "largest_free_bytes",
        "request_bytes",
        "unusable_by_class",
        "unusable_exact",
    ]);
    let planned = answer.fragmentation.iter().map(|series| ("plan", series));
    let runs = [&answer.pytorch, &answer.tensorflow];
    let runs = runs.map(|run| (run.kind.name(), &run.fragmentation));
    for (placement, series) in planned.chain(runs) {
        for moment in &series.moments {
            for class in FragmentationSeries::classes(&answer.blocks) {
                rows.row(moment_row(placement, moment, class));
            }
        }
    }
    rows.finish()
}

fn moment_row(placement: &str, moment: &Moment, class: u32) -> [String; 11] {
    let free = &moment.free;
    let request = xmem::Bytes(1 << class);
    [
        placement.to_owned(),
        moment.tick.to_string(),
        moment.load.get().to_string(),
        moment.top.get().to_string(),
        moment.waste().get().to_string(),
        free.total().get().to_string(),
        free.count().to_string(),
        free.largest().get().to_string(),
        request.get().to_string(),
        format!("{:.6}", free.unusable_in_class(class)),
        format!("{:.6}", free.unusable(request)),
    ]
}

/// Text as it stands in a cell.
fn text(text: &str) -> String {
    printable(text).into_owned()
}

struct Rows(csv::Writer<Vec<u8>>);

impl Rows {
    fn new<const N: usize>(header: [&str; N]) -> Self {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(header).expect("writing to memory does not fail");
        Self(writer)
    }

    fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.0.write_record(cells).expect("writing to memory does not fail");
    }

    fn finish(self) -> String {
        let bytes = self.0.into_inner().expect("writing to memory does not fail");
        String::from_utf8(bytes).expect("fields are UTF-8, and so are commas and quotes")
    }
}
