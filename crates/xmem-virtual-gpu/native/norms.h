// Workspaces of cuDNN's batch norm and CTC loss by their shapes.
#pragma once
#include <stddef.h>

// Batch norm of tensors with channels last; `rows` is their number of elements by that of channels.
size_t vgpu_batch_norm_forward(size_t rows, size_t channels, int is_half);
size_t vgpu_batch_norm_backward(size_t rows, size_t channels);
// CTC loss of `batch` sequences of `steps` probabilities of `classes`.
size_t vgpu_ctc_loss(size_t steps, size_t batch, size_t classes);
