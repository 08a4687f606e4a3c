// Python's profiler without calls that nobody reads: torch's Python tracer keeps 1.5 KB for each.
//
// PyEval_SetProfile stores a function and its object in the state of the thread, and the interpreter calls
// what is stored there (CPython, Include/cpython/pystate.h and Python/sysmodule.c, `sys.setprofile`). The place
// differs among releases of Python, and is found by the object, which `sys.getprofile()` returns.
#define _GNU_SOURCE
#include "vgpu.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

// Kinds of events (CPython, Include/cpython/pystate.h, PyTrace_*).
#define CALL 0
#define RETURN 3
#define C_CALL 4
#define C_EXCEPTION 5
#define C_RETURN 6
// The state begins with about twenty words before the place.
#define WORDS 40

typedef int profile_function(void *object, void *frame, int what, void *argument);
static profile_function *original;
// Whether calls of a function are read, by its code object.
typedef int is_read_function(void *code);
static is_read_function *is_read;
// CPython, Include/cpython/frameobject.h and Include/object.h; references are new ones.
static void *(*code_of)(void *frame);
static void (*let_go)(void *object);

// The thread of the tracer is the only one that comes here.
// Calls that began since the filter did, and have not returned.
static long depth;

// Code objects that were asked about, with the answers; each is held, so that no other one takes its address. Open
// addressing in a power of two; at most half of the places are taken.
struct known {
  void *code;
  int is_read;
};
static struct known *table;
static size_t places, taken;

static struct known *place_of(void *code, struct known *places_of, size_t count) {
  size_t at = ((uintptr_t)code >> 4) * (uintptr_t)0x9e3779b97f4a7c15u >> 20;
  while (places_of[at & (count - 1)].code && places_of[at & (count - 1)].code != code) at++;
  return &places_of[at & (count - 1)];
}

// Zero if there is no memory.
static int grow(void) {
  size_t larger = places ? 2 * places : 1024;
  struct known *fresh = calloc(larger, sizeof *fresh);
  if (!fresh) return 0;
  for (size_t i = 0; i < places; i++)
    if (table[i].code) *place_of(table[i].code, fresh, larger) = table[i];
  free(table);
  table = fresh, places = larger;
  return 1;
}

static int is_frame_read(void *frame) {
  void *code = code_of(frame);
  if (!code) return 1;
  if (2 * taken >= places && !grow()) {
    let_go(code);
    return 1;
  }
  struct known *known = place_of(code, table, places);
  if (known->code) {
    let_go(code);
    return known->is_read;
  }
  int answer = is_read(code);
  *known = (struct known){code, answer};
  taken++;
  return answer;
}

static int with_less(void *object, void *frame, int what, void *argument) {
  if (what == C_CALL || what == C_EXCEPTION || what == C_RETURN) return 0;
  if (is_read && (what == CALL || what == RETURN)) {
    // The tracer knows the calls that began before.
    int began_before = what == RETURN && depth == 0;
    if (!began_before) depth += what == CALL ? 1 : -1;
    if (!began_before && !is_frame_read(frame)) return 0;
  }
  return original(object, frame, what, argument);
}

// Returns whether a function belongs to torch.
static int is_of_torch(void *function) {
  Dl_info info;
  return function && dladdr(function, &info) && info.dli_fname && strstr(info.dli_fname, "libtorch_python");
}

// Leaves calls of C functions, and of Python functions for which `reads` returns zero, out of what the profiler of a
// thread sees; returns 1 if the profiler is torch's and was found. `reads` may be NULL. Before Python 3.9, a frame does
// not tell its code, and all calls of Python functions are seen. The layout of the state is c_profilefunc, c_tracefunc,
// c_profileobj, c_traceobj.
API(int, drop_calls)(void **thread_state, void *object, is_read_function *reads) {
  for (int i = 2; thread_state && object && i < WORDS; i++) {
    if (thread_state[i] != object || !is_of_torch(thread_state[i - 2])) continue;
    code_of = (void *(*)(void *))dlsym(RTLD_DEFAULT, "PyFrame_GetCode");
    let_go = (void (*)(void *))dlsym(RTLD_DEFAULT, "Py_DecRef");
    is_read = code_of && let_go ? reads : NULL;
    depth = 0;
    original = (profile_function *)thread_state[i - 2];
    thread_state[i - 2] = (void *)with_less;
    return 1;
  }
  return 0;
}
