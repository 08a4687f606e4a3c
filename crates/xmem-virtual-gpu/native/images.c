// Kernels and the images of their code: a binary that a program registers has one image for each architecture that it
// was compiled for. The driver takes the latest one that the device can run, or compiles PTX for it.
#include "vgpu.h"
#include <pthread.h>
#include <stdlib.h>

// What `__cudaRegisterFatBinary` is told (fatbinary_section.h of CUDA's toolkit).
struct wrapper { uint32_t magic, version; const void *images; void *file; };
#define WRAPPER_MAGIC 0x466243b1u
// The images, as nvFatbin and cuobjdump know them: a head, then images with a head each. Not documented; as in the
// wheels of PyTorch 1.13 to 2.15.
struct images { uint32_t magic; uint16_t version, head; uint64_t size; };
#define IMAGES_MAGIC 0xba55ed50u
struct image { uint16_t kind, version; uint32_t head; uint64_t size; uint32_t compressed, options; uint16_t minor, major; uint32_t architecture; };
enum { PTX = 1, CUBIN = 2 };

// `code` is what the kernels were compiled for, `runs` what the device executes: they differ where it is PTX (`kind`).
struct binary { const struct wrapper *wrapper; int known, kind, code, runs; };

// The functions of programs, which stand for kernels, and their binaries: a table with open addressing.
struct place { const void *function; struct binary *binary; };
static struct place *places;
static size_t count, room;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

static size_t find(const void *function) {
  size_t at = (size_t)((uintptr_t)function * 0x9e3779b97f4a7c15u >> 20) & (room - 1);
  while (places[at].function && places[at].function != function) at = (at + 1) & (room - 1);
  return at;
}

// Moves the entries to a table with so many places, without those of `dropped`.
static int move(size_t more, const struct binary *dropped) {
  struct place *old = places, *made = calloc(more, sizeof *made);
  size_t old_room = room;
  if (!made) return 0;
  places = made, room = more, count = 0;
  for (size_t i = 0; i < old_room; i++) {
    if (!old[i].function || old[i].binary == dropped) continue;
    places[find(old[i].function)] = old[i];
    count++;
  }
  free(old);
  return 1;
}

void **vgpu_binary_register(const void *wrapper) {
  struct binary *binary = vgpu_handle_make(HANDLE_BINARY, sizeof *binary);
  if (binary) binary->wrapper = wrapper;
  return (void **)binary;
}

void vgpu_binary_unregister(void **handle) {
  struct binary *binary = (struct binary *)handle;
  if (!vgpu_handle_remove(HANDLE_BINARY, handle)) return;
  pthread_rwlock_wrlock(&lock);
  // Without memory for a table, the binary stays.
  if (!room || move(room, binary)) free(binary);
  pthread_rwlock_unlock(&lock);
}

void vgpu_kernel_register(void **handle, const void *function) {
  if (!function || !vgpu_handle_exists(HANDLE_BINARY, handle)) return;
  pthread_rwlock_wrlock(&lock);
  if (4 * (count + 1) <= 3 * room || move(room ? 2 * room : 4096, NULL)) {
    size_t at = find(function);
    count += !places[at].function;
    places[at] = (struct place){function, (struct binary *)handle};
  }
  pthread_rwlock_unlock(&lock);
}

// Takes an image if the device can run it, and it is later than that which was taken. Code runs on the later devices of
// its generation, and PTX is compiled for any later device; the driver takes code where there is some.
static void consider(struct binary *binary, const struct image *image) {
  const struct config *g = vgpu_config();
  int device = g->major * 10 + g->minor, architecture = (int)image->architecture;
  if (architecture > device) return;
  int can_run = image->kind == PTX || (image->kind == CUBIN && architecture / 10 == g->major);
  if (!can_run || (image->kind == binary->kind ? architecture <= binary->code : binary->kind == CUBIN)) return;
  binary->kind = image->kind;
  binary->code = architecture;
  binary->runs = image->kind == PTX ? device : architecture;
}

// Reads which images a binary has. One of another form has code for every device.
static void read_images(struct binary *binary) {
  const struct wrapper *wrapper = binary->wrapper;
  const struct images *images = wrapper && wrapper->magic == WRAPPER_MAGIC ? wrapper->images : NULL;
  int device = vgpu_config()->major * 10 + vgpu_config()->minor;
  if (!images || images->magic != IMAGES_MAGIC || images->head < sizeof *images) {
    binary->code = binary->runs = device;
    return;
  }
  const char *at = (const char *)images + images->head, *end = at + images->size;
  while ((size_t)(end - at) >= sizeof(struct image)) {
    const struct image *image = (const struct image *)at;
    if (image->head < sizeof *image || image->size > (size_t)(end - at) - image->head) break;
    consider(binary, image);
    at += image->head + image->size;
  }
}

int vgpu_kernel_code(const void *function, int *code, int *runs) {
  int device = vgpu_config()->major * 10 + vgpu_config()->minor;
  *code = *runs = device;
  pthread_rwlock_rdlock(&lock);
  struct binary *binary = room ? places[find(function)].binary : NULL;
  int known = !binary || __atomic_load_n(&binary->known, __ATOMIC_ACQUIRE);
  if (known && binary) *code = binary->code, *runs = binary->runs;
  pthread_rwlock_unlock(&lock);
  if (!known) {
    pthread_rwlock_wrlock(&lock);
    binary = places[find(function)].binary;
    if (binary && !binary->known) {
      read_images(binary);
      __atomic_store_n(&binary->known, 1, __ATOMIC_RELEASE);
    }
    if (binary) *code = binary->code, *runs = binary->runs;
    pthread_rwlock_unlock(&lock);
  }
  return *code ? CUDA_OK : CUDA_NO_KERNEL_IMAGE;
}
