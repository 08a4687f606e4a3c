// Sizes of cuDNN's recurrent layers. cuDNN documents no formula: as measured on an H100 with cuDNN 9.19 (xmem-orchestrator,
// cudnn_recurrent/sizes.rs, has the same numbers, and what they were read from).
#include "recurrent.h"

int vgpu_rnn_gates(const struct rnn *rnn) { return rnn->mode == 2 ? 4 : rnn->mode == 3 ? 3 : 1; }
size_t vgpu_rnn_element(const struct rnn *rnn) { return rnn->type == 1 ? 8 : rnn->type == 2 || rnn->type == 9 ? 2 : 4; }
size_t vgpu_rnn_layer_input(const struct rnn *rnn, int layer) {
  size_t output = (size_t)(rnn->mode == 2 && rnn->projection > 0 ? rnn->projection : rnn->hidden);
  return layer < rnn->directions ? (size_t)rnn->input : output * (size_t)rnn->directions;
}
size_t vgpu_rnn_state(const struct rnn *rnn) { return (size_t)(rnn->mode == 2 && rnn->projection > 0 ? rnn->projection : rnn->hidden); }
size_t vgpu_rnn_matrices(const struct rnn *rnn, int layer) {
  size_t one = (size_t)vgpu_rnn_gates(rnn) * (size_t)rnn->hidden * (vgpu_rnn_layer_input(rnn, layer) + vgpu_rnn_state(rnn));
  if (vgpu_rnn_state(rnn) != (size_t)rnn->hidden) one += vgpu_rnn_state(rnn) * (size_t)rnn->hidden;
  return one;
}

// Numbers for each step and hidden unit, input, and the larger number of the two; then for each sequence and hidden unit.
struct terms { size_t hidden, inputs, widest, states; };
static struct terms terms(const struct rnn *rnn, const struct sequences *x) {
  size_t layers = (size_t)rnn->layers, deep = layers > 1;
  int one = rnn->directions == 1, lstm = rnn->mode == 2, gru = rnn->mode == 3, wide = rnn->input > rnn->hidden;
  if (x->packed && one) return lstm ? (struct terms){4, 0, 0, 6 * layers} : gru ? (struct terms){3, 0, 0, 3 * layers} : (struct terms){2, 0, 0, layers};
  if (x->packed) return lstm ? (struct terms){12, 0, 0, 16 * layers} : gru ? (struct terms){10, 0, 0, 10 * layers} : (struct terms){8, 0, 0, 6 * layers};
  if (vgpu_rnn_gates(rnn) * rnn->hidden < 512) {
    if (lstm && one) return (struct terms){wide ? 23 + deep : 21, 1, 0, 8 * layers};
    if (lstm) return (struct terms){wide ? 38 + 2 * deep : 30, 1, 0, 18 * layers};
    if (one) return (struct terms){(gru ? 17 : 12) + deep, 2, 1, 6 * layers};
    return (struct terms){(gru ? 20 : 15) + 2 * deep, 2, 4, 14 * layers};
  }
  if (lstm && one) return (struct terms){5 + (size_t)rnn->dropout, 1, 0, 10 * layers + (rnn->input == rnn->hidden && layers % 2 ? layers : 0)};
  if (lstm) return (struct terms){14, 1, 0, 24 * layers};
  // Of several layers some steps are done at once; a GRU with few inputs takes them all.
  size_t steps = x->batch ? x->steps / x->batch : 0, most = x->batch == 1 ? 96 : 4 * layers + (x->batch < 20 ? 16 : 8);
  size_t at_once = steps < most ? steps : most, hidden = (size_t)rnn->hidden;
  if (one && deep && gru && 2 * (size_t)rnn->input < hidden && steps * (hidden - (size_t)rnn->input) > at_once * hidden) return (struct terms){4, 1, 0, 5 * layers};
  if (one && deep) return (struct terms){3, 2, 0, 5 * layers + at_once};
  if (one) return (struct terms){4, 2, 0, 5};
  return gru ? (struct terms){12, 1 + deep, 0, 14 * layers} : (struct terms){10 + 2 * deep, 2, 0, 14 * layers};
}
static size_t all_matrices(const struct rnn *rnn) {
  size_t sum = 0;
  for (int layer = 0; layer < rnn->layers * rnn->directions; layer++) sum += vgpu_rnn_matrices(rnn, layer);
  return sum;
}

size_t vgpu_rnn_workspace(const struct rnn *rnn, const struct sequences *x) {
  size_t hidden = (size_t)rnn->hidden, input = (size_t)rnn->input, widest = input > hidden ? input : hidden;
  struct terms t = terms(rnn, x);
  size_t of_steps = x->steps * (hidden * t.hidden + input * t.inputs + widest * t.widest);
  return (of_steps + x->batch * hidden * t.states + all_matrices(rnn)) * vgpu_rnn_element(rnn)
    + ((size_t)8 << 20) * (size_t)rnn->layers * (size_t)rnn->directions + (x->packed ? 0 : (8 * x->batch + 31) / 32 * 32) + 256;
}

size_t vgpu_rnn_reserve(const struct rnn *rnn, const struct sequences *x) {
  size_t hidden = (size_t)rnn->hidden, directions = (size_t)rnn->directions, layers = (size_t)rnn->layers;
  size_t projected = vgpu_rnn_state(rnn) == hidden ? 0 : hidden + vgpu_rnn_state(rnn);
  size_t kept = rnn->mode == 2 ? 5 * hidden + projected : rnn->mode == 3 ? 6 * hidden : hidden;
  size_t all = x->steps * directions * (kept * layers + hidden * (layers - 1)) * vgpu_rnn_element(rnn);
  size_t mask = rnn->dropout ? x->steps * hidden * directions * directions * (layers - 1) / 8 : 0;
  return (all + 31) / 32 * 32 + 256 + mask;
}
