// Functions of which only some arguments matter, known by their places, counted from zero. All arguments are integers and
// pointers, so that each takes one place.
#pragma once
#include <stdint.h>

typedef uintptr_t arg;
#define ARGUMENTS arg a0, arg a1, arg a2, arg a3, arg a4, arg a5, arg a6, arg a7, arg a8, arg a9, arg a10, arg a11, \
  arg a12, arg a13, arg a14, arg a15, arg a16, arg a17, arg a18, arg a19, arg a20, arg a21
#define UNUSED (void)a0, (void)a1, (void)a2, (void)a3, (void)a4, (void)a5, (void)a6, (void)a7, (void)a8, (void)a9, (void)a10, \
  (void)a11, (void)a12, (void)a13, (void)a14, (void)a15, (void)a16, (void)a17, (void)a18, (void)a19, (void)a20, (void)a21
// The rest of the place of an `int` is undefined.
#define INT(a) ((size_t)((int)(a) > 0 ? (int)(a) : 0))
