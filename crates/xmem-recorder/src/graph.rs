//! The graph of an iteration, which the hook writes as an archive of torch.export.

use crate::conclusion;
use crate::error::RecordError;
use crate::exported_graph::ExportedGraph;
use crate::graph_file;
use crate::output::Output;
use crate::progress::Progress;
use crate::request::Request;
use crate::watch;

/// Runs the command of a request until the hook has written the archive, and puts it where it was asked for.
pub(crate) fn export(
    request: &Request,
    observer: &mut dyn FnMut(Progress<'_>),
) -> Result<ExportedGraph, RecordError> {
    let output = Output::check(&request.output)?;
    let (evidence, overlay) = watch::watched(request, None, observer)?;
    let kept = overlay.kept();
    if !kept.is_nothing() {
        observer(Progress::Kept(&kept));
    }
    let found =
        evidence.processes.iter().find_map(|process| Some((process, process.graph.clone()?)));
    let Some((process, facts)) = found else {
        let reason = evidence.processes.iter().find_map(|process| process.no_graph.clone());
        return Err(match reason {
            Some(text) => RecordError::NoGraph { text },
            None => conclusion::failure(&evidence),
        });
    };
    let size = graph_file::deliver(&overlay, &output)?;
    Ok(ExportedGraph {
        path: request.output.clone(),
        size,
        took: evidence.took,
        torch: process.torch.clone(),
        python: process.python.clone(),
        facts,
    })
}
