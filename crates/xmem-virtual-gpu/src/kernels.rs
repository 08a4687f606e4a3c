//! The architectures that PyTorch's kernels were compiled for.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use xmem_devices::ComputeCapability;

/// The section with the binaries of kernels, one for each source file (`__nv_fatbin` in CUDA's toolkit).
const SECTION: &str = ".nv_fatbin";
/// The first bytes of a binary and the size of its head (`native/images.c` has the form).
const MAGIC: u32 = 0xba55_ed50;
const HEAD: u64 = 16;
const IMAGE_HEAD: u64 = 32;
/// Binaries that are looked at. Some have code for one architecture alone, most for all.
const MAX_BINARIES: usize = 64;
const PTX: u16 = 1;
const CUBIN: u16 = 2;

/// What a library has kernels for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kernels {
    /// Architectures with code, such as 86.
    code: BTreeSet<u32>,
    /// Architectures with PTX, which a driver compiles for later devices.
    ptx: BTreeSet<u32>,
}

impl Kernels {
    /// Those of a library; none if it has no section of them, or one of an unknown form.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let section = xmem_elf::section(File::open(path).ok()?, SECTION).ok()??;
        let found = Self::read(BufReader::new(File::open(path).ok()?), section.start, section.end);
        found.ok().filter(|found| *found != Self::default())
    }

    fn read(mut file: impl Read + Seek, start: u64, end: u64) -> io::Result<Self> {
        let mut found = Self::default();
        let mut at = start;
        for _ in 0..MAX_BINARIES {
            if end.saturating_sub(at) < HEAD {
                break;
            }
            file.seek(SeekFrom::Start(at))?;
            let mut head = [0; HEAD as usize];
            file.read_exact(&mut head)?;
            if number(&head, 0) != MAGIC {
                break;
            }
            let mut image = at + u64::from(half(&head, 6));
            let next = image.saturating_add(long(&head, 8)).min(end);
            while next.saturating_sub(image) >= IMAGE_HEAD {
                file.seek(SeekFrom::Start(image))?;
                let mut head = [0; IMAGE_HEAD as usize];
                file.read_exact(&mut head)?;
                match half(&head, 0) {
                    PTX => found.ptx.insert(number(&head, 28)),
                    CUBIN => found.code.insert(number(&head, 28)),
                    _ => false,
                };
                let size = u64::from(number(&head, 4)).saturating_add(long(&head, 8));
                image = image.saturating_add(size.max(IMAGE_HEAD));
            }
            // They are aligned to 8 bytes.
            at = next.next_multiple_of(8);
        }
        Ok(found)
    }

    /// Whether a device can run them: code runs on the later devices of its generation, and PTX is compiled for any
    /// later device.
    pub(crate) fn run_on(&self, device: ComputeCapability) -> bool {
        let number = u32::from(device.major) * 10 + u32::from(device.minor);
        self.code.iter().any(|&code| code / 10 == u32::from(device.major) && code <= number)
            || self.ptx.iter().any(|&ptx| ptx <= number)
    }

    /// The compute capabilities that they were compiled for, in words.
    pub(crate) fn listed(&self) -> String {
        let all = self.code.union(&self.ptx);
        all.map(|code| format!("{}.{}", code / 10, code % 10)).collect::<Vec<_>>().join(", ")
    }
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from(half(bytes, at)) | u32::from(half(bytes, at + 2)) << 16
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from(number(bytes, at)) | u64::from(number(bytes, at + 4)) << 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn binary(images: &[(u16, u32)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (kind, architecture) in images {
            bytes.extend(kind.to_le_bytes());
            bytes.extend([1, 1]);
            bytes.extend(64_u32.to_le_bytes());
            bytes.extend(24_u64.to_le_bytes());
            bytes.extend([0; 12]);
            bytes.extend(architecture.to_le_bytes());
            bytes.extend([0; 32 + 24]);
        }
        let mut all = MAGIC.to_le_bytes().to_vec();
        all.extend([1, 0, 16, 0]);
        all.extend((bytes.len() as u64).to_le_bytes());
        all.extend(bytes);
        all
    }

    fn read(bytes: &[u8]) -> Kernels {
        Kernels::read(Cursor::new(bytes), 3, bytes.len() as u64).expect("read")
    }

    fn runs(kernels: &Kernels, major: u8, minor: u8) -> bool {
        kernels.run_on(ComputeCapability { major, minor })
    }

    #[test]
    fn code_runs_on_later_devices_of_its_generation_and_ptx_on_all() {
        let mut bytes = vec![0; 3];
        bytes.extend(binary(&[(CUBIN, 75), (CUBIN, 80), (CUBIN, 86)]));
        bytes.extend(vec![0; bytes.len().next_multiple_of(8) - bytes.len()]);
        bytes.extend(binary(&[(CUBIN, 100), (9, 50)]));
        let kernels = read(&bytes);
        assert_eq!(kernels.listed(), "7.5, 8.0, 8.6, 10.0");
        for (major, minor, expected) in [
            (7, 0, false),
            (7, 5, true),
            (8, 9, true),
            (9, 0, false),
            (10, 3, true),
            (12, 0, false),
        ] {
            assert_eq!(runs(&kernels, major, minor), expected, "{major}.{minor}");
        }
        let mut bytes = vec![0; 3];
        bytes.extend(binary(&[(CUBIN, 80), (PTX, 70)]));
        let kernels = read(&bytes);
        assert!(runs(&kernels, 7, 0) && runs(&kernels, 12, 0) && !runs(&kernels, 6, 1));
    }

    #[test]
    fn damaged_binaries_end_the_search() {
        let mut bytes = vec![0; 3];
        bytes.extend(binary(&[(CUBIN, 80), (CUBIN, 86)]));
        for cut in 0..bytes.len() {
            let _ = Kernels::read(Cursor::new(&bytes[..cut]), 3, bytes.len() as u64);
            let _ = Kernels::read(Cursor::new(&bytes[..cut]), 3, cut as u64);
        }
        for at in 3..bytes.len() {
            for value in [0, 0x7f, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] = value;
                let _ = Kernels::read(Cursor::new(&damaged), 3, damaged.len() as u64);
            }
        }
    }
}
