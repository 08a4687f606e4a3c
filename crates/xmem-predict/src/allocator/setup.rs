//! The allocator that is simulated in the end, and the origin of each decision.

use super::environment::NO_CACHING;
use super::{AllocatorError, AllocatorKind, AllocatorSettings, JobEnvironment, notes};
use xmem_devices::Device;
use xmem_simulator::{
    AddressOrder, AllocConf, AllocatorChoice, AllocatorConfig, Backend, BfcConfig, MallocAsync,
    MemoryLimit, newest_release, oldest_release, switches_caching_off,
};
use xmem_types::{Diagnostics, Severity, TorchVersion};

/// The allocator that is simulated.
#[derive(Clone, Debug, PartialEq)]
pub struct AllocatorSetup {
    /// The allocator.
    pub kind: AllocatorKind,
    /// The same with all its options.
    pub choice: AllocatorChoice,
    /// The PyTorch release whose allocator it is.
    pub release: TorchVersion,
    /// Who decided the release.
    pub release_from: Origin,
    /// PyTorch's options as written; empty if there are none.
    pub conf: String,
    /// Who gave the options.
    pub conf_from: Origin,
    /// The part of the device's memory that the process may take.
    pub memory_fraction: Option<f64>,
    /// The order in which new segments get their addresses.
    pub address_order: AddressOrder,
    /// Notes on the choice.
    pub notes: Diagnostics,
}

impl AllocatorSetup {
    /// Returns whether PyTorch's caching allocator has `expandable_segments`.
    #[must_use]
    pub fn has_expandable_segments(&self) -> bool {
        matches!(&self.choice, AllocatorChoice::Caching(config) if config.expandable_segments)
    }
}

/// Who decided something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// The caller.
    Given,
    /// The input, which says what the job ran with.
    Input,
    /// PyTorch's default, or the release that is assumed.
    #[default]
    Default,
}

impl AllocatorSettings {
    /// Decides what is simulated for a job on `device` about whose environment the input says
    /// `recorded`. The caller's word comes first, then the input's, then PyTorch's defaults.
    ///
    /// # Errors
    /// If the release is not known, or would not accept the options, or the settings contradict
    /// each other.
    pub fn resolve(
        &self,
        environment: &JobEnvironment,
        device: &Device,
    ) -> Result<AllocatorSetup, AllocatorError> {
        let mut notes = Diagnostics::default();
        let (release, release_from) = self.decide_release(environment, &mut notes)?;
        let (text, conf_from) = match (&self.conf, environment.conf(release)) {
            (Some(given), _) => (given.trim(), Origin::Given),
            (None, Some(stated)) => (stated.trim(), Origin::Input),
            (None, None) => ("", Origin::Default),
        };
        let mut conf = AllocConf::parse(text, release).map_err(|source| AllocatorError::Conf {
            conf: text.to_owned(),
            from: conf_from,
            release,
            release_from,
            source,
        })?;
        let kind = self.decide_kind(environment, &conf, text, conf_from, release)?;
        if let Some(fraction) = self.memory_fraction.or(environment.memory_fraction) {
            if !(0.0..=1.0).contains(&fraction) {
                return Err(AllocatorError::Fraction { fraction });
            }
            conf.config.memory_fraction = Some(fraction);
        }
        if kind.is_tensorflow() && conf_from == Origin::Given && !text.is_empty() {
            return Err(AllocatorError::ConfForTensorFlow { conf: text.to_owned() });
        }
        if self.conf.is_none() {
            notes::about_unread_variables(environment, release, &mut notes);
        }
        notes::about_options(&conf, kind, &mut notes);
        notes::about_kind(kind, &mut notes);
        Ok(AllocatorSetup {
            kind,
            choice: choice(kind, &conf.config, device),
            release,
            release_from,
            conf: text.to_owned(),
            conf_from,
            memory_fraction: conf.config.memory_fraction,
            address_order: self.address_order.unwrap_or_default(),
            notes,
        })
    }

    /// Like [`resolve`](AllocatorSettings::resolve), but an input's options that cannot be used
    /// are no error: PyTorch's defaults take their place, and a note says so.
    ///
    /// # Errors
    /// As [`resolve`](AllocatorSettings::resolve), apart from options of the input.
    pub fn resolve_leniently(
        &self,
        environment: &JobEnvironment,
        device: &Device,
    ) -> Result<AllocatorSetup, AllocatorError> {
        match self.resolve(environment, device) {
            Err(AllocatorError::Conf { from: Origin::Input, release, source, .. }) => {
                let mut setup = self.resolve(&environment.without_conf(), device)?;
                setup.notes.report("allocator-options-unusable", Severity::Warning, None, || {
                    format!(
                        "the trace's allocator options cannot be used with PyTorch {release} and are \
                         ignored: {source}"
                    )
                });
                Ok(setup)
            }
            other => other,
        }
    }

    /// Checks the settings as far as possible before any input is read. If no release is given, it
    /// refuses options that every known release refuses.
    ///
    /// # Errors
    /// As [`resolve`](AllocatorSettings::resolve).
    pub fn check(&self, device: &Device) -> Result<(), AllocatorError> {
        let of = |release| {
            let settings = Self { release: Some(release), ..self.clone() };
            settings.resolve(&JobEnvironment::default(), device).map(drop)
        };
        match self.release {
            Some(release) => of(release),
            None if known_releases().any(|release| of(release).is_ok()) => Ok(()),
            None => self.resolve(&JobEnvironment::default(), device).map(drop),
        }
    }

    fn decide_release(
        &self,
        environment: &JobEnvironment,
        notes: &mut Diagnostics,
    ) -> Result<(TorchVersion, Origin), AllocatorError> {
        let (release, from) = match (self.release, &environment.torch) {
            (Some(release), _) => (release, Origin::Given),
            (None, Some(text)) => match text.parse() {
                Ok(release) => (release, Origin::Input),
                Err(_) => {
                    notes.report("torch-version-unreadable", Severity::Warning, None, || {
                        let assumed = TorchVersion::default();
                        format!("`{text}` is not a PyTorch release; {assumed} is assumed")
                    });
                    (TorchVersion::default(), Origin::Default)
                }
            },
            (None, None) => (TorchVersion::default(), Origin::Default),
        };
        let (oldest, newest) = (oldest_release(), newest_release());
        if release < oldest {
            if from == Origin::Given {
                return Err(AllocatorError::TooOld { release });
            }
            notes.report("torch-version-too-old", Severity::Warning, None, || {
                format!(
                    "the allocator of PyTorch {release} is not simulated; that of {oldest} is used \
                     instead"
                )
            });
            return Ok((oldest, from));
        }
        if release > newest {
            notes.report("torch-version-too-new", Severity::Warning, None, || {
                format!(
                    "PyTorch {release} is newer than the newest known release; the allocator of \
                     {newest} is used"
                )
            });
        }
        Ok((release, from))
    }

    fn decide_kind(
        &self,
        environment: &JobEnvironment,
        conf: &AllocConf,
        text: &str,
        conf_from: Origin,
        release: TorchVersion,
    ) -> Result<AllocatorKind, AllocatorError> {
        let uncached = environment
            .variable(NO_CACHING)
            .is_some_and(|value| switches_caching_off(value, release));
        match (self.kind, conf.backend) {
            (Some(kind), Backend::CudaMallocAsync)
                if kind != AllocatorKind::MallocAsync && conf_from == Origin::Given =>
            {
                Err(AllocatorError::Contradiction { kind, conf: text.to_owned() })
            }
            (Some(kind), _) => Ok(kind),
            // The variable is the native backend's own (`NativeCachingAllocator::allocate`).
            (None, Backend::CudaMallocAsync) => Ok(AllocatorKind::MallocAsync),
            (None, Backend::Native) if uncached => Ok(AllocatorKind::Uncached),
            (None, Backend::Native) => Ok(AllocatorKind::Native),
        }
    }
}

fn choice(kind: AllocatorKind, config: &AllocatorConfig, device: &Device) -> AllocatorChoice {
    let bfc = |allow_growth| {
        let compute_capability = u32::from(device.compute_capability.major);
        let limit = match config.memory_fraction {
            Some(fraction) => MemoryLimit::Fraction(fraction),
            None => MemoryLimit::FreeLessReserve { compute_capability },
        };
        AllocatorChoice::Bfc(BfcConfig { limit, allow_growth, ..BfcConfig::default() })
    };
    match kind {
        AllocatorKind::Native => AllocatorChoice::Caching(config.clone()),
        AllocatorKind::Uncached => AllocatorChoice::Uncached,
        AllocatorKind::MallocAsync => {
            AllocatorChoice::MallocAsync(MallocAsync { memory_fraction: config.memory_fraction })
        }
        AllocatorKind::Bfc => bfc(false),
        AllocatorKind::BfcGrowth => bfc(true),
    }
}

/// Every release whose allocator is known, from the newest on.
fn known_releases() -> impl Iterator<Item = TorchVersion> {
    let newest = newest_release();
    (0..=newest.minor)
        .rev()
        .map(move |minor| TorchVersion::new(newest.major, minor))
        .chain([oldest_release()])
}
