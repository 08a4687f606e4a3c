//! `allocator_settings`.

use super::decoder::Decoder;
use super::fields::{Field, Within, shown};
use crate::error::SnapshotError;
use crate::pickle::Value;
use crate::settings::{AllocatorSettings, Setting};
use xmem_types::{Bytes, printable};

impl<'t> Decoder<'t, '_, '_> {
    /// The dict of settings.
    pub(super) fn settings(
        &mut self,
        value: Value,
        at: usize,
    ) -> Result<AllocatorSettings, SnapshotError> {
        self.settings_fields(value, at).within(|| "allocator_settings".to_owned())
    }

    fn settings_fields(
        &mut self,
        value: Value,
        at: usize,
    ) -> Result<AllocatorSettings, SnapshotError> {
        let mut settings = AllocatorSettings::default();
        for field in self.fields(value, at)? {
            match field.key {
                b"PYTORCH_CUDA_ALLOC_CONF" | b"PYTORCH_ALLOC_CONF" => {
                    settings.text = Some(self.owned_text(self.text(field)?, field.at)?);
                }
                // "Unlimited" is the largest size_t, which the writer's int64 shows as -1.
                b"max_split_size" => {
                    let unlimited = self.tree.integer(field.value).is_some_and(|size| size < 0);
                    let size = if unlimited { None } else { Some(self.bytes(field)?) };
                    settings.max_split_size = size.filter(|size| size.get() < u64::MAX);
                }
                b"garbage_collection_threshold" => {
                    settings.garbage_collection_threshold = self
                        .tree
                        .float(field.value)
                        .or_else(|| self.tree.integer(field.value).map(|n| n as f64))
                        .ok_or_else(|| field.misfit("a number"))?;
                }
                b"expandable_segments" => settings.expandable_segments = self.flag(field)?,
                b"roundup_power2_divisions" => self.divisions(field, &mut settings)?,
                _ => {
                    let name = self.owned_text(field.key, field.at)?;
                    if let Some(value) = self.setting(field)? {
                        settings.other.insert(name, value);
                    }
                }
            }
        }
        Ok(settings)
    }

    /// A dict from a size in MiB, as text, to the number of divisions.
    fn divisions(
        &mut self,
        field: Field<'t>,
        settings: &mut AllocatorSettings,
    ) -> Result<(), SnapshotError> {
        let place = || "roundup_power2_divisions".to_owned();
        for entry in self.fields(field.value, field.at).within(place)? {
            let size = str::from_utf8(entry.key).ok().and_then(|text| text.parse::<u32>().ok());
            let Some(size) = size else {
                return Err(entry.error("is not a size in MiB".to_owned())).within(place);
            };
            self.budget.take::<[u64; 4]>(1, entry.at)?;
            let divisions = self.index(entry).within(place)?;
            settings.roundup_power2_divisions.insert(Bytes::mib(u64::from(size)), divisions);
        }
        Ok(())
    }

    fn setting(&mut self, field: Field<'t>) -> Result<Option<Setting>, SnapshotError> {
        let setting = match field.value {
            Value::None => Setting::None,
            Value::Bool(flag) => Setting::Bool(flag),
            Value::Text(id) => Setting::Text(self.owned_text(self.tree.text(id), field.at)?),
            other => match (self.tree.integer(other), self.tree.float(other)) {
                (Some(number), _) => Setting::Int(number),
                (None, Some(number)) => Setting::Float(number),
                (None, None) => {
                    self.odd("unknown-setting", field.at, || {
                        format!(
                            "the setting `{}` is {}; it is ignored",
                            shown(field.key),
                            other.kind()
                        )
                    });
                    return Ok(None);
                }
            },
        };
        Ok(Some(setting))
    }

    fn owned_text(&mut self, text: &[u8], at: usize) -> Result<String, SnapshotError> {
        self.budget.take::<u8>(text.len() + size_of::<(String, Setting)>(), at)?;
        Ok(printable(&String::from_utf8_lossy(text)).into_owned())
    }
}
