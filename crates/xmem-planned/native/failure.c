// Raises torch.OutOfMemoryError: the allocator's callers expect an exception of C++, c10::OutOfMemoryError, and take a null
// pointer for memory (torch/csrc/cuda/CUDAPluggableAllocator.cpp, `malloc`).
#define _GNU_SOURCE
#include "failure.h"

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

// std::string of libstdc++, without short strings, in whose place a long one has its capacity.
struct string {
    char *text;
    size_t length, capacity, unused;
};

// c10::SourceLocation.
struct location {
    const char *function, *file;
    uint32_t line;
};

// A c10::Error has 100 to 300 bytes.
enum { ERROR_BYTES = 4096 };

static void *symbol(const char *name) {
    static const char *const libraries[] = {"libc10.so", "libc10_cuda.so", "libstdc++.so.6"};
    void *found = NULL;
    for (size_t at = 0; !found && at < sizeof libraries / sizeof *libraries; at++) {
        void *library = dlopen(libraries[at], RTLD_LAZY | RTLD_NOLOAD);
        found = library ? dlsym(library, name) : NULL;
    }
    return found;
}

// Unwinds through the caller, which owns nothing. The exception takes the message, which was made by `malloc`, as `operator
// new` of libstdc++ makes strings.
void raise_out_of_memory(char *message) {
    void (*make)(void *, struct location, struct string *);
    void *(*allocate)(size_t);
    void (*throw)(void *, void *, void (*)(void *)) __attribute__((noreturn));
    *(void **)&make = symbol("_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE");
    *(void **)&allocate = symbol("__cxa_allocate_exception");
    *(void **)&throw = symbol("__cxa_throw");
    void *type = symbol("_ZTIN3c1016OutOfMemoryErrorE");
    char *table = symbol("_ZTVN3c1016OutOfMemoryErrorE");
    if (make && allocate && throw && type && table) {
        void **error = allocate(ERROR_BYTES);
        struct location location = {"malloc", "xmem", 0};
        struct string text = {message, strlen(message), strlen(message), 0};
        make(error, location, &text);
        // The class of the object: its functions come behind two words (Itanium C++ ABI, 2.5).
        *error = table + 2 * sizeof(void *);
        // Its destructor is not known by a name; what it owns is some text.
        throw(error, type, NULL);
    }
    // Another layout of these classes: a RuntimeError with the same text.
    void (*fail)(const char *, const char *, uint32_t, const char *);
    *(void **)&fail = symbol("_ZN3c106detail14torchCheckFailEPKcS2_jS2_");
    if (fail)
        fail("malloc", "xmem", 0, message);
}
