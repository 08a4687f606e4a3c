// Sizes of cuDNN's recurrent layers.
#pragma once
#include <stddef.h>

// Modes are cuDNN's: 2 is an LSTM, 3 a GRU. Types are those of cudnnDataType_t.
struct rnn { int directions, mode, biases, type, input, hidden, projection, layers, dropout; };
// Sequences of a batch, and all their steps; `packed` where they have lengths of their own.
struct sequences { size_t steps, batch; int packed; };

// Matrices of a cell: one of the input and one of the state for each gate.
int vgpu_rnn_gates(const struct rnn *rnn);
size_t vgpu_rnn_element(const struct rnn *rnn);
// Numbers that a layer gets (its direction counts as a layer), and that it has as a state.
size_t vgpu_rnn_layer_input(const struct rnn *rnn, int layer);
size_t vgpu_rnn_state(const struct rnn *rnn);
// Elements of a layer's matrices.
size_t vgpu_rnn_matrices(const struct rnn *rnn, int layer);
// Bytes.
size_t vgpu_rnn_workspace(const struct rnn *rnn, const struct sequences *x);
size_t vgpu_rnn_reserve(const struct rnn *rnn, const struct sequences *x);
