// Workspaces of cuFFT: what cufftXtMakePlanMany answered on an H100 with cuFFT 12.0 of CUDA 13.0
// (traces/measured/h100-80g/libraries.jsonl.zst: 2,148 transforms of one dimension, 1,032 of two and three). NVIDIA documents
// no sizes. All but eight are exact, and these within 0.6 %. The formulas know three ways to transform a line:
//
// - in one kernel, without a workspace: lengths up to 10,000 that have small factors, some longer ones, and primes;
// - in several, with a copy of the data: longer lines, and other factors;
// - by Bluestein's algorithm, with two copies padded to a length of small factors: large primes.
//
// Lines of real numbers take half as many complex ones if they are even, else one for each number or two of a batch together.
// More dimensions need no more than the line that needs most. Strides are not looked at. The memory that a plan takes beside
// (mostly none, else one or more steps of 2 MiB of the driver's) did not follow from the shape.
#include "fft.h"
#include "numbers.h"

static int is_among(size_t n, const int *list, size_t count) {
  for (size_t i = 0; i < count; i++) if ((size_t)list[i] == n) return 1;
  return 0;
}
#define IS_AMONG(n, list) is_among(n, list, sizeof list / sizeof *list)

static size_t largest_factor(size_t n) {
  size_t largest = 1;
  for (size_t p = 2; p * p <= n; p++)
    while (n % p == 0) n /= p, largest = p;
  return n > 1 ? n : largest;
}

static int is_power(size_t n, size_t factor) {
  while (n > 1 && n % factor == 0) n /= factor;
  return n == 1;
}

// The next length at least `n` without other factors than 2, 3 and 5.
static size_t next_smooth(size_t n) {
  while (largest_factor(n) > 5) n++;
  return n;
}

enum way { ONE_KERNEL, COPY, BLUESTEIN };

// The longest prime, or prime factor, that has a kernel: 4,093 and 2,039 have one, 8,191 and 4,093 do not.
static size_t longest_prime(enum fft_type type) { return type == FFT_DOUBLE ? 2048 : 4096; }

// How a line of `n` complex numbers is transformed.
static enum way way_of(size_t n, enum fft_type type, int *is_measured) {
  static const int COPIED[] = {12000, 14641, 22050};
  size_t factor = largest_factor(n);
  if (factor > longest_prime(type)) return BLUESTEIN;
  if (factor == n) return ONE_KERNEL;
  if (factor >= 17 && !is_power(n, factor) && n != 513) {
    *is_measured &= n == 85 || n == 129;
    return COPY;
  }
  if (n <= (type == FFT_HALF ? 8192 : 10000)) return type == FFT_DOUBLE && n == 3000 ? COPY : ONE_KERNEL;
  if (type == FFT_HALF || n > 25000) return COPY;
  if (type == FFT_DOUBLE) return n == 16384 ? ONE_KERNEL : COPY;
  return IS_AMONG(n, COPIED) ? COPY : ONE_KERNEL;
}

// Numbers of `align` are 1 KiB.
static size_t padded(size_t n, size_t lines, size_t more, size_t align) { return 2 * round_up(next_smooth(2 * n - 1) * lines + more, align); }

static size_t of_complex(size_t n, size_t lines, enum fft_type type, size_t align, int *is_measured) {
  switch (way_of(n, type, is_measured)) {
    case ONE_KERNEL: return 0;
    case COPY: return n * lines;
    default: return padded(n, lines, 0, align);
  }
}

// Whether a line of real numbers is transformed in one kernel.
static int is_real_kernel(size_t n, enum fft_type type, int *is_measured) {
  static const int EVEN[] = {512, 600, 640, 720, 768, 800, 960, 1000, 1008, 1024, 1080, 1920, 2048, 4096};
  static const int OTHERS[] = {500, 900, 1200, 1280, 1440, 1500, 1600, 2000};
  size_t factor = largest_factor(n);
  if (n % 2 == 0) {
    if (n <= 480) return factor < 17 || factor == n / 2;
    if (IS_AMONG(n, EVEN)) return 1;
    if (type != FFT_DOUBLE && (n == 8192 || (n == 16384 && type == FFT_SINGLE))) return 1;
    if (n < 2500 && !IS_AMONG(n, OTHERS)) *is_measured = 0;
    return 0;
  }
  if (n < 128) return factor < 17 || factor == n;
  return factor <= 17 && (type == FFT_DOUBLE ? n <= 3125 && n != 2197 : n <= 5000);
}

// `rows` lines of each of `batch` transforms.
static size_t of_real(size_t n, size_t rows, size_t batch, enum fft_type type, size_t align, int *is_measured) {
  if (is_real_kernel(n, type, is_measured)) return 0;
  if (n % 2 == 0) {
    size_t half = n / 2, lines = rows * batch;
    enum way way = way_of(half, type, is_measured);
    return way == BLUESTEIN ? half * lines + padded(half, lines, 0, align) : (half + (way == COPY)) * lines;
  }
  size_t lines = rows * ((batch + 1) / 2);
  if (way_of(n, type, is_measured) == BLUESTEIN) return n * lines + padded(n, lines, 1, align);
  return n * lines + round_up(n * lines, align);
}

size_t vgpu_fft_workspace(enum fft_kind kind, enum fft_type type, const long long *sizes, int rank, size_t batch, int *is_measured) {
  static const size_t BYTES[] = {4, 8, 16};
  *is_measured = 1;
  size_t rows = 1, numbers = 0, align = 1024 / BYTES[type];
  if (rank < 1) return 0;
  for (int i = 0; i < rank; i++) if (sizes[i] < 1) return 0;
  for (int i = 0; i + 1 < rank; i++) rows *= (size_t)sizes[i];
  size_t n = (size_t)sizes[rank - 1], line = kind == FFT_COMPLEX ? n : n / 2 + 1;
  // The other dimensions: `line` transforms of each of their lines.
  for (int i = 0; i + 1 < rank; i++) {
    size_t length = (size_t)sizes[i];
    numbers = most(numbers, of_complex(length, rows / length * line * batch, type, align, is_measured));
  }
  size_t last = kind == FFT_COMPLEX ? of_complex(n, rows * batch, type, align, is_measured) : of_real(n, rows, batch, type, align, is_measured);
  return most(numbers, last) * BYTES[type];
}
