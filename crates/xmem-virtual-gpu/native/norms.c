// Workspaces of cuDNN's batch norm with channels last and of its CTC loss: what PyTorch allocated for them on an H100 with cuDNN
// 9.19 (traces/measured/h100-80g/libraries.jsonl.zst). cuDNN documents no sizes. All 1,172 calls of batch norm and 626 of CTC are
// exact.
//
// Neither follows from the number of multiprocessors in what was measured; no GPU with another one was.
#include "norms.h"
#include "numbers.h"

// Groups of 64 channels; with three there is one of four. Up to four were measured with three.
enum { GROUP = 64, FEW = 4 };

// For each group and block of rows two sums a channel and a flag.
size_t vgpu_batch_norm_forward(size_t rows, size_t channels, int is_half) {
  if (channels <= FEW) return blocks_of(rows, is_half ? 640 : 256) * (8 * FEW + 4) + 1076;
  size_t groups = blocks_of(channels, GROUP);
  return groups * blocks_of(rows, is_half ? 160 : 64) * (8 * GROUP + 4) + 1072 + 4 * groups;
}

// The same without flags; the rest of the rows has no block.
size_t vgpu_batch_norm_backward(size_t rows, size_t channels) {
  if (channels <= FEW) return (1 + rows / 384) * 8 * FEW + 1060;
  size_t groups = blocks_of(channels, GROUP);
  return groups * (1 + rows / 96) * 8 * GROUP + 1056 + 4 * groups;
}

// Labels of 255 letters at most, with blanks between and around them: alpha and beta of each step and place, and the
// probabilities of the classes. The labels' own lengths do not matter.
size_t vgpu_ctc_loss(size_t steps, size_t batch, size_t classes) {
  enum { PLACES = 2 * 255 + 1 };
  return batch * 4 * (steps * (classes + 2 * PLACES) + PLACES + 2);
}
