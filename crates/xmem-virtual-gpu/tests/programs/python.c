/* The profiler of a Python thread: the state of a thread as Python has it, and torch's tracer in a library of its own,
   whose path is the argument. */
#define _GNU_SOURCE
#include "cuda.h"
#include <dlfcn.h>

typedef int profile_function(void *, void *, int, void *);
static int of_another_profiler(void *object, void *frame, int what, void *argument) {
  (void)object, (void)frame, (void)argument;
  return what;
}

int main(int count, char **arguments) {
  assert(count == 2);
  int (*drop)(void **, void *) = (int (*)(void **, void *))dlsym(RTLD_DEFAULT, "vgpu_drop_c_calls");
  void *library = dlopen(arguments[1], RTLD_NOW);
  assert(drop && library);
  profile_function *torch = (profile_function *)dlsym(library, "profile");
  int tracer, frame, *events = dlsym(library, "events");
  assert(torch && events);

  void *state[64] = {&frame, &frame, &tracer};
  // Another profiler, no profiler, and an object that stands elsewhere.
  state[20] = (void *)of_another_profiler, state[22] = &tracer;
  assert(!drop(state, &tracer) && state[20] == (void *)of_another_profiler);
  state[20] = (void *)torch;
  assert(!drop(state, NULL) && !drop(NULL, &tracer));
  assert(state[20] == (void *)torch);

  assert(drop(state, &tracer) && state[20] != (void *)torch && state[22] == &tracer);
  profile_function *installed = (profile_function *)state[20];
  // PyTrace_CALL to PyTrace_OPCODE.
  for (int what = 0; what < 8; what++) assert(installed(&tracer, &frame, what, NULL) == (what >= 4 && what <= 6 ? 0 : 10 + what));
  assert(*events == 5);
  return 0;
}
