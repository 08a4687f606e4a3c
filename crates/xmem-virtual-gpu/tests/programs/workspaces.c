// The sizes of workspaces that the stand-ins give: for each line of the input, a function, a type and numbers, one line.
#include "solver.c"
#include "fft.c"
#include "norms.c"
#include "recurrent.c"
#include <stdio.h>
#include <string.h>

static size_t of_solver(const char *name, enum solver_type type, const size_t *n) {
  if (!strcmp(name, "potrf")) return vgpu_solver_potrf(type, n[0]);
  if (!strcmp(name, "sytrf")) return vgpu_solver_sytrf(type, n[0]);
  if (!strcmp(name, "getrf")) return vgpu_solver_getrf(type, n[0], n[1]);
  if (!strcmp(name, "geqrf")) return vgpu_solver_geqrf(n[1]);
  if (!strcmp(name, "orgqr")) return vgpu_solver_orgqr(n[0], n[1], n[2]);
  if (!strcmp(name, "ormqr")) return vgpu_solver_ormqr(n[0], n[1], n[2]);
  if (!strcmp(name, "syevd")) return vgpu_solver_syevd(n[0]);
  if (!strcmp(name, "syevj")) return vgpu_solver_syevj(n[0]);
  if (!strcmp(name, "syevjBatched")) return vgpu_solver_syevj_batched(n[0], n[2]);
  if (!strcmp(name, "gesvd")) return vgpu_solver_gesvd(n[0], n[1]);
  if (!strcmp(name, "gesvdj")) return vgpu_solver_gesvdj(n[0], n[1], (int)n[3]);
  if (!strcmp(name, "gesvdjBatched")) return vgpu_solver_gesvdj_batched();
  if (!strcmp(name, "gesvdaStridedBatched")) return vgpu_solver_gesvda(type, n[0], n[1], n[3]);
  if (!strcmp(name, "Xpotrf")) return vgpu_solver_x_potrf(n[0]);
  if (!strcmp(name, "Xgeqrf")) return vgpu_solver_x_geqrf(type, n[1]);
  if (!strcmp(name, "Xsyevd")) return vgpu_solver_x_syevd(type, n[0]);
  if (!strcmp(name, "XsyevBatched")) return vgpu_solver_x_syev_batched(type, n[0], n[2]);
  if (!strcmp(name, "Xgeev")) return vgpu_solver_x_geev(type, n[0]);
  if (!strcmp(name, "Xsytrs")) return 0;
  return (size_t)-1;
}

// The type is `h`, `s` or `d`; the numbers are those of the dimensions, with zeros after them, and the batch.
static size_t of_fft(const char *name, char type, const size_t *n) {
  long long sizes[3];
  int rank = 0, is_measured;
  while (rank < 3 && n[rank]) sizes[rank] = (long long)n[rank], rank++;
  enum fft_kind kind = strcmp(name, "c2c") ? FFT_REAL : FFT_COMPLEX;
  return vgpu_fft_workspace(kind, type == 'h' ? FFT_HALF : type == 'd' ? FFT_DOUBLE : FFT_SINGLE, sizes, rank, n[3], &is_measured);
}

static size_t of_cudnn(const char *name, char type, const size_t *n) {
  if (!strcmp(name, "batch-norm-forward")) return vgpu_batch_norm_forward(n[0], n[1], type == 'h');
  if (!strcmp(name, "batch-norm-backward")) return vgpu_batch_norm_backward(n[0], n[1]);
  if (strstr(name, "-reserve") || strstr(name, "-workspace")) {
    // The type is the number of directions.
    struct rnn rnn = {.directions = type - '0', .mode = *name == 'L' ? 2 : *name == 'G' ? 3 : 1, .biases = 2, .input = (int)n[2], .hidden = (int)n[3], .layers = (int)n[4]};
    struct sequences x = {.steps = n[0] * n[1], .batch = n[1]};
    return strstr(name, "-reserve") ? vgpu_rnn_reserve(&rnn, &x) : vgpu_rnn_workspace(&rnn, &x);
  }
  return vgpu_ctc_loss(n[0], n[1], n[2]);
}

int main(void) {
  char name[64], type;
  size_t n[5];
  while (scanf("%63s %c %zu %zu %zu %zu %zu", name, &type, n, n + 1, n + 2, n + 3, n + 4) == 7) {
    const char *types = "SDCZ", *letter = strchr(types, type);
    int is_fft = !strcmp(name, "c2c") || !strcmp(name, "r2c") || !strcmp(name, "c2r");
    if (letter) printf("%zu\n", of_solver(name, (enum solver_type)(letter - types), n));
    else printf("%zu\n", is_fft ? of_fft(name, type, n) : of_cudnn(name, type, n));
  }
  return 0;
}
