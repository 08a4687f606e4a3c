// Whether memory may be read and written: what goes beyond an allocation is CUDA's invalid value, and touches nothing.
#include "vgpu.h"

char vgpu_symbols[MIB];
static int is_symbol(const void *address) {
  return (const char *)address >= vgpu_symbols && (const char *)address < vgpu_symbols + sizeof vgpu_symbols;
}

int vgpu_check(const void *address, size_t size) {
  if (!size) return CUDA_OK;
  if (!address) return CUDA_INVALID_VALUE;
  size_t usable = is_symbol(address) ? (size_t)(vgpu_symbols + sizeof vgpu_symbols - (const char *)address) : vgpu_usable_from(address);
  return size <= usable && (uintptr_t)address <= UINTPTR_MAX - size ? CUDA_OK : CUDA_INVALID_VALUE;
}

int vgpu_check_rows(const void *address, size_t pitch, size_t width, size_t rows) {
  size_t before, size;
  if (!width || !rows) return CUDA_OK;
  if (width > pitch) return CUDA_INVALID_PITCH;
  if (__builtin_mul_overflow(pitch, rows - 1, &before) || __builtin_add_overflow(before, width, &size)) return CUDA_INVALID_VALUE;
  return vgpu_check(address, size);
}

int vgpu_check_fill(const void *address, size_t size) {
  if (size && vgpu_device_of(address) < 0 && !vgpu_is_pinned(address) && !is_symbol(address)) return CUDA_INVALID_VALUE;
  return vgpu_check(address, size);
}

int vgpu_no_error(void *info, size_t count) {
  size_t size;
  if (info && !__builtin_mul_overflow(count, sizeof(int), &size) && !vgpu_check(info, size)) vgpu_fill(info, 0, size);
  return 0;
}
