// Workspaces of cuSOLVER by the sizes of matrices.
#pragma once
#include <stddef.h>

// The type of a matrix: the letters of cuSOLVER's functions.
enum solver_type { SOLVER_S, SOLVER_D, SOLVER_C, SOLVER_Z };
size_t vgpu_solver_element(enum solver_type type);

// Elements, as the functions that are named after a type count them. Where no type is taken, all have the same number.
size_t vgpu_solver_potrf(enum solver_type type, size_t n);
size_t vgpu_solver_sytrf(enum solver_type type, size_t n);
size_t vgpu_solver_getrf(enum solver_type type, size_t m, size_t n);
size_t vgpu_solver_geqrf(size_t n);
size_t vgpu_solver_orgqr(size_t m, size_t n, size_t k);
// `c` columns, to which k reflections of length m are applied from the left.
size_t vgpu_solver_ormqr(size_t m, size_t c, size_t k);
size_t vgpu_solver_syevd(size_t n);
size_t vgpu_solver_syevj(size_t n);
size_t vgpu_solver_syevj_batched(size_t n, size_t batch);
size_t vgpu_solver_gesvd(size_t m, size_t n);
size_t vgpu_solver_gesvdj(size_t m, size_t n, int economy);
size_t vgpu_solver_gesvdj_batched(void);
size_t vgpu_solver_gesvda(enum solver_type type, size_t m, size_t n, size_t batch);

// Bytes on the device, of the 64-bit interface.
size_t vgpu_solver_x_potrf(size_t n);
size_t vgpu_solver_x_geqrf(enum solver_type type, size_t n);
size_t vgpu_solver_x_syevd(enum solver_type type, size_t n);
size_t vgpu_solver_x_syev_batched(enum solver_type type, size_t n, size_t batch);
size_t vgpu_solver_x_geev(enum solver_type type, size_t n);
