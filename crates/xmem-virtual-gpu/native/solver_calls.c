// cuSOLVER: sizes of workspaces (solver.c), and success. Nothing is factorized.
#include "arguments.h"
#include "solver.h"
#include "vgpu.h"

static int make(void **handle) {
  *handle = vgpu_handle_make(HANDLE_LIBRARY, 256);
  return !*handle; // the library's "not initialized"
}
static int drop(void *handle) { return handle && !vgpu_handle_drop(HANDLE_LIBRARY, handle); }
#define MAKES(name) API(int, name)(void **handle) { return make(handle); }
#define DROPS(name) API(int, name)(void *handle) { return drop(handle); }

MAKES(cusolverDnCreate)
DROPS(cusolverDnDestroy)
MAKES(cusolverDnCreateParams)
DROPS(cusolverDnDestroyParams)
MAKES(cusolverDnCreateSyevjInfo)
DROPS(cusolverDnDestroySyevjInfo)
MAKES(cusolverDnCreateGesvdjInfo)
DROPS(cusolverDnDestroyGesvdjInfo)
API(int, cusolverGetVersion)(int *version) { *version = vgpu_config()->runtime / 1000 * 1000; return 0; }

// The sizes were measured with CUDA 13 on GPUs of 132 multiprocessors and compute capability 9.
static void note(const char *name, int is_exact) {
  const struct config *g = vgpu_config();
  if (!is_exact || g->runtime / 1000 != 13 || g->major != 9 || g->sms != 132) vgpu_estimated_size(name);
}

// ---- sizes that count elements: `T` is the type in the name of the function ----
#define SIZE_OF(type, name, place, is_exact, size) \
  API(int, name)(ARGUMENTS) { \
    enum solver_type T = type; \
    UNUSED; \
    (void)T; \
    if (place) *(int *)place = (int)(size); \
    note(#name, is_exact); \
    return 0; \
  }
#define SIZE_OF_REAL(before, after, place, is_exact, size) \
  SIZE_OF(SOLVER_S, before##S##after##_bufferSize, place, is_exact, size) \
  SIZE_OF(SOLVER_D, before##D##after##_bufferSize, place, is_exact, size)
#define SIZE_OF_COMPLEX(before, after, place, is_exact, size) \
  SIZE_OF(SOLVER_C, before##C##after##_bufferSize, place, is_exact, size) \
  SIZE_OF(SOLVER_Z, before##Z##after##_bufferSize, place, is_exact, size)
#define SIZE(after, place, is_exact, size) \
  SIZE_OF_REAL(cusolverDn, after, place, is_exact, size) \
  SIZE_OF_COMPLEX(cusolverDn, after, place, is_exact, size)
// Functions whose names differ: `sy…` and `he…`, `or…` and `un…`.
#define SIZES(real, complex, place, is_exact, size) \
  SIZE_OF_REAL(cusolverDn, real, place, is_exact, size) \
  SIZE_OF_COMPLEX(cusolverDn, complex, place, is_exact, size)

SIZE(potrf, a5, 1, vgpu_solver_potrf(T, INT(a2)))
SIZE(sytrf, a4, 1, vgpu_solver_sytrf(T, INT(a1)))
SIZE(getrf, a5, 1, vgpu_solver_getrf(T, INT(a1), INT(a2)))
SIZE(geqrf, a5, 1, vgpu_solver_geqrf(INT(a2)))
SIZES(orgqr, ungqr, a7, 1, vgpu_solver_orgqr(INT(a1), INT(a2), INT(a3)))
// Reflections from the right (side 1) were not measured: taken to be those from the left on the transposed matrix.
SIZES(ormqr, unmqr, a11, (int)a1 == 0, (int)a1 == 1 ? vgpu_solver_ormqr(INT(a4), INT(a3), INT(a5)) : vgpu_solver_ormqr(INT(a3), INT(a4), INT(a5)))
SIZES(syevd, heevd, a7, 1, vgpu_solver_syevd(INT(a3)))
SIZES(syevj, heevj, a7, 1, vgpu_solver_syevj(INT(a3)))
SIZES(syevjBatched, heevjBatched, a7, 1, vgpu_solver_syevj_batched(INT(a3), INT(a9)))
SIZE(gesvd, a3, 0, vgpu_solver_gesvd(INT(a1), INT(a2)))
SIZE(gesvdj, a12, 1, vgpu_solver_gesvdj(INT(a3), INT(a4), (int)a2))
SIZE(gesvdjBatched, a11, 1, vgpu_solver_gesvdj_batched())
SIZE(gesvdaStridedBatched, a16, 1, vgpu_solver_gesvda(T, INT(a3), INT(a4), INT(a17)))

// ---- sizes in bytes on the device: `T` is the type of the matrix, a cudaDataType. None is taken to be on the host, whose
// memory nobody counts. ----
static enum solver_type type_of(int type) { return type == 1 ? SOLVER_D : type == 4 ? SOLVER_C : type == 5 ? SOLVER_Z : SOLVER_S; }
#define SIZE_X(name, type, place, of_host, size) \
  API(int, name)(ARGUMENTS) { \
    enum solver_type T = type_of((int)(type)); \
    UNUSED; \
    (void)T; \
    if (place) *(size_t *)place = size; \
    if (of_host) *(size_t *)of_host = 0; \
    note(#name, 1); \
    return 0; \
  }
SIZE_X(cusolverDnXgeqrf_bufferSize, a4, a10, a11, vgpu_solver_x_geqrf(T, a3))
SIZE_X(cusolverDnXpotrf_bufferSize, a4, a8, a9, vgpu_solver_x_potrf(a3))
SIZE_X(cusolverDnXsyevd_bufferSize, a5, a11, a12, vgpu_solver_x_syevd(T, a4))
SIZE_X(cusolverDnXsyevBatched_bufferSize, a5, a11, a12, vgpu_solver_x_syev_batched(T, a4, a13))
SIZE_X(cusolverDnXgeev_bufferSize, a5, a17, a18, vgpu_solver_x_geev(T, a4))
SIZE_X(cusolverDnXsytrs_bufferSize, a4, a11, a12, 0)

// ---- results: `info`, one number for each matrix, is zero, as PyTorch raises an error for others ----
#define SUCCEEDS(name, info, count) API(int, name)(ARGUMENTS) { UNUSED; return vgpu_no_error((void *)(info), count); }
#define SUCCEED_REAL(after, info, count) SUCCEEDS(cusolverDnS##after, info, count) SUCCEEDS(cusolverDnD##after, info, count)
#define SUCCEED_COMPLEX(after, info, count) SUCCEEDS(cusolverDnC##after, info, count) SUCCEEDS(cusolverDnZ##after, info, count)
#define SUCCEED(after, info, count) SUCCEED_REAL(after, info, count) SUCCEED_COMPLEX(after, info, count)

SUCCEED(potrf, a7, 1)
SUCCEED(potrfBatched, a5, INT(a6))
SUCCEED(potrs, a8, 1)
SUCCEED(potrsBatched, a8, 1)
SUCCEED(getrf, a7, 1)
SUCCEED(getrs, a9, 1)
SUCCEED(geqrf, a8, 1)
SUCCEED(sytrf, a8, 1)
SUCCEED_REAL(orgqr, a9, 1)
SUCCEED_COMPLEX(ungqr, a9, 1)
SUCCEED_REAL(ormqr, a13, 1)
SUCCEED_COMPLEX(unmqr, a13, 1)
SUCCEED_REAL(syevd, a9, 1)
SUCCEED_COMPLEX(heevd, a9, 1)
SUCCEED_REAL(syevj, a9, 1)
SUCCEED_COMPLEX(heevj, a9, 1)
SUCCEED_REAL(syevjBatched, a9, INT(a11))
SUCCEED_COMPLEX(heevjBatched, a9, INT(a11))
SUCCEED(gesvd, a15, 1)
SUCCEED(gesvdj, a14, 1)
SUCCEED(gesvdjBatched, a13, INT(a15))
SUCCEED(gesvdaStridedBatched, a18, INT(a20))
SUCCEEDS(cusolverDnXgeqrf, a14, 1)
SUCCEEDS(cusolverDnXpotrf, a12, 1)
SUCCEEDS(cusolverDnXpotrs, a11, 1)
SUCCEEDS(cusolverDnXsyevd, a15, 1)
SUCCEEDS(cusolverDnXsyevBatched, a15, a16)
SUCCEEDS(cusolverDnXgeev, a21, 1)
SUCCEEDS(cusolverDnXsytrs, a15, 1)
