// Workspaces of convolutions with all multiprocessors of an H100, from samples of cuDNN 9.19 without a GPU.
#include "splits.c"
#include <stdio.h>

#define NONE SIZE_MAX

static const struct {
  const char *what;
  int blocks;      // of a cluster
  size_t measured; // on the GPU: traces/measured/h100-80g/operators.jsonl.zst
  size_t found;    // without it
  size_t samples[SPLIT_SAMPLES];
} cases[] = {
  {"weights of 3x3, 64 channels, 32 bits", 1, 2065047, 295107, {131, 32935, 131, 65711, 0, 98475, 98487, 131259, 0, 0, 0, 0, 0, 0, 0, 0, 0, 295107}},
  {"the same in 16 bits", 3, 1917591, 295107, {131, 32935, 131, 65711, 0, 98475, 98487, 131259, 0, 0, 0, 0, 0, 0, 0, 0, 0, 295107}},
  {"output of 5x5", 8, 7340643, 131, {131, 131, 196783, 131, 262319, 131, 131, 131, 524467, 131, 590023, 786643, 131, 786643, 524479, 131, 524479, 1048787}},
  {"weights of 5x5", 2, 4260623, 524479, {131, 131, 131, 131247, 131, 196795, 131, 262335, 131, 327863, 295111, 393427, 0, 0, 0, 0, 524479, 458939}},
  {"weights of a short sum", 1, 1573071, 131, {131, 131, 131, 131, 131, 131, 131, 131, 131, 524467, 131239, 131, 131239, 524467, 131, 131, 1048771, 131}},
  {"weights with copies of the operands", 1, 97714855, 90636499, {89456787, 89587895, 89456787, 89718975, 89456656, 89850043, 89850055, 89981131, 89456656, 89456656, 89456656, 89456656, 89456656, 89456656, 89456656, 89456656, 89456656, 90636499}},
  {"an input that is not split", 4, 89456656, 89456787, {89456787, 89456787, 89456787, 89456787, 89456787, 90243275, 89456787, 90505411, 89456787, 89456787, 89981119, 89456787, 91029707, 91029707, 89456787, 89456787, 89981119, 91554003}},
  // No workspace follows from the number of multiprocessors, or the engine cannot be asked.
  {"a kernel that splits nothing", 5, 131, 131, {131, 131, 131, 131, 131, 131, 131, 131, 131, 131, 131, 131, 131, 131, 131, 131, 131, 131}},
  {"an engine that refuses", 1, 4096, 4096, {NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE}},
};

int main(void) {
  int failed = 0;
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    size_t size = vgpu_split_size(cases[n].samples, cases[n].blocks, 132, cases[n].found);
    size_t error = size > cases[n].measured ? size - cases[n].measured : cases[n].measured - size;
    // What waits for the parts takes some bytes more or less.
    if (error > 256) {
      fprintf(stderr, "%s: %zu, measured %zu\n", cases[n].what, size, cases[n].measured);
      failed = 1;
    }
  }
  return failed;
}
