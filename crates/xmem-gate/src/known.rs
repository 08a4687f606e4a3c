//! The decision about a job whose need is known without its recording: from a law.

use crate::margin::Margin;
use xmem::{Bytes, Decision, Device, Need, TightBy};

/// What a job is known to need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownNeed {
    /// Peak allocated memory.
    pub allocated: Bytes,
    /// Peak reserved memory, where the device has enough.
    pub reserved: Bytes,
    /// The least device memory with which it runs, context included.
    pub least: Bytes,
    /// The least that this may be, and the most.
    pub range: (Bytes, Bytes),
    /// What others than the allocator take of the memory of the device that it was recorded for.
    pub context: Bytes,
}

/// What is decided about it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct KnownOutcome {
    /// The decision.
    pub decision: Decision,
    /// Why it is tight, if it is.
    pub tight_by: Option<TightBy>,
    /// The device that it is about: the smallest on which the job may be started.
    pub device: Device,
    /// Memory of the device that is to stay free.
    pub margin: Bytes,
    /// What it needs on that device.
    pub need: Need,
    /// The range of what it needs at least on that device.
    pub range: (Bytes, Bytes),
    /// Other devices on which it may be started, and whether it fits there.
    pub elsewhere: Vec<(Device, bool)>,
    /// The smallest device of the site that holds it and has less memory, if it is over-requested.
    pub smaller: Option<Device>,
}

impl KnownNeed {
    /// The same need on another device: its context is its own, unless only its memory is known.
    fn on(&self, device: &Device, bytes: Bytes) -> Bytes {
        bytes.saturating_sub(self.context) + self.context_on(device)
    }

    fn context_on(&self, device: &Device) -> Bytes {
        if device.is_custom() { self.context } else { device.context }
    }

    fn decide(&self, device: &Device, margin: Bytes) -> (Decision, Option<TightBy>) {
        let (low, high) = (self.on(device, self.range.0), self.on(device, self.range.1));
        let (least, memory) = (self.on(device, self.least), device.memory);
        if least > memory {
            return match low <= memory {
                true => (Decision::Tight, Some(TightBy::MayFit)),
                false => (Decision::DoesNotFit, None),
            };
        }
        if high > memory {
            (Decision::Tight, Some(TightBy::MayFail))
        } else if high > memory - margin {
            (Decision::Tight, Some(TightBy::Margin))
        } else {
            (Decision::Fits, None)
        }
    }

    /// Decides about the job on `devices`, the smallest first, with a `margin` of memory that is to stay free; among those of
    /// the `site` a smaller one is looked for.
    ///
    /// # Panics
    /// If there is no device.
    #[must_use]
    pub fn check(&self, devices: &[&Device], margin: Margin, site: &[&Device]) -> KnownOutcome {
        let (device, others) = devices.split_first().expect("a question has a device");
        let of = |device: &Device| self.decide(device, margin.of(device.memory));
        let fits = |device: &Device| of(device).0 == Decision::Fits;
        let (mut decision, mut tight_by) = of(device);
        let mut elsewhere: Vec<(Device, bool)> = Vec::new();
        if matches!(decision, Decision::DoesNotFit | Decision::Tight) {
            elsewhere.extend(others.iter().map(|&other| (other.clone(), fits(other))));
        }
        if decision == Decision::DoesNotFit && elsewhere.iter().any(|(_, fits)| *fits) {
            (decision, tight_by) = (Decision::Tight, Some(TightBy::Placement));
        }
        let is_smaller = |other: &&&Device| other.memory < device.memory && fits(other);
        let smaller = site.iter().find(is_smaller).filter(|_| decision == Decision::Fits);
        if smaller.is_some() {
            decision = Decision::OverRequested;
        }
        let least = self.on(device, self.least);
        KnownOutcome {
            decision,
            tight_by,
            device: (*device).clone(),
            margin: margin.of(device.memory),
            need: Need { least, ample: least.max(self.reserved + self.context_on(device)) },
            range: (self.on(device, self.range.0), self.on(device, self.range.1)),
            elsewhere,
            smaller: smaller.map(|&smaller| smaller.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn need(least: u64, low: u64, high: u64) -> KnownNeed {
        KnownNeed {
            allocated: Bytes(least - 10),
            reserved: Bytes(least),
            least: Bytes(least),
            range: (Bytes(low), Bytes(high)),
            context: Bytes::ZERO,
        }
    }

    fn device(memory: u64, context: u64) -> Device {
        let name = format!("card-{memory}");
        let context = Bytes(context);
        Device { name, memory: Bytes(memory), context, ..Device::custom(Bytes(memory)) }
    }

    #[test]
    fn memory_alone_says_nothing_about_the_context() {
        let job = KnownNeed { context: Bytes(100), ..need(600, 600, 600) };
        let found = job.check(&[&Device::custom(Bytes(600))], Margin::default(), &[]);
        assert_eq!((found.decision, found.need.least), (Decision::Fits, Bytes(600)));
    }

    #[test]
    fn a_need_is_held_against_memory_margin_and_range() {
        let device = device(1000, 0);
        let margin: Margin = "10%".parse().expect("a margin");
        for (need, decision, tight_by) in [
            (need(900, 900, 900), Decision::Fits, None),
            (need(901, 901, 901), Decision::Tight, Some(TightBy::Margin)),
            (need(1000, 990, 1001), Decision::Tight, Some(TightBy::MayFail)),
            (need(1001, 1000, 1002), Decision::Tight, Some(TightBy::MayFit)),
            (need(1100, 1001, 1200), Decision::DoesNotFit, None),
        ] {
            let found = need.check(&[&device], margin, &[]);
            assert_eq!((found.decision, found.tight_by), (decision, tight_by), "{need:?}");
        }
    }

    #[test]
    fn another_device_has_its_own_context() {
        let job = KnownNeed { context: Bytes(100), ..need(600, 600, 600) };
        let (small, large) = (device(520, 20), device(5000, 0));
        let found = job.check(&[&small], Margin::default(), &[]);
        assert_eq!((found.decision, found.need.least), (Decision::Fits, Bytes(520)));
        let found = job.check(&[&large], Margin::default(), &[&small, &large]);
        assert_eq!(found.decision, Decision::OverRequested);
        assert_eq!(found.smaller.map(|device| device.memory), Some(Bytes(520)));
        let tiny = device(100, 0);
        let found = job.check(&[&tiny, &large], Margin::default(), &[]);
        assert_eq!(found.tight_by, Some(TightBy::Placement));
    }
}
