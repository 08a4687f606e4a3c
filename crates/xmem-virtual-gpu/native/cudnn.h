// The functions of the real cuDNN that the stand-in calls.
#ifndef CUDNN_H
#define CUDNN_H
#include <stddef.h>
#include <stdint.h>

struct cudnn {
  int is_usable;
  size_t version;
  int (*create)(int, void **);
  int (*destroy)(void *);
  int (*set)(void *, int, int, int64_t, const void *);
  int (*get)(void *, int, int, int64_t, int64_t *, void *);
  int (*finalize)(void *);
  void (*last_error)(char *, size_t);
  void *device; // the description of the GPU
};

// The workspace of a convolution's plan on a GPU with `sms` multiprocessors, where cuDNN says `found` without a GPU.
size_t vgpu_split_workspace(const struct cudnn *library, void *plan, int sms, size_t found);

// Multiprocessors for which cuDNN tells workspaces without a GPU, the most that it takes a GPU of compute capability 9 to have.
enum { SPLIT_SAMPLES = 18 };
// The same from samples: `samples[n]` is the workspace with n + 1 multiprocessors and one block a cluster, or SIZE_MAX.
size_t vgpu_split_size(const size_t *samples, int blocks_of_cluster, int sms, size_t found);

#endif
