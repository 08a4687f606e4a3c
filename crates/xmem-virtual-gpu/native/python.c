// Python's profiler without calls of functions written in C: half of the events of torch's Python tracer, which
// nobody reads.
//
// PyEval_SetProfile stores a function and its object in the state of the thread, and the interpreter calls
// what is stored there (CPython, Include/cpython/pystate.h and Python/sysmodule.c, `sys.setprofile`). The place
// differs among releases of Python, and is found by the object, which `sys.getprofile()` returns.
#define _GNU_SOURCE
#include "vgpu.h"
#include <dlfcn.h>
#include <string.h>

// Kinds of events (CPython, Include/cpython/pystate.h, PyTrace_*).
#define C_CALL 4
#define C_EXCEPTION 5
#define C_RETURN 6
// The state begins with about twenty words before the place.
#define WORDS 40

typedef int profile_function(void *object, void *frame, int what, void *argument);
static profile_function *original;

static int without_c_calls(void *object, void *frame, int what, void *argument) {
  if (what == C_CALL || what == C_EXCEPTION || what == C_RETURN) return 0;
  return original(object, frame, what, argument);
}

// Returns whether a function belongs to torch.
static int is_of_torch(void *function) {
  Dl_info info;
  return function && dladdr(function, &info) && info.dli_fname && strstr(info.dli_fname, "libtorch_python");
}

// Leaves calls of C functions out of what the profiler of a thread sees; returns 1 if the profiler is torch's and was
// found. The layout is c_profilefunc, c_tracefunc, c_profileobj, c_traceobj.
API(int, drop_c_calls)(void **thread_state, void *object) {
  for (int i = 2; thread_state && object && i < WORDS; i++) {
    if (thread_state[i] != object || !is_of_torch(thread_state[i - 2])) continue;
    original = (profile_function *)thread_state[i - 2];
    thread_state[i - 2] = (void *)without_c_calls;
    return 1;
  }
  return 0;
}
