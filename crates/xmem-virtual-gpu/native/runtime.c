// The CUDA runtime (libcudart): what PyTorch and other extensions call and expect an effect of.
//
// A handle is a pointer to a structure of capture.c. Structures of CUDA that are only passed through are
// `void *` here. Where a function changed its arguments between versions of CUDA, the version decides.
#define _GNU_SOURCE
#include "vgpu.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct stream *stream_t;
typedef struct event *event_t;
typedef struct graph *graph_t;
struct dim { unsigned x, y, z; };

static __thread int last_error, current_device;
static int result(int status) {
  if (status) last_error = status;
  return status;
}
static int major(void) { return vgpu_config()->runtime / 1000; }
static int is_device(int device) { return device >= 0 && device < vgpu_visible_devices(); }
static int on_machine(void) { return vgpu_machine_device(current_device); }
// The number by which the process knows a device of the machine.
static int visible(int machine) {
  for (int i = 0; i < vgpu_visible_devices(); i++) if (vgpu_machine_device(i) == machine) return i;
  return 0;
}

// ---- errors ----
API(int, cudaGetLastError)(void) {
  int status = last_error;
  last_error = 0;
  return status;
}
API(int, cudaPeekAtLastError)(void) { return last_error; }
API(const char *, cudaGetErrorString)(int status) { return vgpu_error_text(status); }
API(const char *, cudaGetErrorName)(int status) { return vgpu_error_name(status); }

// ---- devices ----
API(int, cudaGetDeviceCount)(int *count) {
  *count = vgpu_visible_devices();
  return *count ? CUDA_OK : result(CUDA_NO_DEVICE);
}
API(int, cudaGetDevice)(int *device) { *device = current_device; return CUDA_OK; }
API(int, cudaSetDevice)(int device) {
  if (!is_device(device)) return result(vgpu_visible_devices() ? CUDA_INVALID_DEVICE : CUDA_NO_DEVICE);
  current_device = device;
  return vgpu_memory_usable(on_machine()) ? CUDA_OK : result(CUDA_NOT_INITIALIZED);
}
API(int, cudaInitDevice)(int device, unsigned device_flags, unsigned flags) {
  (void)device_flags, (void)flags;
  return is_device(device) ? CUDA_OK : result(CUDA_INVALID_DEVICE);
}
API(int, cudaSetDeviceFlags)(unsigned flags) { (void)flags; return CUDA_OK; }
API(int, cudaGetDeviceFlags)(unsigned *flags) { *flags = 0; return CUDA_OK; }
API(int, cudaSetValidDevices)(int *devices, int count) { (void)devices, (void)count; return CUDA_OK; }
API(int, cudaChooseDevice)(int *device, const void *properties) { (void)properties; *device = 0; return CUDA_OK; }
API(int, cudaDeviceReset)(void) { return CUDA_OK; }
API(int, cudaDriverGetVersion)(int *version) { *version = vgpu_config()->driver; return CUDA_OK; }
API(int, cudaRuntimeGetVersion)(int *version) { *version = vgpu_config()->runtime; return CUDA_OK; }
API(int, cudaDeviceGetAttribute)(int *value, int attribute, int device) {
  if (!is_device(device)) return result(CUDA_INVALID_DEVICE);
  *value = vgpu_attribute(attribute, device);
  return CUDA_OK;
}
API(int, cudaDeviceGetPCIBusId)(char *text, int length, int device) {
  if (!is_device(device)) return result(CUDA_INVALID_DEVICE);
  if (length <= 0) return result(CUDA_INVALID_VALUE);
  snprintf(text, (size_t)length, "0000:%02X:00.0", vgpu_machine_device(device) + 1);
  return CUDA_OK;
}
API(int, cudaDeviceGetByPCIBusId)(int *device, const char *text) {
  unsigned domain, bus;
  if (sscanf(text, "%x:%x", &domain, &bus) != 2 || bus < 1) return result(CUDA_INVALID_VALUE);
  for (int i = 0; i < vgpu_visible_devices(); i++) {
    if (vgpu_machine_device(i) != (int)bus - 1) continue;
    *device = i;
    return CUDA_OK;
  }
  return result(CUDA_INVALID_DEVICE);
}
API(int, cudaDeviceGetStreamPriorityRange)(int *least, int *greatest) {
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return CUDA_OK;
}
API(int, cudaDeviceSynchronize)(void) { return result(vgpu_device_synchronize()); }
API(int, cudaThreadSynchronize)(void) { return result(vgpu_device_synchronize()); }
API(int, cudaDeviceGetLimit)(size_t *value, int limit) { (void)limit; *value = 8 * MIB; return CUDA_OK; }
API(int, cudaDeviceSetLimit)(int limit, size_t value) { (void)limit, (void)value; return CUDA_OK; }
API(int, cudaDeviceGetCacheConfig)(int *config) { *config = 0; return CUDA_OK; }
API(int, cudaDeviceSetCacheConfig)(int config) { (void)config; return CUDA_OK; }
API(int, cudaCtxResetPersistingL2Cache)(void) { return CUDA_OK; }
API(int, cudaDeviceGetTexture1DLinearMaxWidth)(size_t *width, const void *format, int device) {
  (void)format, (void)device;
  *width = (size_t)1 << 27;
  return CUDA_OK;
}

// Peer access: devices of one machine reach each other.
static unsigned char peers[MAX_DEVICES][MAX_DEVICES];
API(int, cudaDeviceCanAccessPeer)(int *can, int device, int peer) {
  if (!is_device(device) || !is_device(peer)) return result(CUDA_INVALID_DEVICE);
  *can = device != peer;
  return CUDA_OK;
}
API(int, cudaDeviceEnablePeerAccess)(int peer, unsigned flags) {
  if (flags) return result(CUDA_INVALID_VALUE);
  if (!is_device(peer) || peer == current_device) return result(CUDA_INVALID_DEVICE);
  if (peers[current_device][peer]) return result(CUDA_PEER_ALREADY_ENABLED);
  peers[current_device][peer] = 1;
  return CUDA_OK;
}
API(int, cudaDeviceDisablePeerAccess)(int peer) {
  if (!is_device(peer)) return result(CUDA_INVALID_DEVICE);
  if (!peers[current_device][peer]) return result(CUDA_PEER_NOT_ENABLED);
  peers[current_device][peer] = 0;
  return CUDA_OK;
}
API(int, cudaDeviceGetP2PAttribute)(int *value, int attribute, int source, int destination) {
  if (!is_device(source) || !is_device(destination)) return result(CUDA_INVALID_DEVICE);
  // PerformanceRank 1, AccessSupported 2, NativeAtomicSupported 3, CudaArrayAccessSupported 4
  *value = attribute == 1 ? 0 : source != destination;
  return CUDA_OK;
}

// ---- memory ----
API(int, cudaMemGetInfo)(size_t *free, size_t *total) {
  if (free) *free = vgpu_free_memory(on_machine());
  if (total) *total = vgpu_config()->memory;
  return CUDA_OK;
}
API(int, cudaMalloc)(void **address, size_t size) {
  if (!address) return result(CUDA_INVALID_VALUE);
  *address = NULL;
  int status = vgpu_capture_unsafe_call();
  if (status || !size) return result(status);
  *address = vgpu_allocate(on_machine(), size);
  return *address ? CUDA_OK : result(CUDA_OUT_OF_MEMORY);
}
API(int, cudaFree)(void *address) {
  if (!address) return CUDA_OK;
  int status = vgpu_capture_unsafe_call();
  if (status) return result(status);
  vgpu_host_waits(NULL);
  if (!vgpu_pool_release(address)) return CUDA_OK;
  return vgpu_release(address) ? result(CUDA_INVALID_VALUE) : CUDA_OK;
}
API(int, cudaMallocManaged)(void **address, size_t size, unsigned flags) { (void)flags; return vgpu_cudaMalloc(address, size); }
struct pitched { void *address; size_t pitch, width, height; };
struct extent { size_t width, height, depth; };
// A whole number of steps for each row; the size of all rows is an invalid value if no size_t holds it.
static int pitched_size(size_t width, size_t height, size_t depth, size_t *pitch, size_t *size) {
  if (width > SIZE_MAX - 511) return CUDA_INVALID_VALUE;
  *pitch = (width + 511) & ~(size_t)511;
  return __builtin_mul_overflow(*pitch, height, size) || __builtin_mul_overflow(*size, depth, size) ? CUDA_INVALID_VALUE : CUDA_OK;
}
API(int, cudaMallocPitch)(void **address, size_t *pitch, size_t width, size_t height) {
  size_t size;
  if (!address || !pitch || pitched_size(width, height, 1, pitch, &size)) return result(CUDA_INVALID_VALUE);
  return vgpu_cudaMalloc(address, size);
}
API(int, cudaMalloc3D)(struct pitched *at, struct extent extent) {
  size_t size;
  *at = (struct pitched){NULL, 0, extent.width, extent.height};
  if (pitched_size(extent.width, extent.height, extent.depth, &at->pitch, &size)) return result(CUDA_INVALID_VALUE);
  return vgpu_cudaMalloc(&at->address, size);
}

API(int, cudaHostAlloc)(void **address, size_t size, unsigned flags) {
  (void)flags;
  if (!address) return result(CUDA_INVALID_VALUE);
  *address = NULL;
  int status = vgpu_capture_unsafe_call();
  if (status) return result(status);
  *address = vgpu_host_allocate(size);
  return *address ? CUDA_OK : result(CUDA_OUT_OF_MEMORY);
}
API(int, cudaMallocHost)(void **address, size_t size) { return vgpu_cudaHostAlloc(address, size, 0); }
API(int, cudaFreeHost)(void *address) { return result(vgpu_host_release(address)); }
API(int, cudaHostRegister)(void *address, size_t size, unsigned flags) { (void)flags; return result(vgpu_host_register(address, size)); }
API(int, cudaHostUnregister)(void *address) { return result(vgpu_host_unregister(address)); }
API(int, cudaHostGetDevicePointer)(void **device, void *host, unsigned flags) { (void)flags; *device = host; return CUDA_OK; }
API(int, cudaHostGetFlags)(unsigned *flags, void *address) { (void)address; *flags = 0; return CUDA_OK; }

enum { MEMORY_UNREGISTERED = 0, MEMORY_HOST = 1, MEMORY_DEVICE = 2 };
struct pointer { int type, device; void *device_address, *host_address; };
API(int, cudaPointerGetAttributes)(struct pointer *attributes, void *address) {
  int device = vgpu_device_at(address);
  // CUDA 13 appends eight reserved words.
  if (major() >= 13) memset(attributes + 1, 0, 8 * sizeof(long));
  if (device >= 0) *attributes = (struct pointer){MEMORY_DEVICE, visible(device), address, NULL};
  else if (vgpu_is_pinned(address)) *attributes = (struct pointer){MEMORY_HOST, current_device, address, address};
  else *attributes = (struct pointer){MEMORY_UNREGISTERED, -1, NULL, address};
  return CUDA_OK;
}

enum { HOST_TO_DEVICE = 1, DEVICE_TO_HOST = 2 }; // cudaMemcpyKind
static int copy(void *to, const void *from, size_t size) {
  if (vgpu_check(to, size) || vgpu_check(from, size)) return result(CUDA_INVALID_VALUE);
  vgpu_copy(to, from, size);
  return CUDA_OK;
}
static int fill(void *to, int value, size_t size) {
  if (vgpu_check_fill(to, size)) return result(CUDA_INVALID_VALUE);
  vgpu_fill(to, value, size);
  return CUDA_OK;
}
API(int, cudaMemcpy)(void *to, const void *from, size_t size, int kind) { (void)kind; vgpu_host_waits(vgpu_timeline(NULL)); vgpu_log_host_waits('h', NULL, 0); return copy(to, from, size); }
API(int, cudaMemcpyAsync)(void *to, const void *from, size_t size, int kind, stream_t stream) {
  vgpu_stream_work(stream);
  if (kind == HOST_TO_DEVICE || kind == DEVICE_TO_HOST) vgpu_log_copy(stream, size);
  return copy(to, from, size);
}
API(int, cudaMemcpyPeer)(void *to, int to_device, const void *from, int from_device, size_t size) {
  (void)to_device, (void)from_device;
  return copy(to, from, size);
}
API(int, cudaMemcpyPeerAsync)(void *to, int to_device, const void *from, int from_device, size_t size, stream_t stream) {
  (void)to_device, (void)from_device;
  return vgpu_cudaMemcpyAsync(to, from, size, 0, stream);
}
API(int, cudaMemcpy2DAsync)(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t rows, int kind, stream_t stream) {
  (void)kind;
  vgpu_stream_work(stream);
  int status = vgpu_check_rows(to, to_pitch, width, rows);
  if (!status) status = vgpu_check_rows(from, from_pitch, width, rows);
  if (status) return result(status);
  vgpu_copy_rows(to, to_pitch, from, from_pitch, width, rows);
  return CUDA_OK;
}
API(int, cudaMemcpy2D)(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t rows, int kind) {
  return vgpu_cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, rows, kind, NULL);
}
API(int, cudaMemset)(void *to, int value, size_t size) { return fill(to, value, size); }
API(int, cudaMemsetAsync)(void *to, int value, size_t size, stream_t stream) {
  vgpu_stream_work(stream);
  return fill(to, value, size);
}
API(int, cudaMemset2D)(void *to, size_t pitch, int value, size_t width, size_t rows) {
  (void)value;
  return result(vgpu_check_rows(to, pitch, width, rows));
}
API(int, cudaMemset2DAsync)(void *to, size_t pitch, int value, size_t width, size_t rows, stream_t stream) {
  vgpu_stream_work(stream);
  return vgpu_cudaMemset2D(to, pitch, value, width, rows);
}

// Variables of kernels have no values; their addresses are somewhere.
API(int, cudaGetSymbolAddress)(void **address, const void *symbol) {
  (void)symbol;
  *address = vgpu_symbols;
  return CUDA_OK;
}
API(int, cudaGetSymbolSize)(size_t *size, const void *symbol) { (void)symbol; *size = 4; return CUDA_OK; }
API(int, cudaMemcpyToSymbol)(const void *symbol, const void *from, size_t size, size_t offset, int kind) {
  (void)symbol, (void)from, (void)size, (void)offset, (void)kind;
  return CUDA_OK;
}
API(int, cudaMemcpyToSymbolAsync)(const void *symbol, const void *from, size_t size, size_t offset, int kind, stream_t stream) {
  (void)symbol, (void)from, (void)size, (void)offset, (void)kind;
  vgpu_stream_work(stream);
  return CUDA_OK;
}
API(int, cudaMemcpyFromSymbol)(void *to, const void *symbol, size_t size, size_t offset, int kind) {
  (void)symbol, (void)offset, (void)kind;
  if (vgpu_check(to, size)) return result(CUDA_INVALID_VALUE);
  vgpu_fill(to, 0, size);
  return CUDA_OK;
}
API(int, cudaMemcpyFromSymbolAsync)(void *to, const void *symbol, size_t size, size_t offset, int kind, stream_t stream) {
  vgpu_stream_work(stream);
  return vgpu_cudaMemcpyFromSymbol(to, symbol, size, offset, kind);
}
API(int, cudaMemAdvise)(void) { return CUDA_OK; }
API(int, cudaMemAdvise_v2)(void) { return CUDA_OK; }
API(int, cudaMemPrefetchAsync)(void) { return CUDA_OK; }
API(int, cudaMemPrefetchAsync_v2)(void) { return CUDA_OK; }
API(int, cudaMemRangeGetAttribute)(void *data, size_t size) { memset(data, 0, size); return CUDA_OK; }
API(int, cudaDeviceFlushGPUDirectRDMAWrites)(void) { return CUDA_OK; }

// Memory of other processes cannot be reached: what one process allocates is not known to the other.
API(int, cudaIpcGetMemHandle)(void) { return result(vgpu_unimplemented("cudaIpcGetMemHandle", CUDA_NOT_SUPPORTED)); }
API(int, cudaIpcOpenMemHandle)(void) { return result(vgpu_unimplemented("cudaIpcOpenMemHandle", CUDA_NOT_SUPPORTED)); }
API(int, cudaIpcCloseMemHandle)(void) { return result(CUDA_NOT_SUPPORTED); }
API(int, cudaIpcGetEventHandle)(void) { return result(vgpu_unimplemented("cudaIpcGetEventHandle", CUDA_NOT_SUPPORTED)); }
API(int, cudaIpcOpenEventHandle)(void) { return result(vgpu_unimplemented("cudaIpcOpenEventHandle", CUDA_NOT_SUPPORTED)); }

// ---- the stream-ordered allocator ----
static int pool_allocate(void **address, size_t size, struct pool *pool, stream_t stream) {
  *address = NULL;
  if (!size) return CUDA_OK;
  vgpu_stream_work(stream);
  *address = vgpu_pool_allocate(pool, size);
  return *address ? CUDA_OK : result(CUDA_OUT_OF_MEMORY);
}
API(int, cudaMallocAsync)(void **address, size_t size, stream_t stream) {
  int device = vgpu_stream_device(stream, on_machine());
  return pool_allocate(address, size, vgpu_current_pool(device), stream);
}
API(int, cudaMallocFromPoolAsync)(void **address, size_t size, struct pool *pool, stream_t stream) {
  return vgpu_is_pool(pool) ? pool_allocate(address, size, pool, stream) : result(CUDA_INVALID_VALUE);
}
API(int, cudaFreeAsync)(void *address, stream_t stream) {
  if (!address) return CUDA_OK;
  vgpu_stream_work(stream);
  if (!vgpu_pool_release(address)) return CUDA_OK;
  return vgpu_release(address) ? result(CUDA_INVALID_VALUE) : CUDA_OK;
}
API(int, cudaDeviceGetDefaultMemPool)(struct pool **pool, int device) {
  if (!is_device(device)) return result(CUDA_INVALID_DEVICE);
  *pool = vgpu_default_pool(vgpu_machine_device(device));
  return CUDA_OK;
}
API(int, cudaDeviceGetMemPool)(struct pool **pool, int device) {
  if (!is_device(device)) return result(CUDA_INVALID_DEVICE);
  *pool = vgpu_current_pool(vgpu_machine_device(device));
  return CUDA_OK;
}
API(int, cudaDeviceSetMemPool)(int device, struct pool *pool) {
  if (!is_device(device)) return result(CUDA_INVALID_DEVICE);
  vgpu_set_current_pool(vgpu_machine_device(device), pool);
  return CUDA_OK;
}
// cudaMemPoolProps: type of the allocations, of the handles, then type and number of the place.
API(int, cudaMemPoolCreate)(struct pool **pool, const int *properties) {
  int device = properties[2] == 1 && is_device(properties[3]) ? properties[3] : current_device;
  *pool = vgpu_create_pool(vgpu_machine_device(device));
  return *pool ? CUDA_OK : result(CUDA_OUT_OF_MEMORY);
}
API(int, cudaMemPoolDestroy)(struct pool *pool) { return result(vgpu_destroy_pool(pool)); }
API(int, cudaMemPoolTrimTo)(struct pool *pool, size_t keep) {
  if (!vgpu_is_pool(pool)) return result(CUDA_INVALID_VALUE);
  vgpu_pool_trim(pool, keep);
  return CUDA_OK;
}
API(int, cudaMemPoolGetAttribute)(struct pool *pool, int attribute, void *value) {
  return !vgpu_is_pool(pool) || vgpu_pool_get(pool, attribute, value) ? result(CUDA_INVALID_VALUE) : CUDA_OK;
}
API(int, cudaMemPoolSetAttribute)(struct pool *pool, int attribute, void *value) {
  return !vgpu_is_pool(pool) || vgpu_pool_set(pool, attribute, value) ? result(CUDA_INVALID_VALUE) : CUDA_OK;
}
API(int, cudaMemPoolSetAccess)(void) { return CUDA_OK; }
API(int, cudaMemPoolGetAccess)(int *flags) { *flags = 3; return CUDA_OK; } // read and write
API(int, cudaDeviceGraphMemTrim)(int device) { (void)device; return CUDA_OK; }
API(int, cudaDeviceGetGraphMemAttribute)(int device, int attribute, uint64_t *value) { (void)device, (void)attribute; *value = 0; return CUDA_OK; }
API(int, cudaDeviceSetGraphMemAttribute)(void) { return CUDA_OK; }

// ---- streams and events ----
API(int, cudaStreamCreateWithPriority)(stream_t *stream, unsigned flags, int priority) { return result(vgpu_stream_create(stream, on_machine(), flags, priority)); }
API(int, cudaStreamCreateWithFlags)(stream_t *stream, unsigned flags) { return vgpu_cudaStreamCreateWithPriority(stream, flags, 0); }
API(int, cudaStreamCreate)(stream_t *stream) { return vgpu_cudaStreamCreateWithPriority(stream, 0, 0); }
API(int, cudaStreamDestroy)(stream_t stream) { return result(vgpu_stream_destroy(stream)); }
API(int, cudaStreamGetPriority)(stream_t stream, int *priority) { if (!vgpu_is_stream(stream)) return result(CUDA_INVALID_HANDLE); *priority = vgpu_stream_priority(stream); return CUDA_OK; }
API(int, cudaStreamGetFlags)(stream_t stream, unsigned *flags) { if (!vgpu_is_stream(stream)) return result(CUDA_INVALID_HANDLE); *flags = vgpu_stream_flags(stream); return CUDA_OK; }
API(int, cudaStreamGetId)(stream_t stream, unsigned long long *id) { if (!vgpu_is_stream(stream)) return result(CUDA_INVALID_HANDLE); *id = vgpu_stream_id(stream); return CUDA_OK; }
API(int, cudaStreamGetDevice)(stream_t stream, int *device) { if (!vgpu_is_stream(stream)) return result(CUDA_INVALID_HANDLE); *device = visible(vgpu_stream_device(stream, on_machine())); return CUDA_OK; }
API(int, cudaStreamQuery)(stream_t stream) { return result(vgpu_stream_synchronize(stream)); }
API(int, cudaStreamSynchronize)(stream_t stream) { return result(vgpu_stream_synchronize(stream)); }
API(int, cudaStreamWaitEvent)(stream_t stream, event_t event, unsigned flags) { return result(vgpu_stream_wait(stream, event, flags)); }
API(int, cudaStreamAttachMemAsync)(void) { return CUDA_OK; }
API(int, cudaStreamCopyAttributes)(void) { return CUDA_OK; }
API(int, cudaStreamSetAttribute)(void) { return CUDA_OK; }
API(int, cudaStreamGetAttribute)(stream_t stream, int attribute, void *value) {
  (void)stream, (void)attribute;
  memset(value, 0, 64); // cudaLaunchAttributeValue
  return CUDA_OK;
}
// All work before the callback is complete; a captured one is not called.
API(int, cudaStreamAddCallback)(stream_t stream, void (*call)(stream_t, int, void *), void *data, unsigned flags) {
  (void)flags;
  if (vgpu_capture_status(stream, NULL, NULL)) return result(CUDA_CAPTURE_UNSUPPORTED);
  call(stream, CUDA_OK, data);
  return CUDA_OK;
}
API(int, cudaLaunchHostFunc)(stream_t stream, void (*call)(void *), void *data) {
  vgpu_stream_work(stream);
  if (!vgpu_capture_status(stream, NULL, NULL)) call(data);
  return CUDA_OK;
}
API(int, cudaEventCreateWithFlags)(event_t *event, unsigned flags) { (void)flags; return result(vgpu_event_create(event)); }
API(int, cudaEventCreate)(event_t *event) { return result(vgpu_event_create(event)); }
API(int, cudaEventDestroy)(event_t event) { return result(vgpu_event_destroy(event)); }
API(int, cudaEventRecordWithFlags)(event_t event, stream_t stream, unsigned flags) { return result(vgpu_event_record(event, stream, flags, __builtin_return_address(0))); }
API(int, cudaEventRecord)(event_t event, stream_t stream) { return result(vgpu_event_record(event, stream, 0, __builtin_return_address(0))); }
API(int, cudaEventQuery)(event_t event) { return result(vgpu_event_query(event)); }
API(int, cudaEventSynchronize)(event_t event) { return result(vgpu_event_synchronize(event)); }
API(int, cudaEventElapsedTime)(float *milliseconds, event_t from, event_t to) { return result(vgpu_event_elapsed(milliseconds, from, to)); }
API(int, cudaEventElapsedTime_v2)(float *milliseconds, event_t from, event_t to) { return result(vgpu_event_elapsed(milliseconds, from, to)); }

// ---- graphs ----
API(int, cudaStreamBeginCapture)(stream_t stream, int mode) { return result(vgpu_capture_begin(stream, mode)); }
API(int, cudaStreamBeginCaptureToGraph)(stream_t stream, graph_t graph, const void *nodes, const void *edges, size_t count, int mode) {
  (void)graph, (void)nodes, (void)edges, (void)count;
  return result(vgpu_capture_begin(stream, mode));
}
API(int, cudaStreamEndCapture)(stream_t stream, graph_t *graph) { return result(vgpu_capture_end(stream, graph)); }
API(int, cudaStreamIsCapturing)(stream_t stream, int *status) { if (!vgpu_is_stream(stream)) return result(CUDA_INVALID_HANDLE); *status = vgpu_capture_status(stream, NULL, NULL); return CUDA_OK; }
API(int, cudaThreadExchangeStreamCaptureMode)(int *mode) { return result(vgpu_capture_exchange_mode(mode)); }

// The nodes on which the next operation of a captured stream depends are not followed: there are none.
static int capture_info(stream_t stream, int *status, unsigned long long *id, graph_t *graph, const void **nodes, const void **edges, size_t *count) {
  if (!vgpu_is_stream(stream)) return result(CUDA_INVALID_HANDLE);
  *status = vgpu_capture_status(stream, id, graph);
  if (nodes) *nodes = NULL;
  if (edges) *edges = NULL;
  if (count) *count = 0;
  return CUDA_OK;
}
// Three arguments before CUDA 13.
API(int, cudaStreamGetCaptureInfo)(stream_t stream, int *status, unsigned long long *id, graph_t *graph, const void **nodes, const void **edges, size_t *count) {
  if (major() < 13) return capture_info(stream, status, id, NULL, NULL, NULL, NULL);
  return capture_info(stream, status, id, graph, nodes, edges, count);
}
API(int, cudaStreamGetCaptureInfo_v2)(stream_t stream, int *status, unsigned long long *id, graph_t *graph, const void **nodes, size_t *count) {
  return capture_info(stream, status, id, graph, nodes, NULL, count);
}
API(int, cudaStreamGetCaptureInfo_v3)(stream_t stream, int *status, unsigned long long *id, graph_t *graph, const void **nodes, const void **edges, size_t *count) {
  return capture_info(stream, status, id, graph, nodes, edges, count);
}
API(int, cudaStreamUpdateCaptureDependencies)(void) { return CUDA_OK; }
API(int, cudaStreamUpdateCaptureDependencies_v2)(void) { return CUDA_OK; }

API(int, cudaGraphCreate)(graph_t *graph, unsigned flags) {
  (void)flags;
  *graph = vgpu_graph_create();
  return *graph ? CUDA_OK : result(CUDA_OUT_OF_MEMORY);
}
API(int, cudaGraphDestroy)(graph_t graph) { return result(vgpu_graph_destroy(graph)); }
API(int, cudaGraphClone)(graph_t *copy, graph_t graph) { return result(vgpu_graph_clone(copy, graph)); }
// The further arguments differ by version; all versions begin like this.
API(int, cudaGraphInstantiate)(graph_t *executable, graph_t graph) { return vgpu_cudaGraphClone(executable, graph); }
API(int, cudaGraphInstantiateWithFlags)(graph_t *executable, graph_t graph, unsigned long long flags) { (void)flags; return vgpu_cudaGraphClone(executable, graph); }
API(int, cudaGraphInstantiateWithParams)(graph_t *executable, graph_t graph, void *parameters) { (void)parameters; return vgpu_cudaGraphClone(executable, graph); }
API(int, cudaGraphExecDestroy)(graph_t executable) { return result(vgpu_graph_destroy(executable)); }
API(int, cudaGraphLaunch)(graph_t executable, stream_t stream) {
  if (!vgpu_is_graph(executable)) return result(CUDA_INVALID_VALUE);
  vgpu_stream_work(stream);
  return CUDA_OK;
}
API(int, cudaGraphUpload)(graph_t executable, stream_t stream) { (void)executable, (void)stream; return CUDA_OK; }
API(int, cudaGraphExecUpdate)(graph_t executable, graph_t graph, void *first, int *status) {
  (void)executable, (void)graph;
  // CUDA 12 and later: cudaGraphExecUpdateResultInfo. Before: a node, and the status.
  if (major() >= 12) memset(first, 0, 24);
  else *(void **)first = NULL, *status = 0;
  return CUDA_OK;
}
API(int, cudaGraphDebugDotPrint)(graph_t graph, const char *path, unsigned flags) { (void)graph, (void)path, (void)flags; return CUDA_OK; }
API(int, cudaGraphGetNodes)(graph_t graph, void **nodes, size_t *count) {
  if (!vgpu_is_graph(graph)) return result(CUDA_INVALID_VALUE);
  size_t all = vgpu_graph_nodes(graph);
  for (size_t i = 0; nodes && i < *count; i++) nodes[i] = i < all ? (char *)graph + i : NULL;
  *count = all;
  return CUDA_OK;
}
API(int, cudaGraphGetRootNodes)(graph_t graph, void **nodes, size_t *count) { (void)graph, (void)nodes; *count = 0; return CUDA_OK; }
API(int, cudaGraphNodeGetDependencies)(void *node, void **nodes, void *third, size_t *fourth) {
  (void)node, (void)nodes;
  *(major() >= 13 ? fourth : (size_t *)third) = 0;
  return CUDA_OK;
}
API(int, cudaGraphNodeGetDependencies_v2)(void *node, void **nodes, void *edges, size_t *count) { (void)node, (void)nodes, (void)edges; *count = 0; return CUDA_OK; }
API(int, cudaGraphNodeGetType)(void *node, int *type) { (void)node; *type = 5; return CUDA_OK; } // empty
API(int, cudaGraphAddEmptyNode)(void **node, graph_t graph) { *node = graph; return CUDA_OK; }
API(int, cudaGraphDestroyNode)(void *node) { (void)node; return CUDA_OK; }
API(int, cudaUserObjectCreate)(void **object) { *object = object; return CUDA_OK; }
API(int, cudaUserObjectRelease)(void) { return CUDA_OK; }
API(int, cudaUserObjectRetain)(void) { return CUDA_OK; }
API(int, cudaGraphRetainUserObject)(void) { return CUDA_OK; }
API(int, cudaGraphReleaseUserObject)(void) { return CUDA_OK; }

// ---- kernels: registered, launched, and never run ----
struct launch { struct dim grid, block; size_t shared; stream_t stream; };
#define MAX_LAUNCHES 64
static __thread struct launch launches[MAX_LAUNCHES];
static __thread int launch_count;
API(unsigned, __cudaPushCallConfiguration)(struct dim grid, struct dim block, size_t shared, stream_t stream) {
  if (launch_count < MAX_LAUNCHES) launches[launch_count] = (struct launch){grid, block, shared, stream};
  launch_count++;
  return 0;
}
API(int, __cudaPopCallConfiguration)(struct dim *grid, struct dim *block, size_t *shared, stream_t *stream) {
  if (launch_count > 0) launch_count--;
  struct launch *launch = &launches[launch_count < MAX_LAUNCHES ? launch_count : MAX_LAUNCHES - 1];
  *grid = launch->grid;
  *block = launch->block;
  *shared = launch->shared;
  *stream = launch->stream;
  return CUDA_OK;
}
API(void **, __cudaRegisterFatBinary)(const void *binary) { return vgpu_binary_register(binary); }
API(void, __cudaRegisterFatBinaryEnd)(void **handle) { (void)handle; }
API(void, __cudaUnregisterFatBinary)(void **handle) { vgpu_binary_unregister(handle); }
API(char, __cudaInitModule)(void **handle) { (void)handle; return 1; }
API(void, __cudaRegisterFunction)(void **handle, const void *function) { vgpu_kernel_register(handle, function); }
API(void, __cudaRegisterVar)(void) {}
API(void, __cudaRegisterManagedVar)(void) {}
API(void, __cudaRegisterTexture)(void) {}
API(void, __cudaRegisterSurface)(void) {}
API(int, __cudaGetKernel)(const void **kernel, const void *function) { *kernel = function; return CUDA_OK; }
API(int, cudaGetKernel)(const void **kernel, const void *function) { *kernel = function; return CUDA_OK; }
API(int, cudaGetFuncBySymbol)(const void **function, const void *symbol) { *function = symbol; return CUDA_OK; }
API(int, cudaFuncGetName)(const char **name, const void *function) { (void)function; *name = "kernel"; return CUDA_OK; }
static int launch_kernel(const void *function, stream_t stream) {
  int code, runs, status = vgpu_kernel_code(function, &code, &runs);
  if (status) return result(status);
  vgpu_stream_work(stream);
  return CUDA_OK;
}
API(int, cudaLaunchKernel)(const void *function, struct dim grid, struct dim block, void **arguments, size_t shared, stream_t stream) {
  (void)grid, (void)block, (void)arguments, (void)shared;
  return launch_kernel(function, stream);
}
API(int, __cudaLaunchKernel)(const void *kernel, struct dim grid, struct dim block, void **arguments, size_t shared, stream_t stream) {
  return vgpu_cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}
API(int, cudaLaunchCooperativeKernel)(const void *function, struct dim grid, struct dim block, void **arguments, size_t shared, stream_t stream) {
  return vgpu_cudaLaunchKernel(function, grid, block, arguments, shared, stream);
}
struct launch_config { struct dim grid, block; size_t shared; stream_t stream; };
API(int, cudaLaunchKernelExC)(const struct launch_config *config, const void *function, void **arguments) {
  (void)arguments;
  return launch_kernel(function, config->stream);
}
struct function_attributes {
  size_t shared, constant, local;
  int max_threads, registers, ptx_version, binary_version, cache_mode, max_dynamic_shared, carveout;
};
API(int, cudaFuncGetAttributes)(struct function_attributes *attributes, const void *function) {
  int code, runs, status = vgpu_kernel_code(function, &code, &runs);
  if (status) return result(status);
  *attributes = (struct function_attributes){0, 0, 0, 1024, 32, code, runs, 0, 49152, -1};
  return CUDA_OK;
}
API(int, cudaFuncSetAttribute)(const void *function, int attribute, int value) { (void)function, (void)attribute, (void)value; return CUDA_OK; }
API(int, cudaFuncSetCacheConfig)(const void *function, int config) { (void)function, (void)config; return CUDA_OK; }
API(int, cudaFuncSetSharedMemConfig)(const void *function, int config) { (void)function, (void)config; return CUDA_OK; }
API(int, cudaOccupancyMaxActiveBlocksPerMultiprocessor)(int *blocks, const void *function, int block, size_t shared) {
  (void)function;
  *blocks = vgpu_occupancy(block, shared);
  return CUDA_OK;
}
API(int, cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)(int *blocks, const void *function, int block, size_t shared, unsigned flags) {
  (void)function, (void)flags;
  *blocks = vgpu_occupancy(block, shared);
  return CUDA_OK;
}
API(int, cudaOccupancyAvailableDynamicSMemPerBlock)(size_t *shared) { *shared = 49152; return CUDA_OK; }
API(int, cudaOccupancyMaxActiveClusters)(int *clusters) { *clusters = vgpu_config()->sms / 2; return CUDA_OK; }
API(int, cudaOccupancyMaxPotentialClusterSize)(int *size) { *size = 8; return CUDA_OK; }
API(int, cudaProfilerStart)(void) { return CUDA_OK; }
API(int, cudaProfilerStop)(void) { return CUDA_OK; }

// ---- the driver, through the runtime ----
static int entry_point(const char *name, void **function, int *status) {
  *function = vgpu_driver_function(name);
  if (status) *status = *function ? 0 : 1; // found, not found
  return *function || status ? CUDA_OK : result(CUDA_NOT_FOUND);
}
// CUDA 11 has no status.
API(int, cudaGetDriverEntryPoint)(const char *name, void **function, unsigned long long flags, int *status) {
  (void)flags;
  return entry_point(name, function, major() >= 12 ? status : NULL);
}
API(int, cudaGetDriverEntryPointByVersion)(const char *name, void **function, unsigned version, unsigned long long flags, int *status) {
  (void)version, (void)flags;
  return entry_point(name, function, status);
}
API(int, cudaGetExportTable)(const void **table, const void *id) { (void)id; *table = NULL; return result(CUDA_NOT_SUPPORTED); }
