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

/* Functions of Python, by which the library asks: the frames here are their own code objects. Those of even numbers are
   read. */
enum { CODES = 5000 };
static struct code { int number, references, asked; } codes[CODES];
__attribute__((visibility("default"))) void *PyFrame_GetCode(void *frame) {
  ((struct code *)frame)->references++;
  return frame;
}
__attribute__((visibility("default"))) void Py_DecRef(void *object) { ((struct code *)object)->references--; }
static int is_even(void *code) {
  ((struct code *)code)->asked++;
  return ((struct code *)code)->number % 2 == 0;
}

enum { CALL, EXCEPTION, LINE, RETURN };

int main(int count, char **arguments) {
  assert(count == 2);
  int (*drop)(void **, void *, int (*)(void *)) = (int (*)(void **, void *, int (*)(void *)))dlsym(RTLD_DEFAULT, "vgpu_drop_calls");
  void *library = dlopen(arguments[1], RTLD_NOW);
  assert(drop && library);
  profile_function *torch = (profile_function *)dlsym(library, "profile");
  int tracer, frame, *events = dlsym(library, "events");
  assert(torch && events);

  void *state[64] = {&frame, &frame, &tracer};
  // Another profiler, no profiler, and an object that stands elsewhere.
  state[20] = (void *)of_another_profiler, state[22] = &tracer;
  assert(!drop(state, &tracer, NULL) && state[20] == (void *)of_another_profiler);
  state[20] = (void *)torch;
  assert(!drop(state, NULL, NULL) && !drop(NULL, &tracer, NULL));
  assert(state[20] == (void *)torch);

  assert(drop(state, &tracer, NULL) && state[20] != (void *)torch && state[22] == &tracer);
  profile_function *installed = (profile_function *)state[20];
  // PyTrace_CALL to PyTrace_OPCODE.
  for (int what = 0; what < 8; what++) assert(installed(&tracer, &frame, what, NULL) == (what >= 4 && what <= 6 ? 0 : 10 + what));
  assert(*events == 5);

  // Functions that are not read are not seen, wherever they call and are called.
  for (int i = 0; i < CODES; i++) codes[i].number = i;
  state[20] = (void *)torch;
  assert(drop(state, &tracer, is_even));
  *events = 0;
  for (int i = 0; i < CODES; i++) assert(installed(&tracer, &codes[i], CALL, NULL) == (i % 2 ? 0 : 10 + CALL));
  for (int i = CODES - 1; i >= 0; i--) assert(installed(&tracer, &codes[i], RETURN, NULL) == (i % 2 ? 0 : 10 + RETURN));
  assert(*events == CODES);
  // Each was asked about once, and is held once.
  for (int i = 0; i < CODES; i++) assert(codes[i].asked == 1 && codes[i].references == 1);
  // What was called before the filter began returns to the tracer, which saw its call.
  assert(installed(&tracer, &codes[1], RETURN, NULL) == 10 + RETURN);
  assert(installed(&tracer, &codes[3], RETURN, NULL) == 10 + RETURN);
  assert(installed(&tracer, &codes[1], CALL, NULL) == 0 && installed(&tracer, &codes[1], RETURN, NULL) == 0);
  return 0;
}
