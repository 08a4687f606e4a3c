// The parts of the native library as they see each other. The files that implement an interface of CUDA
// (runtime.c, driver.c, nvml.c, ...) use config.c, memory.c and capture.c; these use nothing else.
#pragma once
#include <stddef.h>
#include <stdint.h>

// A function that a stand-in forwards to: `cudaMalloc` of the stand-in is `vgpu_cudaMalloc` here.
#define API(type, name) __attribute__((visibility("default"))) type vgpu_##name

#define MIB ((size_t)1 << 20)
#define MAX_DEVICES 64

// ---- config.c: the device and the options, from the file that XMEM_VGPU_CONFIG names ----
struct config {
  char name[256];               // as torch.cuda.get_device_name() gives it
  uint64_t memory;              // total memory, bytes
  uint64_t context;             // bytes that a process takes before its first allocation
  uint64_t capacity;            // bytes that can be allocated; 0: memory less context
  int devices;                  // devices of the machine
  int major, minor;             // compute capability
  int sms, threads_per_sm, blocks_per_sm, registers_per_sm;
  int shared_per_block_optin, shared_per_sm;
  int l2;                       // bytes
  int sm_clock, memory_clock;   // kHz
  int bus_width;                // bits
  int pci_device;
  int runtime, driver;          // versions as CUDA numbers them: 12040 is 12.4
  int cublas, nccl;             // versions as these libraries number them
  int run_ahead;                // 1: work is complete when the host waits for it (completion.c)
  uint64_t copy_limit;          // copies and fills up to this many bytes are carried out
  char cudnn[4096];             // path of the real cuDNN
};
const struct config *vgpu_config(void);
// True if there is a configuration; else there are no devices.
int vgpu_configured(void);
// Devices that the process sees, and the number of each on the machine (CUDA_VISIBLE_DEVICES).
int vgpu_visible_devices(void);
int vgpu_machine_device(int visible);
// Writes a line to the log.
void vgpu_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
// Logs once that a call is not implemented, and returns `status`. Stand-ins call it.
int vgpu_unimplemented(const char *name, int status);
// Logs once that a call returned zero for a size that is not known without a device.
void vgpu_unknown_size(const char *name);
// Logs once that a call returned an estimate of a size that is not known without a device.
void vgpu_estimated_size(const char *name);

// ---- memory.c: device memory as address space and accounts ----
size_t vgpu_free_memory(int device);
// An open file in memory, or -1.
int vgpu_memory_file(const char *name);
// NULL if the memory does not suffice.
void *vgpu_allocate(int device, size_t size);
// Zero, or -1 if `address` was not allocated.
int vgpu_release(void *address);
// Address space alone, and memory without an address (cuMemAddressReserve, cuMemCreate, memory pools). `usable` bytes
// from the beginning may be used as they are; the rest once memory is mapped to them.
void *vgpu_reserve_addresses(int device, size_t size, size_t alignment, size_t usable);
int vgpu_release_addresses(void *address, size_t size);
int vgpu_take_memory(int device, size_t size);
void vgpu_give_memory(int device, size_t size);
// The size of an allocation or reservation that begins here, else 0.
size_t vgpu_allocation_size(const void *address);
// Bytes from an address to the end of what was allocated there; 0 for device memory that was not, SIZE_MAX for
// addresses that are not the device's.
size_t vgpu_allocated_from(const void *address);
// The same, with the memory that is mapped to addresses, of pinned memory of the host, too.
size_t vgpu_usable_from(const void *address);
// True if all of `size` bytes are within one reservation of address space.
int vgpu_is_reserved(const void *address, size_t size);
// The device of an address, else -1.
int vgpu_device_of(const void *address);
// The same, of memory that was mapped to an address: that of the memory, wherever the address was reserved.
int vgpu_device_at(const void *address);
// True if device memory can be had at all; else a line in the log says why.
int vgpu_memory_usable(int device);
void vgpu_copy(void *to, const void *from, size_t size);
void vgpu_copy_rows(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t rows);
void vgpu_fill(void *to, int value, size_t size);
// Zeros in a block that an allocator gives out; nothing for memory that is not the device's.
void vgpu_clear_block(void *start, size_t size);

// ---- bounds.c: whether memory may be read and written ----
// CUDA_OK if so many bytes from an address can be read or written, else CUDA_INVALID_VALUE.
int vgpu_check(const void *address, size_t size);
int vgpu_check_rows(const void *address, size_t pitch, size_t width, size_t rows);
// The same for memory that is filled: it must be the device's, or pinned.
int vgpu_check_fill(const void *address, size_t size);
// Says of so many problems that a library solved them: zeros for `info`, which nothing else writes and PyTorch reads. It is
// left as it is where the memory is not the program's. Returns the status of a success.
int vgpu_no_error(void *info, size_t count);
// The variables of kernels and modules, which have no values.
extern char vgpu_symbols[MIB];

// ---- host.c: pinned host memory ----
void *vgpu_host_allocate(size_t size);
int vgpu_host_release(void *address);
int vgpu_host_register(void *address, size_t size);
int vgpu_host_unregister(void *address);
int vgpu_is_pinned(const void *address);
// Bytes from an address to the end of the pinned memory that was allocated here, SIZE_MAX for other addresses.
size_t vgpu_pinned_from(const void *address);

// ---- handles.c: the handles that exist ----
enum { HANDLE_STREAM, HANDLE_EVENT, HANDLE_GRAPH, HANDLE_POOL, HANDLE_COMMUNICATOR, HANDLE_LIBRARY, HANDLE_DESCRIPTOR, HANDLE_BINARY, HANDLE_MODULE, HANDLE_KERNEL };
// Zero, or -1 if there is no memory.
int vgpu_handle_add(int kind, const void *handle);
int vgpu_handle_exists(int kind, const void *handle);
// 1 if it existed.
int vgpu_handle_remove(int kind, const void *handle);
// A handle with so many bytes of zeros; NULL if there is no memory.
void *vgpu_handle_make(int kind, size_t size);
// 1 if it existed, and is freed.
int vgpu_handle_drop(int kind, void *handle);

// ---- images.c: kernels, and the architectures that they were compiled for ----
// What __cudaRegisterFatBinary is told, and its handle.
void **vgpu_binary_register(const void *wrapper);
void vgpu_binary_unregister(void **handle);
void vgpu_kernel_register(void **binary, const void *function);
// The architecture that a kernel was compiled for (80 is 8.0), and that which the device executes; CUDA_NO_KERNEL_IMAGE
// if there is none for it. A function that is no program's has code for every device.
int vgpu_kernel_code(const void *function, int *code, int *runs);

// ---- pool.c: the stream-ordered allocator ----
struct pool;
struct pool *vgpu_default_pool(int device);
struct pool *vgpu_current_pool(int device);
void vgpu_set_current_pool(int device, struct pool *pool);
struct pool *vgpu_create_pool(int device);
// CUDA_INVALID_VALUE for what is no pool, or the default one, which cannot be destroyed.
int vgpu_destroy_pool(struct pool *pool);
int vgpu_is_pool(const struct pool *pool);
void *vgpu_pool_allocate(struct pool *pool, size_t size);
// 1 if the address is not a pool's.
int vgpu_pool_release(void *address);
void vgpu_pool_trim(struct pool *pool, size_t keep);
// Attributes of cudaMemPoolAttr; -1 for one that does not exist.
int vgpu_pool_get(struct pool *pool, int attribute, void *value);
int vgpu_pool_set(struct pool *pool, int attribute, const void *value);
// What a synchronization does: memory above the release thresholds goes back.
void vgpu_pools_synchronize(void);

struct stream;
struct event;
struct graph;

// ---- completion.c: when work on streams is complete ----
struct timeline;
struct moment { struct timeline *on; uint64_t at; long second; };
// The timeline of a stream, made if it has none yet; NULL for the streams that exist without being created. No
// timelines are needed where work is complete at once: then the result is NULL.
struct timeline *vgpu_timeline(struct timeline **of);
void vgpu_moment_record(struct moment *moment, struct timeline *timeline);
void vgpu_timeline_waits(struct timeline *timeline, struct moment moment);
int vgpu_moment_is_complete(struct moment moment);
// The host waits for a moment, for a timeline, or for all of them (NULL).
void vgpu_host_waits_for(struct moment moment);
void vgpu_host_waits(struct timeline *timeline);
// This thread puts work on streams.
void vgpu_thread_works(void);

// ---- activity.c: the log of what streams are told ----
void vgpu_log_work(const struct stream *stream);
// Between host and device.
void vgpu_log_copy(const struct stream *stream, size_t size);
void vgpu_log_collective(char kind, const struct stream *stream, const void *address, size_t size, int ranks);
// Returns the number of the moment that the event records; 0 where nothing is logged.
uint64_t vgpu_log_record(const struct stream *stream, const void *caller);
void vgpu_log_wait(const struct stream *stream, uint64_t moment);
// `h`: for a stream, `e`: for a moment, `d`: for the device.
void vgpu_log_host_waits(char kind, const struct stream *stream, uint64_t moment);

// ---- capture.c: streams, events, and the capture of graphs ----
enum {
  CUDA_OK = 0, CUDA_INVALID_VALUE = 1, CUDA_OUT_OF_MEMORY = 2, CUDA_NOT_INITIALIZED = 3, CUDA_INVALID_PITCH = 12,
  CUDA_NO_DEVICE = 100, CUDA_INVALID_DEVICE = 101, CUDA_INVALID_CONTEXT = 201, CUDA_NO_KERNEL_IMAGE = 209, CUDA_FILE_NOT_FOUND = 301,
  CUDA_INVALID_HANDLE = 400, CUDA_ILLEGAL_STATE = 401, CUDA_NOT_FOUND = 500, CUDA_NOT_READY = 600,
  CUDA_PEER_ALREADY_ENABLED = 704, CUDA_PEER_NOT_ENABLED = 705,
  CUDA_HOST_ALREADY_REGISTERED = 712, CUDA_HOST_NOT_REGISTERED = 713, CUDA_NOT_SUPPORTED = 801,
  CUDA_CAPTURE_UNSUPPORTED = 900, CUDA_CAPTURE_INVALIDATED = 901, CUDA_CAPTURE_UNMATCHED = 903,
  CUDA_CAPTURE_ISOLATION = 905, CUDA_CAPTURED_EVENT = 907, CUDA_CAPTURE_WRONG_THREAD = 908,
};
// True for a handle of a stream, which may be one that exists without being created.
int vgpu_is_stream(const struct stream *stream);
int vgpu_stream_create(struct stream **stream, int device, unsigned flags, int priority);
int vgpu_stream_destroy(struct stream *stream);
int vgpu_stream_priority(const struct stream *stream);
unsigned vgpu_stream_flags(const struct stream *stream);
int vgpu_stream_device(const struct stream *stream, int current);
unsigned long long vgpu_stream_id(const struct stream *stream);
int vgpu_stream_synchronize(struct stream *stream);
int vgpu_stream_wait(struct stream *stream, struct event *event, unsigned flags);
int vgpu_event_create(struct event **event);
int vgpu_event_destroy(struct event *event);
int vgpu_event_record(struct event *event, struct stream *stream, unsigned flags, const void *caller);
int vgpu_event_query(struct event *event);
int vgpu_event_synchronize(struct event *event);
int vgpu_event_elapsed(float *milliseconds, const struct event *from, const struct event *to);
// Counts an operation on a stream: it becomes a node if the stream is captured.
void vgpu_stream_work(struct stream *stream);
int vgpu_capture_begin(struct stream *stream, int mode);
int vgpu_capture_end(struct stream *stream, struct graph **graph);
// 0: none, 1: active, 2: invalidated.
int vgpu_capture_status(const struct stream *stream, unsigned long long *id, struct graph **graph);
int vgpu_capture_exchange_mode(int *mode);
// CUDA_OK if this thread may call a function that is unsafe during a capture; else the captures become
// invalid.
int vgpu_capture_unsafe_call(void);
int vgpu_device_synchronize(void);
struct graph *vgpu_graph_create(void);
// True for a graph that was made, and for one that a capture still makes.
int vgpu_is_graph(const struct graph *graph);
int vgpu_graph_destroy(struct graph *graph);
int vgpu_graph_clone(struct graph **copy, const struct graph *graph);
size_t vgpu_graph_nodes(const struct graph *graph);

// ---- properties.c ----
// An attribute by its number, which is the same in cudaDeviceAttr and CUdevice_attribute.
int vgpu_attribute(int attribute, int device);
void vgpu_uuid(char uuid[16], int device);
// Resident blocks of a multiprocessor for a kernel that needs 32 registers a thread.
int vgpu_occupancy(int block, size_t shared);
const char *vgpu_error_name(int status);
const char *vgpu_error_text(int status);

// ---- driver.c ----
// A function of the driver interface by its name without a version; NULL if no driver has it.
void *vgpu_driver_function(const char *name);
