//! A script while it runs.

use crate::settings::{bfc_option, bytes, device_setting, number, pytorch_option};
use std::collections::BTreeMap;
use xmem_simulator::{
    AllocConf, AllocFailure, AllocatorChoice, AllocatorConfig, BfcConfig, BlockHandle,
    ChosenAllocator, Device, DeviceConfig, Event, Framework, Operation, Outcome, PoolOptions,
    PoolService, PrivatePoolId, Session, Splitting,
};
use xmem_types::{BlockId, Request, RequestKind, StreamId, TorchVersion};

#[derive(Default)]
pub(crate) struct Case {
    pub(crate) choice: AllocatorChoice,
    release: TorchVersion,
    pub(crate) device: DeviceConfig,
    /// Made at the first step, when device and options are known.
    pub(crate) session: Option<Session<ChosenAllocator<Vec<Event>>>>,
    pub(crate) handles: BTreeMap<String, Option<BlockHandle>>,
    pub(crate) numbers: BTreeMap<String, BlockId>,
    pub(crate) requests: Vec<Request>,
    /// The number of events that were shown already.
    pub(crate) shown: usize,
}

impl Case {
    /// Carries out one line, and tells what came of it.
    pub(crate) fn step(&mut self, words: &[&str]) -> Result<Vec<String>, String> {
        if self.session.is_none() && self.set(words)? {
            return Ok(Vec::new());
        }
        match *words {
            ["alloc", name, size] => self.alloc(name, size, StreamId(0)),
            ["alloc", name, size, on] => self.alloc(name, size, stream(on)?),
            ["free", ref names @ ..] => self.free(names),
            ["record", name, on] => {
                let (block, stream) = (self.block(name)?, stream(on)?);
                self.operate(Operation::RecordStream { block, stream })
            }
            ["synchronize"] => self.operate(Operation::Synchronize),
            ["release"] => self.operate(Operation::EmptyCache),
            ["fraction", value] => self.operate(Operation::MemoryFraction(number(value)?)),
            ["reset_peaks"] => {
                let before = self.peaks();
                self.operate(Operation::ResetPeaks)?;
                Ok([before, self.peaks()].concat())
            }
            ["capacity", size] => self.operate(Operation::Capacity(bytes(size)?)),
            ["enter", id, ref keywords @ ..] => {
                let options = pool_options(keywords)?;
                self.operate(Operation::EnterPool { pool: pool(id)?, options })
            }
            ["capture", id, on] => {
                self.operate(Operation::BeginCapture { pool: pool(id)?, stream: stream(on)? })
            }
            ["leave", id] => self.operate(Operation::LeavePool(pool(id)?)),
            ["drop", id] => self.operate(Operation::ReleasePool(pool(id)?)),
            ["replay"] => Ok(self.replay()),
            _ => Err("not understood".to_owned()),
        }
    }

    /// Settings come before the first step. Whether this was one.
    fn set(&mut self, words: &[&str]) -> Result<bool, String> {
        match *words {
            ["allocator", "tf-bfc"] => self.choice = AllocatorChoice::Bfc(BfcConfig::default()),
            ["allocator", "uncached"] => self.choice = AllocatorChoice::Uncached,
            ["torch", release] => {
                self.release = release.parse()?;
                self.choice = AllocatorChoice::Caching(AllocatorConfig::of(self.release));
            }
            ["device", ref settings @ ..] => {
                for setting in settings {
                    device_setting(&mut self.device, setting)?;
                }
            }
            ["conf", text] => {
                let conf = AllocConf::parse(text, self.release).map_err(|e| e.to_string())?;
                self.choice = AllocatorChoice::from_conf(&conf);
            }
            ["option", setting] => {
                let (key, value) = setting.split_once('=').ok_or("key=value")?;
                match &mut self.choice {
                    AllocatorChoice::Caching(config) => pytorch_option(config, key, value)?,
                    AllocatorChoice::Bfc(config) => bfc_option(config, key, value)?,
                    _ => return Err("this allocator has no options".to_owned()),
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    pub(crate) fn session(&mut self) -> &mut Session<ChosenAllocator<Vec<Event>>> {
        self.session.get_or_insert_with(|| {
            Session::new(self.choice.over(Device::new(&self.device), Vec::new()))
        })
    }

    fn operate(&mut self, operation: Operation) -> Result<Vec<String>, String> {
        self.session().apply(&operation).map_err(|misuse| misuse.to_string())?;
        Ok(self.state())
    }

    fn block(&self, name: &str) -> Result<BlockId, String> {
        self.numbers.get(name).copied().ok_or(format!("{name} was not allocated"))
    }

    fn alloc(&mut self, name: &str, size: &str, stream: StreamId) -> Result<Vec<String>, String> {
        let size = bytes(size)?;
        let block = BlockId::new(self.numbers.len());
        self.numbers.insert(name.to_owned(), block);
        self.requests.push(Request { block, kind: RequestKind::Alloc { size, stream } });
        let operation = Operation::Alloc { block, size, stream };
        let done = self.session().apply(&operation).map_err(|misuse| misuse.to_string())?;
        let handle = match done {
            Outcome::Failed(AllocFailure::TooLarge) => return Ok(vec!["refused".to_owned()]),
            Outcome::Block(handle) => Some(handle),
            Outcome::Nothing | Outcome::Failed(AllocFailure::OutOfMemory(_)) => None,
        };
        self.handles.insert(name.to_owned(), handle);
        Ok(self.state())
    }

    fn free(&mut self, names: &[&str]) -> Result<Vec<String>, String> {
        for name in names {
            let block = self.block(name)?;
            self.requests.push(Request { block, kind: RequestKind::Free });
            self.handles.remove(*name);
            let freed = self.session().apply(&Operation::Free(block));
            freed.map_err(|misuse| misuse.to_string())?;
        }
        Ok(self.state())
    }
}

fn stream(word: &str) -> Result<StreamId, String> {
    let number = word.strip_prefix("stream=").and_then(|n| n.parse().ok());
    number.map(StreamId).ok_or_else(|| "stream=N".to_owned())
}

fn pool(word: &str) -> Result<PrivatePoolId, String> {
    word.parse().map(PrivatePoolId).map_err(|_| format!("{word} is not a pool's number"))
}

fn pool_options(keywords: &[&str]) -> Result<PoolOptions, String> {
    let mut options = PoolOptions::default();
    for keyword in keywords {
        match *keyword {
            "no_split" => options.splitting = Splitting::Never,
            "use_on_oom" => options.service = PoolService::LastResort,
            other => return Err(format!("unknown keyword {other}")),
        }
    }
    Ok(options)
}
