//! The check of an answer that was kept: its figures must give its decision.

use super::json::{CheckDocument, CheckedDevice};
use xmem::Device;
use xmem_gate::{Decision, Margin, TightBy};

impl CheckDocument {
    /// Returns whether the decision follows from the figures, about one of `devices` with `margin` to stay free.
    /// `devices` are those on which the job may be started, the smallest first. A document for which this does not
    /// hold was not written by the gate.
    #[must_use]
    pub fn is_coherent(&self, devices: &[Device], margin: Margin) -> bool {
        let Some((device, others)) = devices.split_first() else { return false };
        let memory = device.memory.get();
        let Some(decision) = Decision::named(&self.decision) else { return false };
        if self.device != CheckedDevice::from(device)
            || self.margin_bytes != margin.of(device.memory).get()
        {
            return false;
        }
        let fits_elsewhere = |need: u64| {
            self.elsewhere.iter().filter(|other| other.fits).any(|found| {
                need <= found.device.memory_bytes
                    && others.iter().any(|other| CheckedDevice::from(other) == found.device)
            })
        };
        match (decision, self.need_bytes) {
            (Decision::NoVerdict, need) => need.is_none(),
            (_, None) => false,
            (Decision::Fits | Decision::OverRequested, Some(need)) => {
                need <= memory.saturating_sub(self.margin_bytes)
            }
            (Decision::Tight, Some(need)) => match self.tight_by.as_deref() {
                // What is expected to run out of memory, and may run.
                Some(by) if by == TightBy::MayFit.name() => true,
                Some(by) if by == TightBy::Placement.name() => fits_elsewhere(need),
                _ => need <= memory,
            },
            (Decision::DoesNotFit, Some(need)) => need > memory,
        }
    }
}
