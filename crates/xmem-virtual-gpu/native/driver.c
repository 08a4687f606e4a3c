// The driver interface (libcuda): devices, contexts, virtual memory management, kernels.
#define _GNU_SOURCE
#include "vgpu.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct stream *stream_t;
typedef uintptr_t address_t;

#define GRANULARITY (2 * MIB)

// The status numbers of the driver and of the runtime are the same, up to names.
API(int, cuInit)(unsigned flags) { (void)flags; return vgpu_visible_devices() ? CUDA_OK : CUDA_NO_DEVICE; }
API(int, cuDriverGetVersion)(int *version) { *version = vgpu_config()->driver; return CUDA_OK; }
API(int, cuGetErrorString)(int status, const char **text) { *text = vgpu_error_text(status); return CUDA_OK; }
API(int, cuGetErrorName)(int status, const char **name) {
  *name = status == CUDA_OK ? "CUDA_SUCCESS" : status == CUDA_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : vgpu_error_name(status);
  return CUDA_OK;
}
// The driver's log of errors (CUDA 12.9 and later): there is nothing to log.
API(int, cuLogsRegisterCallback)(void *callback, void *data, void **handle) {
  (void)callback, (void)data;
  static char registered;
  *handle = &registered;
  return CUDA_OK;
}
API(int, cuLogsUnregisterCallback)(void *handle) { (void)handle; return CUDA_OK; }

// ---- devices ----
static int is_device(int device) { return device >= 0 && device < vgpu_visible_devices(); }
API(int, cuDeviceGet)(int *device, int ordinal) { *device = ordinal; return is_device(ordinal) ? CUDA_OK : CUDA_INVALID_DEVICE; }
API(int, cuDeviceGetCount)(int *count) { *count = vgpu_visible_devices(); return CUDA_OK; }
API(int, cuDeviceGetName)(char *name, int length, int device) {
  if (!is_device(device)) return CUDA_INVALID_DEVICE;
  if (length <= 0) return CUDA_INVALID_VALUE;
  snprintf(name, (size_t)length, "%s", vgpu_config()->name);
  return CUDA_OK;
}
API(int, cuDeviceTotalMem_v2)(size_t *size, int device) {
  if (!is_device(device)) return CUDA_INVALID_DEVICE;
  *size = vgpu_config()->memory;
  return CUDA_OK;
}
API(int, cuDeviceGetUuid)(char *uuid, int device) { vgpu_uuid(uuid, vgpu_machine_device(device)); return CUDA_OK; }
API(int, cuDeviceGetUuid_v2)(char *uuid, int device) { vgpu_uuid(uuid, vgpu_machine_device(device)); return CUDA_OK; }
API(int, cuDeviceGetPCIBusId)(char *text, int length, int device) {
  if (!is_device(device)) return CUDA_INVALID_DEVICE;
  if (length <= 0) return CUDA_INVALID_VALUE;
  snprintf(text, (size_t)length, "0000:%02X:00.0", vgpu_machine_device(device) + 1);
  return CUDA_OK;
}
API(int, cuDeviceGetAttribute)(int *value, int attribute, int device) {
  if (!is_device(device)) return CUDA_INVALID_DEVICE;
  *value = vgpu_attribute(attribute, device);
  return CUDA_OK;
}
API(int, cuDeviceCanAccessPeer)(int *can, int device, int peer) { *can = device != peer; return CUDA_OK; }

// ---- contexts: the primary one of each device, as an address that stands for it ----
static char contexts[MAX_DEVICES];
static __thread void *context_stack[16];
static __thread int context_depth;
static int device_of_context(void *context) {
  char *at = context;
  return at >= contexts && at < contexts + MAX_DEVICES ? (int)(at - contexts) : 0;
}
API(int, cuCtxGetCurrent)(void **context) {
  *context = context_depth ? context_stack[context_depth - 1] : &contexts[0];
  return CUDA_OK;
}
API(int, cuCtxSetCurrent)(void *context) {
  if (!context_depth) context_depth = 1;
  context_stack[context_depth - 1] = context;
  return CUDA_OK;
}
API(int, cuCtxPushCurrent_v2)(void *context) {
  if (context_depth == sizeof context_stack / sizeof *context_stack) return CUDA_INVALID_VALUE;
  context_stack[context_depth++] = context;
  return CUDA_OK;
}
API(int, cuCtxPopCurrent_v2)(void **context) {
  if (!context_depth) return CUDA_INVALID_CONTEXT;
  context_depth--;
  if (context) *context = context_stack[context_depth];
  return CUDA_OK;
}
static int current_device(void) { return context_depth ? device_of_context(context_stack[context_depth - 1]) : 0; }
API(int, cuCtxGetDevice)(int *device) { *device = current_device(); return CUDA_OK; }
API(int, cuCtxGetApiVersion)(void *context, unsigned *version) { (void)context; *version = 3020; return CUDA_OK; }
API(int, cuCtxGetFlags)(unsigned *flags) { *flags = 0; return CUDA_OK; }
API(int, cuCtxGetLimit)(size_t *value, int limit) { (void)limit; *value = 8 * MIB; return CUDA_OK; }
API(int, cuCtxSetLimit)(int limit, size_t value) { (void)limit, (void)value; return CUDA_OK; }
API(int, cuCtxGetStreamPriorityRange)(int *least, int *greatest) {
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return CUDA_OK;
}
API(int, cuCtxSynchronize)(void) { return vgpu_device_synchronize(); }
API(int, cuCtxSetCacheConfig)(int config) { (void)config; return CUDA_OK; }
API(int, cuCtxEnablePeerAccess)(void *context, unsigned flags) { (void)context, (void)flags; return CUDA_OK; }
API(int, cuDevicePrimaryCtxRetain)(void **context, int device) {
  if (!is_device(device)) return CUDA_INVALID_DEVICE;
  *context = &contexts[device];
  return CUDA_OK;
}
API(int, cuDevicePrimaryCtxRelease_v2)(int device) { (void)device; return CUDA_OK; }
API(int, cuDevicePrimaryCtxSetFlags_v2)(int device, unsigned flags) { (void)device, (void)flags; return CUDA_OK; }
API(int, cuDevicePrimaryCtxReset_v2)(int device) { (void)device; return CUDA_OK; }
API(int, cuDevicePrimaryCtxGetState)(int device, unsigned *flags, int *is_active) {
  *flags = 0;
  *is_active = is_device(device);
  return is_device(device) ? CUDA_OK : CUDA_INVALID_DEVICE;
}

// ---- memory ----
static int machine_device(void) { return vgpu_machine_device(current_device()); }
API(int, cuMemGetInfo_v2)(size_t *free, size_t *total) {
  *free = vgpu_free_memory(machine_device());
  *total = vgpu_config()->memory;
  return CUDA_OK;
}
API(int, cuMemAlloc_v2)(address_t *address, size_t size) {
  *address = (address_t)vgpu_allocate(machine_device(), size);
  return *address ? CUDA_OK : size ? CUDA_OUT_OF_MEMORY : CUDA_INVALID_VALUE;
}
API(int, cuMemFree_v2)(address_t address) { return vgpu_release((void *)address) ? CUDA_INVALID_VALUE : CUDA_OK; }
API(int, cuMemAllocHost_v2)(void **address, size_t size) { *address = vgpu_host_allocate(size); return *address ? CUDA_OK : CUDA_OUT_OF_MEMORY; }
API(int, cuMemHostAlloc)(void **address, size_t size, unsigned flags) { (void)flags; return vgpu_cuMemAllocHost_v2(address, size); }
API(int, cuMemFreeHost)(void *address) { return vgpu_host_release(address); }
API(int, cuMemHostRegister_v2)(void *address, size_t size, unsigned flags) { (void)flags; return vgpu_host_register(address, size); }
API(int, cuMemHostUnregister)(void *address) { return vgpu_host_unregister(address); }
API(int, cuMemHostGetDevicePointer_v2)(address_t *device, void *host, unsigned flags) { (void)flags; *device = (address_t)host; return CUDA_OK; }
API(int, cuMemGetAddressRange_v2)(address_t *base, size_t *size, address_t address) {
  size_t found = vgpu_allocation_size((void *)address);
  if (!found) return CUDA_INVALID_VALUE;
  if (base) *base = address;
  if (size) *size = found;
  return CUDA_OK;
}
API(int, cuPointerGetAttribute)(void *value, int attribute, address_t address) {
  enum { CONTEXT = 1, MEMORY_TYPE = 2, DEVICE_POINTER = 3, HOST_POINTER = 4, IS_MANAGED = 8, DEVICE_ORDINAL = 9, RANGE_START = 11, RANGE_SIZE = 12 };
  int device = vgpu_device_at((void *)address);
  if (device < 0 && !vgpu_is_pinned((void *)address)) return CUDA_INVALID_VALUE;
  switch (attribute) {
    case CONTEXT: *(void **)value = &contexts[device < 0 ? 0 : device]; return CUDA_OK;
    case MEMORY_TYPE: *(unsigned *)value = device < 0 ? 1 : 2; return CUDA_OK;
    case DEVICE_POINTER: case HOST_POINTER: case RANGE_START: *(address_t *)value = address; return CUDA_OK;
    case DEVICE_ORDINAL: *(int *)value = device < 0 ? 0 : device; return CUDA_OK;
    case RANGE_SIZE: *(size_t *)value = vgpu_allocation_size((void *)address); return CUDA_OK;
    case IS_MANAGED: *(int *)value = 0; return CUDA_OK;
    default: *(int *)value = 0; return CUDA_OK;
  }
}
API(int, cuMemcpy)(address_t to, address_t from, size_t size) {
  if (vgpu_check((void *)to, size) || vgpu_check((void *)from, size)) return CUDA_INVALID_VALUE;
  vgpu_copy((void *)to, (void *)from, size);
  return CUDA_OK;
}
API(int, cuMemcpyAsync)(address_t to, address_t from, size_t size, stream_t stream) { vgpu_stream_work(stream); return vgpu_cuMemcpy(to, from, size); }
API(int, cuMemcpyHtoD_v2)(address_t to, const void *from, size_t size) { return vgpu_cuMemcpy(to, (address_t)from, size); }
API(int, cuMemcpyDtoH_v2)(void *to, address_t from, size_t size) { return vgpu_cuMemcpy((address_t)to, from, size); }
API(int, cuMemcpyDtoD_v2)(address_t to, address_t from, size_t size) { return vgpu_cuMemcpy(to, from, size); }
API(int, cuMemcpyHtoDAsync_v2)(address_t to, const void *from, size_t size, stream_t stream) { return vgpu_cuMemcpyAsync(to, (address_t)from, size, stream); }
API(int, cuMemcpyDtoHAsync_v2)(void *to, address_t from, size_t size, stream_t stream) { return vgpu_cuMemcpyAsync((address_t)to, from, size, stream); }
API(int, cuMemcpyDtoDAsync_v2)(address_t to, address_t from, size_t size, stream_t stream) { return vgpu_cuMemcpyAsync(to, from, size, stream); }
API(int, cuMemsetD8_v2)(address_t to, unsigned char value, size_t count) {
  if (vgpu_check_fill((void *)to, count)) return CUDA_INVALID_VALUE;
  vgpu_fill((void *)to, value, count);
  return CUDA_OK;
}
API(int, cuMemsetD8Async)(address_t to, unsigned char value, size_t count, stream_t stream) { vgpu_stream_work(stream); return vgpu_cuMemsetD8_v2(to, value, count); }
static int fill_words(address_t to, unsigned value, size_t count) {
  if (count > SIZE_MAX / 4 || vgpu_check_fill((void *)to, count * 4)) return CUDA_INVALID_VALUE;
  if (count > vgpu_config()->copy_limit / 4) vgpu_fill((void *)to, 0, count * 4);
  else for (size_t i = 0; i < count; i++) memcpy((void *)(to + 4 * i), &value, 4);
  return CUDA_OK;
}
API(int, cuMemsetD32_v2)(address_t to, unsigned value, size_t count) { return fill_words(to, value, count); }
API(int, cuMemsetD32Async)(address_t to, unsigned value, size_t count, stream_t stream) {
  vgpu_stream_work(stream);
  return fill_words(to, value, count);
}

// ---- virtual memory management: PyTorch's expandable segments ----
//
// A handle has memory, counted once; a mapping gives it an address. The memory goes back when the handle
// was released as often as it was given out, and its last mapping ended.
struct memory { size_t size; int device, references, mappings; struct memory *next; };
struct mapping { address_t address; size_t size; struct memory *memory; };
static struct memory *handles;
static struct mapping *mappings;
static size_t mapping_count, mapping_room;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static int is_handle(const struct memory *memory) {
  for (struct memory *m = handles; m; m = m->next) if (m == memory) return m->references > 0;
  return 0;
}
static void drop_unused(struct memory *memory) {
  if (memory->references || memory->mappings) return;
  for (struct memory **at = &handles; *at; at = &(*at)->next) {
    if (*at != memory) continue;
    *at = memory->next;
    break;
  }
  vgpu_give_memory(memory->device, memory->size);
  free(memory);
}
// The first mapping that ends after an address: they are sorted and do not overlap.
static size_t find_mapping(address_t address) {
  size_t low = 0, high = mapping_count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (mappings[middle].address + mappings[middle].size <= address) low = middle + 1;
    else high = middle;
  }
  return low;
}

int vgpu_device_at(const void *address) {
  pthread_mutex_lock(&mutex);
  size_t at = find_mapping((address_t)address);
  int is_mapped = at < mapping_count && mappings[at].address <= (address_t)address;
  int device = is_mapped ? mappings[at].memory->device : vgpu_device_of(address);
  pthread_mutex_unlock(&mutex);
  return device;
}

size_t vgpu_usable_from(const void *address) {
  size_t usable = 0;
  pthread_mutex_lock(&mutex);
  size_t at = find_mapping((address_t)address);
  int is_mapped = at < mapping_count && mappings[at].address <= (address_t)address;
  if (is_mapped) {
    address_t end = mappings[at].address + mappings[at].size;
    while (++at < mapping_count && mappings[at].address == end) end += mappings[at].size;
    usable = end - (address_t)address;
  }
  pthread_mutex_unlock(&mutex);
  if (is_mapped) return usable;
  return vgpu_device_of(address) >= 0 ? vgpu_allocated_from(address) : vgpu_pinned_from(address);
}

// True if memory is mapped to an address of the range. The mutex is held.
static int has_mapping(address_t address, size_t size) {
  size_t at = find_mapping(address);
  return at < mapping_count && mappings[at].address - address < size;
}

API(int, cuMemGetAllocationGranularity)(size_t *granularity, const void *properties, int option) {
  (void)properties, (void)option;
  *granularity = GRANULARITY;
  return CUDA_OK;
}
API(int, cuMemAddressReserve)(address_t *address, size_t size, size_t alignment, address_t wanted, unsigned long long flags) {
  (void)wanted, (void)flags;
  if (!size || size % GRANULARITY || (alignment & (alignment - 1))) return CUDA_INVALID_VALUE;
  *address = (address_t)vgpu_reserve_addresses(machine_device(), size, alignment, 0);
  return *address ? CUDA_OK : CUDA_OUT_OF_MEMORY;
}
API(int, cuMemAddressFree)(address_t address, size_t size) {
  pthread_mutex_lock(&mutex);
  int is_free = vgpu_is_reserved((void *)address, size) && !has_mapping(address, size) && !vgpu_release_addresses((void *)address, size);
  pthread_mutex_unlock(&mutex);
  return is_free ? CUDA_OK : CUDA_INVALID_VALUE;
}
// CUmemAllocationProp: type of the allocation, of the handle, then type and number of the place.
API(int, cuMemCreate)(struct memory **handle, size_t size, const int *properties, unsigned long long flags) {
  (void)flags;
  if (!size || size % GRANULARITY) return CUDA_INVALID_VALUE;
  if (!is_device(properties[3])) return CUDA_INVALID_DEVICE;
  int device = vgpu_machine_device(properties[3]);
  struct memory *memory = malloc(sizeof *memory);
  if (!memory || vgpu_take_memory(device, size)) {
    free(memory);
    return CUDA_OUT_OF_MEMORY;
  }
  pthread_mutex_lock(&mutex);
  *memory = (struct memory){size, device, 1, 0, handles};
  handles = memory;
  pthread_mutex_unlock(&mutex);
  *handle = memory;
  return CUDA_OK;
}
API(int, cuMemRelease)(struct memory *handle) {
  pthread_mutex_lock(&mutex);
  int status = is_handle(handle) ? CUDA_OK : CUDA_INVALID_VALUE;
  if (!status) {
    handle->references--;
    drop_unused(handle);
  }
  pthread_mutex_unlock(&mutex);
  return status;
}
API(int, cuMemMap)(address_t address, size_t size, size_t offset, struct memory *handle, unsigned long long flags) {
  (void)flags;
  int status = CUDA_OK;
  pthread_mutex_lock(&mutex);
  size_t at = find_mapping(address);
  if (!is_handle(handle) || offset || size != handle->size || !vgpu_is_reserved((void *)address, size)) status = CUDA_INVALID_VALUE;
  else if (at < mapping_count && mappings[at].address < address + size) status = CUDA_INVALID_VALUE;
  else if (mapping_count == mapping_room) {
    size_t more = mapping_room ? 2 * mapping_room : 256;
    struct mapping *grown = realloc(mappings, more * sizeof *mappings);
    if (grown) mappings = grown, mapping_room = more;
    else status = CUDA_OUT_OF_MEMORY;
  }
  if (!status) {
    memmove(mappings + at + 1, mappings + at, (mapping_count - at) * sizeof *mappings);
    mappings[at] = (struct mapping){address, size, handle};
    mapping_count++;
    handle->mappings++;
  }
  pthread_mutex_unlock(&mutex);
  return status;
}
API(int, cuMemUnmap)(address_t address, size_t size) {
  pthread_mutex_lock(&mutex);
  size_t first = find_mapping(address), end = first, mapped = 0;
  // Mappings are given back whole, and the range is theirs, without gaps.
  while (mapped < size && end < mapping_count && mappings[end].address == address + mapped) mapped += mappings[end++].size;
  int is_whole = size && mapped == size;
  if (is_whole) {
    for (size_t i = first; i < end; i++) {
      mappings[i].memory->mappings--;
      drop_unused(mappings[i].memory);
    }
    memmove(mappings + first, mappings + end, (mapping_count - end) * sizeof *mappings);
    mapping_count -= end - first;
    vgpu_fill((void *)address, 0, size);
  }
  pthread_mutex_unlock(&mutex);
  return is_whole ? CUDA_OK : CUDA_INVALID_VALUE;
}
API(int, cuMemSetAccess)(address_t address, size_t size, const void *access, size_t count) {
  (void)access, (void)count;
  return vgpu_check((void *)address, size);
}
API(int, cuMemGetAccess)(unsigned long long *flags) { *flags = 3; return CUDA_OK; } // read and write
API(int, cuMemRetainAllocationHandle)(struct memory **handle, void *address) {
  pthread_mutex_lock(&mutex);
  size_t at = find_mapping((address_t)address);
  int is_mapped = at < mapping_count && mappings[at].address <= (address_t)address;
  if (is_mapped) {
    *handle = mappings[at].memory;
    mappings[at].memory->references++;
  }
  pthread_mutex_unlock(&mutex);
  return is_mapped ? CUDA_OK : CUDA_INVALID_VALUE;
}
API(int, cuMemGetAllocationPropertiesFromHandle)(int *properties, struct memory *handle) {
  pthread_mutex_lock(&mutex);
  int is_known = is_handle(handle), device = is_known ? handle->device : 0;
  pthread_mutex_unlock(&mutex);
  if (!is_known) return CUDA_INVALID_VALUE;
  memset(properties, 0, 32); // CUmemAllocationProp
  properties[0] = 1; // pinned
  properties[2] = 1; // on a device
  properties[3] = device;
  return CUDA_OK;
}
// A handle is shared as a file that says whose it is. Memory of other processes cannot be reached: a process that runs
// without the others of its job shares with itself (symmetric memory).
enum { POSIX_FILE = 1 }; // CUmemAllocationHandleType
struct shared { pid_t process; struct memory *handle; };
API(int, cuMemExportToShareableHandle)(int *file, struct memory *handle, int type, unsigned long long flags) {
  (void)flags;
  if (type != POSIX_FILE) return vgpu_unimplemented("cuMemExportToShareableHandle", CUDA_NOT_SUPPORTED);
  struct shared shared = {getpid(), handle};
  pthread_mutex_lock(&mutex);
  int is_known = is_handle(handle);
  pthread_mutex_unlock(&mutex);
  if (!is_known) return CUDA_INVALID_VALUE;
  *file = vgpu_memory_file("xmem-vgpu-handle");
  if (*file < 0) return CUDA_OUT_OF_MEMORY;
  if (pwrite(*file, &shared, sizeof shared, 0) == sizeof shared) return CUDA_OK;
  close(*file);
  return CUDA_OUT_OF_MEMORY;
}
API(int, cuMemImportFromShareableHandle)(struct memory **handle, void *file, int type) {
  struct shared shared = {0, NULL};
  if (type != POSIX_FILE) return vgpu_unimplemented("cuMemImportFromShareableHandle", CUDA_NOT_SUPPORTED);
  if (pread((int)(intptr_t)file, &shared, sizeof shared, 0) != sizeof shared) return CUDA_INVALID_VALUE;
  if (shared.process != getpid()) return vgpu_unimplemented("cuMemImportFromShareableHandle", CUDA_NOT_SUPPORTED);
  pthread_mutex_lock(&mutex);
  int is_known = is_handle(shared.handle);
  if (is_known) {
    shared.handle->references++;
    *handle = shared.handle;
  }
  pthread_mutex_unlock(&mutex);
  return is_known ? CUDA_OK : CUDA_INVALID_VALUE;
}

// ---- streams and events ----
API(int, cuStreamCreate)(stream_t *stream, unsigned flags) { return vgpu_stream_create(stream, machine_device(), flags, 0); }
API(int, cuStreamCreateWithPriority)(stream_t *stream, unsigned flags, int priority) { return vgpu_stream_create(stream, machine_device(), flags, priority); }
API(int, cuStreamDestroy_v2)(stream_t stream) { return vgpu_stream_destroy(stream); }
API(int, cuStreamQuery)(stream_t stream) { return vgpu_stream_synchronize(stream); }
API(int, cuStreamSynchronize)(stream_t stream) { return vgpu_stream_synchronize(stream); }
API(int, cuStreamWaitEvent)(stream_t stream, struct event *event, unsigned flags) { return vgpu_stream_wait(stream, event, flags); }
API(int, cuStreamIsCapturing)(stream_t stream, int *status) { if (!vgpu_is_stream(stream)) return CUDA_INVALID_HANDLE; *status = vgpu_capture_status(stream, NULL, NULL); return CUDA_OK; }
API(int, cuStreamGetCtx)(stream_t stream, void **context) { (void)stream; return vgpu_cuCtxGetCurrent(context); }
API(int, cuEventCreate)(struct event **event, unsigned flags) { (void)flags; return vgpu_event_create(event); }
API(int, cuEventDestroy_v2)(struct event *event) { return vgpu_event_destroy(event); }
API(int, cuEventRecord)(struct event *event, stream_t stream) { return vgpu_event_record(event, stream, 0, __builtin_return_address(0)); }
API(int, cuEventQuery)(struct event *event) { return vgpu_event_query(event); }
API(int, cuEventSynchronize)(struct event *event) { return vgpu_event_synchronize(event); }
API(int, cuEventElapsedTime)(float *milliseconds, struct event *from, struct event *to) { return vgpu_event_elapsed(milliseconds, from, to); }

// ---- kernels: launched without an effect ----
API(int, cuOccupancyMaxActiveBlocksPerMultiprocessor)(int *blocks, void *function, int block, size_t shared) { (void)function; *blocks = vgpu_occupancy(block, shared); return CUDA_OK; }
API(int, cuOccupancyMaxActiveClusters)(int *clusters) { *clusters = vgpu_config()->sms / 2; return CUDA_OK; }
API(int, cuOccupancyMaxPotentialClusterSize)(int *size) { *size = 8; return CUDA_OK; }
API(int, cuLaunchKernel)(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, stream_t stream) {
  (void)function, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared;
  vgpu_stream_work(stream);
  return CUDA_OK;
}
API(int, cuLaunchCooperativeKernel)(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, stream_t stream) {
  return vgpu_cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, stream);
}
// CUlaunchConfig: seven sizes, then the stream.
struct launch_config { unsigned sizes[7]; stream_t stream; };
API(int, cuLaunchKernelEx)(const struct launch_config *config) { vgpu_stream_work(config->stream); return CUDA_OK; }
API(int, cuLaunchHostFunc)(stream_t stream, void (*call)(void *), void *data) {
  if (!vgpu_capture_status(stream, NULL, NULL)) call(data);
  return CUDA_OK;
}
API(int, cuTensorMapEncodeTiled)(void *map) { memset(map, 0, 128); return CUDA_OK; }
API(int, cuTensorMapEncodeIm2col)(void *map) { memset(map, 0, 128); return CUDA_OK; }
API(int, cuStreamWriteValue32_v2)(stream_t stream, address_t address, unsigned value, unsigned flags) {
  (void)flags;
  vgpu_stream_work(stream);
  if (vgpu_check_fill((void *)address, 4)) return CUDA_INVALID_VALUE;
  memcpy((void *)address, &value, 4);
  return CUDA_OK;
}
API(int, cuStreamWriteValue32)(stream_t stream, address_t address, unsigned value, unsigned flags) { return vgpu_cuStreamWriteValue32_v2(stream, address, value, flags); }
// A linker of PTX makes an image of one byte.
static const char linked[64];
API(int, cuLinkCreate_v2)(unsigned count, void *options, void *values, void **state) { (void)count, (void)options, (void)values; *state = (void *)linked; return CUDA_OK; }
API(int, cuLinkAddData_v2)(void *state) { (void)state; return CUDA_OK; }
API(int, cuLinkComplete)(void *state, void **image, size_t *size) { (void)state; *image = (void *)linked; *size = sizeof linked; return CUDA_OK; }
API(int, cuLinkDestroy)(void *state) { (void)state; return CUDA_OK; }

// ---- functions by name ----
static void *find(void *in, const char *prefix, const char *name) {
  char text[256];
  // The newest version of a name is meant, which has the highest number.
  for (int version = 4; in && version >= 1; version--) {
    if (version > 1) snprintf(text, sizeof text, "%s%s_v%d", prefix, name, version);
    else snprintf(text, sizeof text, "%s%s", prefix, name);
    void *function = dlsym(in, text);
    if (function) return function;
  }
  return NULL;
}

static void *self, *stand_in;
static void open_libraries(void) {
  Dl_info info;
  if (dladdr((void *)vgpu_driver_function, &info)) self = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  // Loaded already, or not at all: a driver of this machine is not what is looked for.
  stand_in = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
}

void *vgpu_driver_function(const char *name) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, open_libraries);
  void *function = find(self, "vgpu_", name);
  // What is not implemented is there, and reports that it was called.
  return function ? function : find(stand_in, "", name);
}
API(int, cuGetProcAddress)(const char *name, void **function, int version, uint64_t flags) {
  (void)version, (void)flags;
  *function = vgpu_driver_function(name);
  return *function ? CUDA_OK : CUDA_NOT_FOUND;
}
API(int, cuGetProcAddress_v2)(const char *name, void **function, int version, uint64_t flags, int *status) {
  int found = vgpu_cuGetProcAddress(name, function, version, flags);
  if (status) *status = found ? 1 : 0;
  return found;
}
// Programs that link the runtime statically ask for tables that are not documented. cuDNN is among them, and goes
// on without: so the log does not name this call.
API(int, cuGetExportTable)(const void **table, const void *id) { (void)id; *table = NULL; return CUDA_NOT_FOUND; }
