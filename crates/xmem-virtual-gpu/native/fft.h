// Workspaces of cuFFT by the shapes of transforms.
#pragma once
#include <stddef.h>

enum fft_kind { FFT_COMPLEX, FFT_REAL }; // of complex numbers; of real ones, in one direction or the other
enum fft_type { FFT_HALF, FFT_SINGLE, FFT_DOUBLE };

// Bytes for `batch` transforms of `rank` dimensions, the last of which is that of the real numbers. `is_measured` is 0 where
// the size is a bound: no transform like it was measured.
size_t vgpu_fft_workspace(enum fft_kind kind, enum fft_type type, const long long *sizes, int rank, size_t batch, int *is_measured);
