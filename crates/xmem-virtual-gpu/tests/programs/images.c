/* Binaries with images for several architectures: the driver takes the latest that the device can run. Its capability
 * is the argument, such as 89. */
#include "cuda.h"
#define NO_KERNEL_IMAGE 209
enum { PTX = 1, CUBIN = 2 };

struct image { uint16_t kind, version; uint32_t head; uint64_t size; uint32_t compressed, options; uint16_t minor, major; uint32_t architecture; char code[16]; };
struct images { uint32_t magic; uint16_t version, head; uint64_t size; struct image image[8]; };
struct wrapper { uint32_t magic, version; const void *images; void *file; };
struct attributes { size_t sizes[3]; int max_threads, registers, ptx_version, binary_version, more[3]; };

static struct images storage[16];
static struct wrapper wrappers[16];
static int made;

/* Registers a binary, given as kind and architecture in turn up to a zero, and a kernel of it. */
static void **binary(const int *listed, const void *kernel) {
  struct images *images = &storage[made];
  *images = (struct images){0xba55ed50u, 1, 16, 0, {{0}}};
  int count = 0;
  for (; listed[2 * count]; count++)
    images->image[count] = (struct image){(uint16_t)listed[2 * count], 0x101, 32, 16, 0, 0, 0, 8, (uint32_t)listed[2 * count + 1], {0}};
  images->size = (uint64_t)count * sizeof(struct image);
  struct wrapper *wrapper = &wrappers[made++];
  *wrapper = (struct wrapper){0x466243b1u, 1, images, NULL};
  void **handle = __cudaRegisterFatBinary(wrapper);
  __cudaRegisterFunction(handle, kernel);
  return handle;
}

/* The wheel of PyTorch 2.11 for CUDA 13. */
static const int WHEEL[] = {CUBIN, 75, CUBIN, 80, CUBIN, 86, CUBIN, 90, CUBIN, 100, CUBIN, 120, 0};

static void takes(const void *kernel, int code, int runs) {
  struct attributes attributes;
  if (!code) {
    FAILS(cudaFuncGetAttributes(&attributes, kernel), NO_KERNEL_IMAGE);
    FAILS(cudaLaunchKernel(kernel, (struct size){1, 1, 1}, (struct size){1, 1, 1}, NULL, 0, NULL), NO_KERNEL_IMAGE);
    FAILS(cudaGetLastError(), NO_KERNEL_IMAGE);
    return;
  }
  CHECK(cudaFuncGetAttributes(&attributes, kernel));
  FAILS(attributes.ptx_version, code);
  FAILS(attributes.binary_version, runs);
  CHECK(cudaLaunchKernel(kernel, (struct size){1, 1, 1}, (struct size){1, 1, 1}, NULL, 0, NULL));
}

int main(int count, char **arguments) {
  int device = count > 1 ? atoi(arguments[1]) : 0;
  static char kernels[20000];
  binary(WHEEL, &kernels[0]);
  int wheel = device < 75 ? 0 : device < 80 ? 75 : device < 86 ? 80 : device < 90 ? 86 : device;
  takes(&kernels[0], wheel, wheel);
  /* Code before PTX, in any order; PTX is compiled for the device. */
  static const int both[] = {PTX, 50, CUBIN, 80, PTX, 70, 0};
  binary(both, &kernels[1]);
  takes(&kernels[1], device / 10 == 8 ? 80 : device >= 70 ? 70 : 50, device / 10 == 8 ? 80 : device);
  /* Of another form, and not registered: code for every device. */
  static struct wrapper other = {0x466243b2u, 1, NULL, NULL};
  __cudaRegisterFunction(__cudaRegisterFatBinary(&other), &kernels[2]);
  takes(&kernels[2], device, device);
  takes(&kernels[3], device, device);
  /* Cut off after its head. */
  void **cut = binary(WHEEL, &kernels[4]);
  storage[made - 1].size = 40;
  takes(&kernels[4], 0, 0);
  /* More kernels than the table begins with; those of a binary go with it. */
  void **many = binary(WHEEL, &kernels[5]);
  for (int i = 6; i < (int)sizeof kernels; i++) __cudaRegisterFunction(many, &kernels[i]);
  takes(&kernels[19999], wheel, wheel);
  __cudaUnregisterFatBinary(many);
  __cudaUnregisterFatBinary(many);
  __cudaUnregisterFatBinary(cut);
  takes(&kernels[4], device, device);
  takes(&kernels[19999], device, device);
  takes(&kernels[0], wheel, wheel);
  return 0;
}
