/* The properties as a program of this major version of CUDA sees them. Arguments: major version, then
   memory, multiprocessors, threads of each, compute capability. */
#include "cuda.h"
#include <stdbool.h>

/* Offsets in cudaDeviceProp: CUDA 11 and 12, and from 13 on. */
struct field { int before_13, since_13, is_size; long expected; const char *name; };

int main(int count, char **arguments) {
  assert(count == 7);
  int major = atoi(arguments[1]);
  long memory = atol(arguments[2]), sms = atol(arguments[3]), threads = atol(arguments[4]);
  long cc_major = atol(arguments[5]), cc_minor = atol(arguments[6]);
  char properties[2048];
  memset(properties, 0x55, sizeof properties);
  size_t size = major >= 13 ? 1008 : major == 12 ? 1032 : 728;
  CHECK(major == 12 ? cudaGetDeviceProperties_v2(properties, 0) : cudaGetDeviceProperties(properties, 0));
  for (size_t i = size; i < sizeof properties; i++) assert(properties[i] == 0x55);
  assert(properties[0] != 0x55);
  const struct field fields[] = {
    {288, 288, 1, memory, "totalGlobalMem"}, {296, 296, 1, 49152, "sharedMemPerBlock"},
    {304, 304, 0, 65536, "regsPerBlock"}, {308, 308, 0, 32, "warpSize"},
    {320, 320, 0, 1024, "maxThreadsPerBlock"}, {360, 360, 0, cc_major, "major"},
    {364, 364, 0, cc_minor, "minor"}, {388, 384, 0, sms, "multiProcessorCount"},
    {604, 588, 0, 1, "unifiedAddressing"}, {624, 604, 0, threads, "maxThreadsPerMultiProcessor"},
    {648, 632, 0, 65536, "regsPerMultiprocessor"}, {688, 668, 0, 1, "cooperativeLaunch"},
  };
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
    const struct field *f = &fields[i];
    const char *at = properties + (major >= 13 ? f->since_13 : f->before_13);
    long value = 0;
    if (f->is_size) memcpy(&value, at, 8);
    else {
      int number;
      memcpy(&number, at, 4);
      value = number;
    }
    if (value != f->expected) {
      fprintf(stderr, "%s is %ld, expected %ld\n", f->name, value, f->expected);
      return 1;
    }
  }
  int version, attribute, blocks;
  CHECK(cudaRuntimeGetVersion(&version));
  assert(version / 1000 == major);
  CHECK(cudaDeviceGetAttribute(&attribute, 16, 0));
  assert(attribute == sms);
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, NULL, 256, 0));
  assert(blocks == threads / 256);
  /* CUDA 11 has no last argument, so that nothing must be written there. */
  void *function;
  int status = 77;
  CHECK(cudaGetDriverEntryPoint("cuMemCreate", &function, 0, &status));
  assert(function && status == (major == 11 ? 77 : 0));
  /* What is not implemented can be found, and says so when it is called. */
  CHECK(cudaGetDriverEntryPoint("cuMulticastCreate", &function, 0, &status));
  assert(function);
  FAILS(((int (*)(void *, void *))function)(NULL, NULL), 801);
  FAILS(cudaGetDriverEntryPoint("cuNoSuchFunction", &function, 0, &status), major == 11 ? 500 : 0);
  assert(!function && status == (major == 11 ? 77 : 1));
  return 0;
}
