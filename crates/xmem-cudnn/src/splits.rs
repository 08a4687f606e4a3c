//! Convolutions of compute capability 9 whose kernels split sums among multiprocessors, with a workspace for the parts.
//!
//! Without a GPU, cuDNN takes it to have 18 multiprocessors, whatever its description says, and names the workspace for
//! those. An engine can be restricted to fewer of them (`CUDNN_ATTR_ENGINE_SM_COUNT_TARGET`), which shows how the
//! workspace follows from their number, and hence how large it is with all.
//!
//! As the samples show, and the allocations of an H100 with cuDNN 9.19 (`traces/measured/h100-80g`): the output has so many
//! tiles; the GPU runs a wave of clusters at once, each of so many tiles. Tiles that fill no wave are split among the
//! clusters of one, if there are two for each at least; each part then needs room for a tile of 32-bit sums, and 4 bytes
//! to wait. The virtual GPU has the same rule (`native/splits.c` of xmem-virtual-gpu).

use xmem_types::Bytes;

/// Multiprocessors for which cuDNN names workspaces: the most that it takes a GPU of compute capability 9 to have.
pub(crate) const SAMPLES: usize = 18;

/// Multiprocessors of the GPU whose clusters were measured.
const MEASURED_SMS: u64 = 132;

/// Clusters of so many blocks that an H100 runs at once: not all of its groups of multiprocessors have a multiple of them.
/// Those of 3, 4, 5 and 8 blocks follow from measured workspaces.
const MEASURED_CLUSTERS: [u64; 9] = [0, 132, 66, 40, 30, 22, 20, 15, 15];

/// What a plan needs to wait for its parts.
const WAIT: u64 = 131;

/// Tiles that are tried.
const MAX_TILES: u64 = 4096;

fn clusters(blocks: u64, sms: u64) -> u64 {
    match MEASURED_CLUSTERS.get(blocks as usize) {
        Some(measured) => measured * sms / MEASURED_SMS,
        None => sms / blocks.max(1),
    }
}

/// Parts of `tiles` among a wave of so many, if no tile can have more than `most` of them.
fn parts(tiles: u64, wave: u64, most: u64) -> u64 {
    let rest = if tiles < wave { tiles } else { tiles % wave };
    if rest == 0 {
        return 0;
    }
    let each = (wave / rest).min(most);
    if each >= 2 { rest * each } else { 0 }
}

/// An explanation of the samples.
#[derive(Clone, Copy, Default)]
struct Guess {
    tile: u64,
    tiles: u64,
    /// Parts that a tile can have.
    most: u64,
    score: u64,
}

/// How well so many tiles of this size explain the samples: two for a sample that they explain, one if parts were limited.
fn rate(samples: &[Option<u64>; SAMPLES], least: u64, tile: u64, tiles: u64) -> Guess {
    let mut guess = Guess { tile, tiles, most: 1, score: 0 };
    let mut limited = false;
    for (sms, &sample) in (1..).zip(samples) {
        let Some(more) = sample.map(|size| size - least) else { continue };
        if more % tile >= 1024 {
            return Guess::default();
        }
        let (found, expected) = (more / tile, parts(tiles, sms, sms));
        let rest = if tiles < sms { tiles } else { tiles % sms };
        if found == expected {
            guess.score += 2;
        } else if found > 0 && expected > found && found % rest == 0 {
            guess.score += 1;
            limited = true;
        }
        if let Some(each) = found.checked_div(rest) {
            guess.most = guess.most.max(each);
        }
    }
    if !limited {
        guess.most = u64::MAX;
    }
    guess
}

/// The workspace on a GPU with `sms` multiprocessors, where cuDNN says `found` without one. `samples` are those with one
/// multiprocessor and more, and one block a cluster; `blocks` are those of a cluster of the plan.
pub(crate) fn size(samples: &[Option<u64>; SAMPLES], blocks: u64, sms: u64, found: Bytes) -> Bytes {
    const SMALL: u64 = 4096;
    let known = || samples.iter().flatten().copied();
    let (Some(least), Some(largest)) = (known().min(), known().max()) else { return found };
    if largest - least < SMALL {
        return found;
    }
    let mut best = Guess::default();
    for tile in (12..=18).map(|bits| 1 << bits) {
        for tiles in 1..=MAX_TILES {
            let guess = rate(samples, least, tile, tiles);
            if guess.score > best.score {
                best = guess;
            }
        }
    }
    // At least three of four samples: else the kernel follows another rule.
    let wave = clusters(blocks, sms);
    if best.score * 2 < SAMPLES as u64 * 3 || wave == 0 {
        return found;
    }
    let all = best.tiles.div_ceil(blocks);
    let split = parts(all, wave, best.most) * blocks;
    // The least waits if there is more than one wave.
    let whole = if least % 16 == 0 { least } else { least.saturating_sub(WAIT) };
    Bytes(match split {
        0 if all <= wave => whole,
        0 => whole + WAIT,
        _ => whole + WAIT + split * (best.tile + 4),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: u64 = u64::MAX;

    /// Blocks of a cluster, the workspace measured on an H100, that without a GPU, and the samples of cuDNN 9.19.
    const CASES: [(&str, u64, u64, u64, [u64; SAMPLES]); 5] = [
        (
            "weights of 3x3, 64 channels, 16 bits",
            3,
            1_917_591,
            295_107,
            [
                131, 32_935, 131, 65_711, 0, 98_475, 98_487, 131_259, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                295_107,
            ],
        ),
        (
            "output of 5x5",
            8,
            7_340_643,
            131,
            [
                131, 131, 196_783, 131, 262_319, 131, 131, 131, 524_467, 131, 590_023, 786_643,
                131, 786_643, 524_479, 131, 524_479, 1_048_787,
            ],
        ),
        (
            "weights of a short sum",
            1,
            1_573_071,
            131,
            [
                131, 131, 131, 131, 131, 131, 131, 131, 131, 524_467, 131_239, 131, 131_239,
                524_467, 131, 131, 1_048_771, 131,
            ],
        ),
        ("a kernel that splits nothing", 5, 131, 131, [131; SAMPLES]),
        ("an engine that refuses", 1, 4096, 4096, [NONE; SAMPLES]),
    ];

    #[test]
    fn workspaces_are_those_measured_on_an_h100() {
        for (what, blocks, measured, found, samples) in CASES {
            let samples = samples.map(|size| (size != NONE).then_some(size));
            let size = size(&samples, blocks, MEASURED_SMS, Bytes(found)).get();
            // What waits for the parts takes some bytes more or less.
            assert!(size.abs_diff(measured) <= 256, "{what}: {size}, measured {measured}");
        }
    }
}
