// cuBLAS, cuSPARSE, cuFFT, cuRAND, NCCL and CUPTI: the calls that return something. All others
// succeed without an effect, which the stand-ins do themselves: they start kernels, which never run.
//
// Workspaces that PyTorch asks these libraries for are zero: their sizes are not known without the library
// and a device. The log names them. (cuBLAS' own workspaces are PyTorch's choice and do not come from here.)
#include "arguments.h"
#include "fft.h"
#include "vgpu.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// A handle or descriptor: memory that nobody reads. The libraries' "not initialized" and "allocation failed" are other
// than zero.
static int make(void **handle) {
  *handle = vgpu_handle_make(HANDLE_LIBRARY, 256);
  return !*handle;
}
static int drop(void *handle) { return handle && !vgpu_handle_drop(HANDLE_LIBRARY, handle); }
#define MAKES(name) API(int, name)(void **handle) { return make(handle); }
#define DROPS(name) API(int, name)(void *handle) { return drop(handle); }

// Texts for functions that return one.
API(const char *, text)(void) { return "no text: this library is a stand-in of xmem's virtual GPU"; }

// Size queries: the place of the answer.
#define NO_WORKSPACE(type, name, place) \
  API(int, name)(ARGUMENTS) { UNUSED; if (place) *(type *)place = 0; vgpu_unknown_size(#name); return 0; }
#define FOR_TYPES(type, before, after, place) \
  NO_WORKSPACE(type, before##S##after, place) NO_WORKSPACE(type, before##D##after, place) \
  NO_WORKSPACE(type, before##C##after, place) NO_WORKSPACE(type, before##Z##after, place)

// ---- cuBLAS, cuBLASLt ----
MAKES(cublasCreate_v2)
DROPS(cublasDestroy_v2)
API(int, cublasGetVersion_v2)(void *handle, int *version) { (void)handle; *version = vgpu_config()->cublas; return 0; }
API(int, cublasGetProperty)(int part, int *value) {
  int version = vgpu_config()->cublas;
  *value = part == 0 ? version / 10000 : part == 1 ? version / 100 % 100 : version % 100;
  return 0;
}
API(int, cublasGetMathMode)(void *handle, int *mode) { (void)handle; *mode = 0; return 0; }
API(int, cublasGetPointerMode_v2)(void *handle, int *mode) { (void)handle; *mode = 0; return 0; }
API(int, cublasGetAtomicsMode)(void *handle, int *mode) { (void)handle; *mode = 0; return 0; }
API(int, cublasGetStream_v2)(void *handle, void **stream) { (void)handle; *stream = NULL; return 0; }
// Factorizations and solutions of batches: `info` says that each succeeded. Where it is on the host, it is one number.
#define SUCCEEDS(type, after, info, count) API(int, cublas##type##after)(ARGUMENTS) { UNUSED; return vgpu_no_error((void *)(info), count); }
#define SUCCEED(after, info, count) SUCCEEDS(S, after, info, count) SUCCEEDS(D, after, info, count) SUCCEEDS(C, after, info, count) SUCCEEDS(Z, after, info, count)
SUCCEED(getrfBatched, a5, INT(a6))
SUCCEED(getriBatched, a7, INT(a8))
SUCCEED(matinvBatched, a6, INT(a7))
SUCCEED(getrsBatched, a9, 1)
SUCCEED(geqrfBatched, a6, 1)
#define SUCCEEDS_LEAST_SQUARES(type) API(int, cublas##type##gelsBatched)(ARGUMENTS) { UNUSED; vgpu_no_error((void *)a9, 1); return vgpu_no_error((void *)a10, INT(a11)); }
SUCCEEDS_LEAST_SQUARES(S)
SUCCEEDS_LEAST_SQUARES(D)
SUCCEEDS_LEAST_SQUARES(C)
SUCCEEDS_LEAST_SQUARES(Z)
MAKES(cublasLtCreate)
DROPS(cublasLtDestroy)
API(size_t, cublasLtGetVersion)(void) { return (size_t)vgpu_config()->cublas; }
MAKES(cublasLtMatmulDescCreate)
DROPS(cublasLtMatmulDescDestroy)
MAKES(cublasLtMatrixLayoutCreate)
DROPS(cublasLtMatrixLayoutDestroy)
MAKES(cublasLtMatmulPreferenceCreate)
DROPS(cublasLtMatmulPreferenceDestroy)
MAKES(cublasLtMatrixTransformDescCreate)
DROPS(cublasLtMatrixTransformDescDestroy)
// One algorithm, which needs no workspace. PyTorch allocates the one that it has set before it asks.
struct algorithm { uint64_t algorithm[8]; size_t workspace; int status; float waves; int reserved[4]; };
API(int, cublasLtMatmulAlgoGetHeuristic)(void *handle, void *operation, void *a, void *b, void *c, void *d, void *preference, int wanted, struct algorithm *algorithms, int *found) {
  (void)handle, (void)operation, (void)a, (void)b, (void)c, (void)d, (void)preference;
  if (wanted > 0) *algorithms = (struct algorithm){.waves = 1};
  *found = wanted > 0;
  return 0;
}

// ---- cuSPARSE ----
MAKES(cusparseCreate)
DROPS(cusparseDestroy)
API(int, cusparseGetVersion)(void *handle, int *version) { (void)handle; *version = vgpu_config()->runtime / 1000 * 1000; return 0; }
MAKES(cusparseCreateMatDescr)
DROPS(cusparseDestroyMatDescr)
MAKES(cusparseCreateCoo)
MAKES(cusparseCreateCsr)
MAKES(cusparseCreateCsc)
MAKES(cusparseCreateBsr)
MAKES(cusparseCreateBlockedEll)
MAKES(cusparseCreateConstCoo)
MAKES(cusparseCreateConstCsr)
MAKES(cusparseCreateSpVec)
MAKES(cusparseCreateDnVec)
MAKES(cusparseCreateDnMat)
MAKES(cusparseCreateConstDnMat)
MAKES(cusparseCreateConstDnVec)
MAKES(cusparseCreateBsrsm2Info)
MAKES(cusparseCreateBsrsv2Info)
MAKES(cusparseSpGEMM_createDescr)
MAKES(cusparseSpSM_createDescr)
MAKES(cusparseSpSV_createDescr)
DROPS(cusparseDestroySpMat)
DROPS(cusparseDestroySpVec)
DROPS(cusparseDestroyDnVec)
DROPS(cusparseDestroyDnMat)
DROPS(cusparseDestroyBsrsm2Info)
DROPS(cusparseDestroyBsrsv2Info)
DROPS(cusparseSpGEMM_destroyDescr)
DROPS(cusparseSpSM_destroyDescr)
DROPS(cusparseSpSV_destroyDescr)
API(int, cusparseSpMatGetSize)(void *matrix, int64_t *rows, int64_t *columns, int64_t *values) { (void)matrix; *rows = *columns = *values = 0; return 0; }
FOR_TYPES(int, cusparse, bsrsm2_bufferSize, a13)
FOR_TYPES(int, cusparse, bsrsv2_bufferSize, a11)
FOR_TYPES(size_t, cusparse, csrgeam2_bufferSizeExt, a19)
NO_WORKSPACE(size_t, cusparseSDDMM_bufferSize, a10)
NO_WORKSPACE(size_t, cusparseSpMM_bufferSize, a10)
NO_WORKSPACE(size_t, cusparseSpMV_bufferSize, a9)
NO_WORKSPACE(size_t, cusparseSpSM_bufferSize, a10)
NO_WORKSPACE(size_t, cusparseSpSV_bufferSize, a9)
NO_WORKSPACE(size_t, cusparseSpGEMM_workEstimation, a11)
NO_WORKSPACE(size_t, cusparseSpGEMM_compute, a11)
NO_WORKSPACE(size_t, cusparseXcoosort_bufferSizeExt, a6)
NO_WORKSPACE(size_t, cusparseXcsrsort_bufferSizeExt, a6)
NO_WORKSPACE(int, cusparseXcsrgeam2Nnz, a13)
API(int, cusparseXbsrsm2_zeroPivot)(void *handle, void *info, int *position) { (void)handle, (void)info; *position = -1; return 0; }
API(int, cusparseXbsrsv2_zeroPivot)(void *handle, void *info, int *position) { (void)handle, (void)info; *position = -1; return 0; }

// ---- cuFFT, cuRAND ----
API(int, cufftCreate)(int *plan) {
  static int plans;
  *plan = __atomic_add_fetch(&plans, 1, __ATOMIC_RELAXED);
  return 0;
}
API(int, cufftGetVersion)(int *version) { *version = vgpu_config()->runtime / 1000 * 1000; return 0; }
// A plan's workspace. The sizes were measured with CUDA 13, and PyTorch asks with this function alone.
API(int, cufftXtMakePlanMany)(int plan, int rank, long long *sizes, long long *inputs, long long input_stride, long long input_distance, int input, long long *outputs, long long output_stride, long long output_distance, int output, long long batch, size_t *size, int execution) {
  (void)plan, (void)inputs, (void)input_stride, (void)input_distance, (void)outputs, (void)output_stride, (void)output_distance, (void)execution;
  enum { COMPLEX = 4 }; // cudaDataType: real numbers of 32, 64 and 16 bits, then complex ones in the same order
  static const enum fft_type TYPES[] = {FFT_SINGLE, FFT_DOUBLE, FFT_HALF};
  int type = input % COMPLEX, is_measured = 0, is_complex = input >= COMPLEX && output >= COMPLEX;
  *size = 0;
  if (rank > 0 && type >= 0 && type < 3 && batch > 0)
    *size = vgpu_fft_workspace(is_complex ? FFT_COMPLEX : FFT_REAL, TYPES[type], sizes, rank, (size_t)batch, &is_measured);
  if (!is_measured || vgpu_config()->runtime / 1000 != 13) vgpu_estimated_size("cufftXtMakePlanMany");
  return 0;
}
NO_WORKSPACE(size_t, cufftMakePlanMany, a11)
NO_WORKSPACE(size_t, cufftMakePlanMany64, a11)
NO_WORKSPACE(size_t, cufftGetSize, a1)
MAKES(curandCreateGenerator)
MAKES(curandCreateGeneratorHost)
DROPS(curandDestroyGenerator)
API(int, curandGetVersion)(int *version) { *version = vgpu_config()->runtime / 1000 * 1000; return 0; }

// ---- NCCL: communicators that exist, and operations that are complete ----
//
// The other ranks are taken to have the data of this one, and sums are not computed. So programs that compare
// what all ranks have (shapes, counts) find agreement.
struct communicator { int ranks, rank; struct communicator *next; };
static struct communicator *communicators;
static pthread_mutex_t communicators_mutex = PTHREAD_MUTEX_INITIALIZER;
static int communicator(struct communicator **at, int ranks, int rank) {
  *at = vgpu_handle_make(HANDLE_COMMUNICATOR, sizeof **at);
  if (!*at) return 2; // ncclSystemError
  pthread_mutex_lock(&communicators_mutex);
  **at = (struct communicator){ranks, rank, communicators};
  communicators = *at;
  pthread_mutex_unlock(&communicators_mutex);
  return 0;
}
enum { NCCL_INVALID_ARGUMENT = 4 };
// Returns from a call whose communicator does not exist, or no longer.
#define NEEDS_COMMUNICATOR(of) do { if (!vgpu_handle_exists(HANDLE_COMMUNICATOR, of)) return NCCL_INVALID_ARGUMENT; } while (0)
static int drop_communicator(struct communicator *of) {
  if (!vgpu_handle_remove(HANDLE_COMMUNICATOR, of)) return NCCL_INVALID_ARGUMENT;
  pthread_mutex_lock(&communicators_mutex);
  struct communicator **at = &communicators;
  while (*at && *at != of) at = &(*at)->next;
  if (*at) *at = of->next;
  pthread_mutex_unlock(&communicators_mutex);
  free(of);
  return 0;
}
// The numbers of ranks of the communicators that exist in this process; returns their count, which may exceed `most`.
API(int, communicators)(int *ranks, int most) {
  int count = 0;
  pthread_mutex_lock(&communicators_mutex);
  for (struct communicator *c = communicators; c; c = c->next, count++)
    if (count < most) ranks[count] = c->ranks;
  pthread_mutex_unlock(&communicators_mutex);
  return count;
}
API(int, ncclGetVersion)(int *version) { *version = vgpu_config()->nccl; return 0; }
API(const char *, ncclGetErrorString)(int status) { return status ? "error of a stand-in for NCCL" : "no error"; }
API(const char *, ncclGetLastError)(void *of) { (void)of; return ""; }
struct unique_id { char bytes[128]; };
API(int, ncclGetUniqueId)(struct unique_id *id) { memset(id, 1, sizeof *id); return 0; }
API(int, ncclCommInitRank)(struct communicator **at, int ranks, struct unique_id id, int rank) { (void)id; return communicator(at, ranks, rank); }
API(int, ncclCommInitRankConfig)(struct communicator **at, int ranks, struct unique_id id, int rank, void *config) { (void)id, (void)config; return communicator(at, ranks, rank); }
API(int, ncclCommInitRankScalable)(struct communicator **at, int ranks, int rank, int count, void *ids, void *config) { (void)count, (void)ids, (void)config; return communicator(at, ranks, rank); }
API(int, ncclCommInitAll)(struct communicator **at, int ranks, const int *devices) {
  (void)devices;
  int status = 0;
  for (int i = 0; i < ranks && !status; i++) status = communicator(&at[i], ranks, i);
  return status;
}
// The number of ranks of the next part of a communicator, which the other ranks would tell; 0 if nobody said it.
static int size_of_split;
API(void, size_of_split)(int ranks) { size_of_split = ranks; }
API(int, ncclCommSplit)(struct communicator *from, int color, int key, struct communicator **at, void *config) {
  (void)config;
  NEEDS_COMMUNICATOR(from);
  // NCCL_SPLIT_NOCOLOR; other negative numbers are colors, which PyTorch up to 2.5 makes of a hash.
  if (color == -1) { *at = NULL; return 0; }
  // Ranks are ordered by their keys; PyTorch's are the new ranks (ProcessGroupNCCL.cpp, `NCCLComm::split`), and its
  // process groups ask for them (since 2.15).
  int ranks = size_of_split > 0 && size_of_split <= from->ranks ? size_of_split : from->ranks;
  return communicator(at, ranks, key >= 0 && key < ranks ? key : from->rank % ranks);
}
API(int, ncclCommShrink)(struct communicator *from, int *ranks, int count, struct communicator **at) {
  (void)ranks;
  NEEDS_COMMUNICATOR(from);
  return communicator(at, from->ranks - count, from->rank);
}
API(int, ncclCommDestroy)(struct communicator *of) { return drop_communicator(of); }
API(int, ncclCommAbort)(struct communicator *of) { return drop_communicator(of); }
API(int, ncclCommFinalize)(struct communicator *of) { (void)of; return 0; }
API(int, ncclCommGetAsyncError)(struct communicator *of, int *status) { (void)of; *status = 0; return 0; }
API(int, ncclCommCount)(const struct communicator *of, int *ranks) { NEEDS_COMMUNICATOR(of); *ranks = of->ranks; return 0; }
API(int, ncclCommUserRank)(const struct communicator *of, int *rank) { NEEDS_COMMUNICATOR(of); *rank = of->rank; return 0; }
API(int, ncclCommCuDevice)(const struct communicator *of, int *device) { (void)of; *device = 0; return 0; }
int vgpu_cudaGetDevice(int *device);
API(int, ncclMemAlloc)(void **address, size_t size) {
  int device = 0;
  vgpu_cudaGetDevice(&device);
  *address = vgpu_allocate(vgpu_machine_device(device), size);
  return *address ? 0 : 1; // ncclUnhandledCudaError
}
API(int, ncclMemFree)(void *address) { return vgpu_release(address) ? 1 : 0; }
API(int, ncclCommRegister)(struct communicator *of, void *buffer, size_t size, void **handle) { (void)of, (void)size; *handle = buffer; return 0; }
API(int, ncclCommWindowRegister)(struct communicator *of, void *buffer, size_t size, void **window) { (void)of, (void)size; *window = buffer; return 0; }
// ncclDataType_t: int8, uint8, int32, uint32, int64, uint64, half, float, double, bfloat16, and two of 8 bits.
static size_t bytes(size_t count, int type) {
  static const unsigned char SIZES[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return count * (type >= 0 && (size_t)type < sizeof SIZES ? SIZES[type] : 1);
}
static int receive(void *to, const void *from, size_t size, struct stream *stream) {
  vgpu_stream_work(stream);
  if (vgpu_check(to, size) || vgpu_check(from, size)) return NCCL_INVALID_ARGUMENT;
  if (to != from) vgpu_copy(to, from, size);
  return 0;
}
API(int, ncclAllReduce)(const void *from, void *to, size_t count, int type, int operation, struct communicator *of, struct stream *stream) {
  (void)operation;
  NEEDS_COMMUNICATOR(of);
  vgpu_log_collective('R', stream, to, bytes(count, type), of->ranks);
  return receive(to, from, bytes(count, type), stream);
}
API(int, ncclReduce)(const void *from, void *to, size_t count, int type, int operation, int root, struct communicator *of, struct stream *stream) {
  (void)operation;
  NEEDS_COMMUNICATOR(of);
  vgpu_log_collective('B', stream, to, bytes(count, type), of->ranks);
  return of->rank == root ? receive(to, from, bytes(count, type), stream) : 0;
}
API(int, ncclBroadcast)(const void *from, void *to, size_t count, int type, int root, struct communicator *of, struct stream *stream) {
  NEEDS_COMMUNICATOR(of);
  vgpu_log_collective('B', stream, to, bytes(count, type), of->ranks);
  return of->rank == root ? receive(to, from, bytes(count, type), stream) : 0;
}
API(int, ncclAllGather)(const void *from, void *to, size_t count, int type, struct communicator *of, struct stream *stream) {
  NEEDS_COMMUNICATOR(of);
  size_t size = bytes(count, type);
  vgpu_log_collective('G', stream, to, size * (size_t)of->ranks, of->ranks);
  // Larger parts would not be copied either (vgpu_copy), and there may be many ranks.
  if (size > vgpu_config()->copy_limit) {
    vgpu_stream_work(stream);
    return 0;
  }
  int status = 0;
  for (int rank = 0; rank < of->ranks && !status; rank++) status = receive((char *)to + (size_t)rank * size, from, size, stream);
  return status;
}
API(int, ncclReduceScatter)(const void *from, void *to, size_t count, int type, int operation, struct communicator *of, struct stream *stream) {
  (void)operation;
  NEEDS_COMMUNICATOR(of);
  size_t size = bytes(count, type);
  vgpu_log_collective('S', stream, from, size * (size_t)of->ranks, of->ranks);
  return receive(to, (const char *)from + (size_t)of->rank * size, size, stream);
}
API(int, ncclAlltoAll)(const void *from, void *to, size_t count, int type, struct communicator *of, struct stream *stream) {
  NEEDS_COMMUNICATOR(of);
  size_t size = bytes(count, type) * (size_t)of->ranks;
  vgpu_log_collective('A', stream, from, size, of->ranks);
  return receive(to, from, size, stream);
}
// Sends and receives between ncclGroupStart and ncclGroupEnd, or one without them: they run at once, and are one entry of
// the log. Nothing arrives: the receiver keeps what it has.
#define MOST_PEERS 1024
static __thread struct {
  int depth, sends, receives;
  struct communicator *of;
  struct stream *stream;
  const void *largest;
  size_t size, sent, received, own;
  unsigned char peers[MOST_PEERS];
} group;

// Between a rank and all others it is an all-to-all, as PyTorch makes it (torch/csrc/cuda/nccl.cpp, `all2all`).
static void end_of_group(void) {
  // The communicator may have been destroyed since.
  if (!vgpu_handle_exists(HANDLE_COMMUNICATOR, group.of)) group.of = NULL;
  if (!group.of) return;
  int ranks = group.of->ranks, peers = 0;
  for (int peer = 0; peer < ranks && peer < MOST_PEERS; peer++) peers += group.peers[peer];
  size_t larger = group.sent > group.received ? group.sent : group.received;
  if (ranks > 2 && peers == ranks - 1 && group.sends && group.receives)
    vgpu_log_collective('A', group.stream, group.largest, larger + group.own, ranks);
  else if (peers)
    vgpu_log_collective('P', group.stream, group.largest, larger, ranks);
  int depth = group.depth;
  memset(&group, 0, sizeof group);
  group.depth = depth;
}

static int point_to_point(int sends, const void *buffer, size_t size, int peer, struct communicator *of, struct stream *stream) {
  NEEDS_COMMUNICATOR(of);
  vgpu_stream_work(stream);
  if (group.of && (group.of != of || group.stream != stream)) end_of_group();
  group.of = of, group.stream = stream;
  if (size >= group.size) group.largest = buffer, group.size = size;
  if (peer == of->rank) {
    if (sends) group.own += size;
  } else {
    if (sends) group.sends = 1, group.sent += size;
    else group.receives = 1, group.received += size;
    if (peer >= 0 && peer < MOST_PEERS) group.peers[peer] = 1;
  }
  if (!group.depth) end_of_group();
  return 0;
}
API(int, ncclGroupStart)(void) { group.depth++; return 0; }
API(int, ncclGroupEnd)(void) {
  if (group.depth > 0 && !--group.depth) end_of_group();
  return 0;
}
API(int, ncclSend)(const void *from, size_t count, int type, int peer, struct communicator *of, struct stream *stream) {
  return point_to_point(1, from, bytes(count, type), peer, of, stream);
}
API(int, ncclRecv)(void *to, size_t count, int type, int peer, struct communicator *of, struct stream *stream) {
  return point_to_point(0, to, bytes(count, type), peer, of, stream);
}
API(int, ncclRedOpCreatePreMulSum)(int *operation) { *operation = 5; return 0; }

// ---- CUPTI: subscribed to, without events ----
static char subscriber;
API(int, cuptiGetVersion)(uint32_t *version) { *version = (uint32_t)(vgpu_config()->runtime / 1000 * 10000); return 0; }
API(int, cuptiGetResultString)(int status, const char **text) { *text = status ? "error of a stand-in for CUPTI" : "no error"; return 0; }
API(int, cuptiSubscribe)(void **at, void *callback, void *data) { (void)callback, (void)data; *at = &subscriber; return 0; }
API(int, cuptiActivityGetNextRecord)(uint8_t *buffer, size_t size, void **record) { (void)buffer, (void)size; *record = NULL; return 12; } // no more records
API(int, cuptiActivityGetNumDroppedRecords)(void *context, uint32_t stream, size_t *count) { (void)context, (void)stream; *count = 0; return 0; }
API(int, cuptiGetTimestamp)(uint64_t *time) { *time = 0; return 0; }
API(int, cuptiGetDeviceId)(void *context, uint32_t *device) { (void)context; *device = 0; return 0; }
API(int, cuptiGetContextId)(void *context, uint32_t *id) { (void)context; *id = 1; return 0; }
API(int, cuptiGetStreamIdEx)(void *context, void *stream, uint8_t per_thread, uint32_t *id) { (void)context, (void)stream, (void)per_thread; *id = 0; return 0; }
