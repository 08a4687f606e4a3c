// Workspaces of cuSOLVER by the sizes of matrices: formulas that give what `…_bufferSize` answered on an H100 with cuSOLVER
// 12.0.4 of CUDA 13.0, over all sizes of traces/measured/h100-80g/libraries.jsonl.zst. NVIDIA documents none of them, and no
// device of another kind was measured.
//
// Exact for every size measured, but for gesvd (52 % exact, the others within 8.6 %), gesvda (84 %, 0.4 %), XsyevBatched (86 %,
// 0.03 %) and Xgeev (35 %, 0.5 %).
//
// Pieces of a workspace are aligned to 32 elements, which explains most of the terms.
#include "solver.h"
#include "numbers.h"

static size_t aligned(size_t n) { return round_up(n, 32); }
static size_t least(size_t a, size_t b) { return a < b ? a : b; }

size_t vgpu_solver_element(enum solver_type type) { return type == SOLVER_S ? 4 : type == SOLVER_Z ? 16 : 8; }

// A byte and a half of flags or so for each pair of blocks of 32.
size_t vgpu_solver_x_potrf(size_t n) {
  size_t t = blocks_of(n, 32);
  return 32 * (4 + blocks_of(t * t, 8));
}
size_t vgpu_solver_potrf(enum solver_type type, size_t n) { return vgpu_solver_x_potrf(n) / vgpu_solver_element(type); }

size_t vgpu_solver_sytrf(enum solver_type type, size_t n) {
  static const size_t LEAST[] = {24608, 13328, 13328, 11016};
  return most(LEAST[type], (n < 4096 ? 64 : 128) * n + 64);
}

// Tall matrices have panels that are worked on at once. The limits are between 1,536 and 1,792 rows, and at 2,048.
size_t vgpu_solver_getrf(enum solver_type type, size_t m, size_t n) {
  static const size_t PANEL[][2] = {{1120, 1216}, {2176, 2304}, {2176, 2304}, {4288, 4480}};
  size_t t = blocks_of(least(m, n), 32), power = 1;
  while (power < t && power < 16) power *= 2;
  size_t panel = most(8 * power, blocks_of(blocks_of(m, 32) * blocks_of(n, 32), 8));
  if (m > 1536) panel = most(panel, PANEL[type][m > 2048]);
  return 32 * (8 * t + 8 + panel) / vgpu_solver_element(type);
}

size_t vgpu_solver_geqrf(size_t n) { return 1024 * (512 + most(n, 256)); }
size_t vgpu_solver_x_geqrf(enum solver_type type, size_t n) { return vgpu_solver_geqrf(n) * vgpu_solver_element(type) + 128; }

size_t vgpu_solver_orgqr(size_t m, size_t n, size_t k) {
  size_t block = least(k, 128), of_rows = aligned(m * block);
  return 256 + most(32768 + of_rows, 16384 + of_rows + aligned(2 * n * block));
}

size_t vgpu_solver_ormqr(size_t m, size_t c, size_t k) {
  size_t longer = most(m, c);
  return 65536 + 256 * m + 512 * c + 256 + (longer > 32 ? aligned(c) : 0) + aligned(k * k + k * longer);
}

// ---- eigenvalues of symmetric matrices ----
// What one more matrix of a batch adds.
static size_t syevd_of_one(size_t n) {
  return most(3 * n * n + 768 * n + 65539 - (n <= 32 ? n : 0), 4 * n * n + 127 * n + 32899);
}
size_t vgpu_solver_syevd(size_t n) {
  size_t square = n * n - n, matrix = n * n + 2 * n + 3;
  size_t pieces = aligned(square + 10) + aligned(square + (n <= 11 ? 33 - n : 22));
  size_t small = matrix + 65536 + 768 * n + pieces - (n <= 32 ? 32 : 0);
  return most(small, matrix + 32768 + 128 * n + 96 + pieces + aligned(square + 28));
}
size_t vgpu_solver_x_syevd(enum solver_type type, size_t n) { return vgpu_solver_syevd(n) * vgpu_solver_element(type) + 128; }
static size_t syevd_of_batch(size_t n, size_t batch) {
  return batch == 1 ? vgpu_solver_syevd(n) : batch * syevd_of_one(n) + 32 + aligned(batch);
}
size_t vgpu_solver_x_syev_batched(enum solver_type type, size_t n, size_t batch) {
  return syevd_of_batch(n, batch) * vgpu_solver_element(type) + 128;
}

size_t vgpu_solver_syevj(size_t n) {
  size_t t = n < 4096 ? blocks_of(n, 32) : blocks_of(n, 2048);
  return n < 4096 ? n * n + n + 4 * t * t + 1025 * t + 1024 : n * n + 4096 * n + (8 << 20) + 4 * t * t;
}
size_t vgpu_solver_syevj_batched(size_t n, size_t batch) {
  size_t t = blocks_of(n, 32);
  return batch * (n * n + 2 * n + 1024 * t + 1) + 1024 + 4 * t * t;
}

// ---- singular values ----
static size_t gesvdj_of_square(size_t n) {
  size_t t = blocks_of(n, 32);
  return aligned(2 * n * n) + 1024 + 2048 * t + aligned(n + t + 4 * t * t);
}
// A matrix that is not square is factorized to one that is, and if it is wide, transposed before.
size_t vgpu_solver_gesvdj(size_t m, size_t n, int economy) {
  if (m == n) return gesvdj_of_square(n);
  size_t rows = most(m, n), columns = least(m, n);
  size_t of_q = vgpu_solver_ormqr(rows, economy ? columns : rows, columns);
  size_t factorized = most(vgpu_solver_geqrf(columns) + 32, of_q) + aligned(columns) + (m < n ? aligned(m * n) : 0);
  return most(factorized, gesvdj_of_square(columns) + columns * columns);
}
size_t vgpu_solver_gesvdj_batched(void) { return 992; }

// PyTorch takes it where it is asked for (`driver="gesvd"`), and where gesvdj does not converge. Not for wide matrices, which
// PyTorch transposes.
size_t vgpu_solver_gesvd(size_t m, size_t n) {
  if (m == n) {
    size_t squares = n <= 32 ? aligned(3 * n * n) : aligned(2 * n * n) + aligned(n * n);
    return 65792 + 256 * n + 4 * aligned(n) + squares;
  }
  size_t factorized = vgpu_solver_geqrf(n) + 2 * m * n, of_q = vgpu_solver_ormqr(m, n, n) + 2 * m * n + m;
  size_t blocked = factorized + 2 * n * n + (n <= 128 ? 2 * m * n + 260 * n : 128 * m + 16384);
  return most(most(factorized + 33152, blocked), of_q + (n > 255 ? 2 * n * n - 510 * n : 0));
}

// With wide types half as many elements; with narrow ones, long matrices have another copy.
size_t vgpu_solver_gesvda(enum solver_type type, size_t m, size_t n, size_t batch) {
  int is_wide = type == SOLVER_D || type == SOLVER_Z;
  size_t linear = type == SOLVER_S || type == SOLVER_D ? 6 : 5;
  size_t eigenvalues = n <= 32 ? vgpu_solver_syevj_batched(n, batch) : syevd_of_batch(n, batch);
  size_t matrices = 2 * m * n * batch, worked_on = matrices + 2 * eigenvalues;
  size_t all = batch * (2 * n * n + linear * n) + (is_wide ? worked_on : most(worked_on, 2 * matrices));
  return is_wide ? all / 2 : all;
}

// ---- eigenvalues of any matrix: the part on the device, in units of 512 bytes ----
size_t vgpu_solver_x_geev(enum solver_type type, size_t n) {
  size_t small = most(32768 + n * n + 384, 3 * n * n + 16640), large = most(388 * n + 16384, n * n + 4 * n + 32);
  return round_up((n <= 128 ? small : large) * vgpu_solver_element(type), 512);
}
