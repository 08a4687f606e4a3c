// Random numbers of the CPU's generator that are skipped: its state moves on as if they had been drawn.
//
// The state is what `torch.Generator.get_state()` returns (aten/src/ATen/CPUGeneratorImpl.cpp, `CPUGeneratorImplStateLegacy`):
// a Mersenne Twister (aten/src/ATen/core/MT19937RNGEngine.h), whose words have 64 bits there.
#include "vgpu.h"
#include <stdint.h>
#include <string.h>

enum { WORDS = 624, MIDDLE = 397 };

struct state {
  uint64_t seed;
  // Numbers until the words are made anew, the one that makes them included.
  int32_t left;
  int32_t seeded;
  uint64_t next;
  uint64_t words[WORDS];
};

// What follows: samples of the normal distribution that are kept.
enum { STATE_BYTES = sizeof(struct state) + 40 };

static uint32_t twist(uint32_t one, uint32_t other) {
  uint32_t mixed = (one & 0x80000000u) | (other & 0x7fffffffu);
  return mixed >> 1 ^ (-(other & 1) & 0x9908b0dfu);
}

// The words after those of the first half, in the second half: none depends on one of the 226 before it.
static void make_words(uint32_t words[2 * WORDS]) {
  for (int i = 0; i < WORDS; i++) words[WORDS + i] = words[MIDDLE + i] ^ twist(words[i], words[i + 1]);
}

// Moves a state of `size` bytes on by `count` numbers of 32 bits. False if it has another form, and is left as it is.
API(int, skip_random)(void *of, size_t size, uint64_t count) {
  struct state state;
  if (size != STATE_BYTES) return 0;
  memcpy(&state, of, sizeof state);
  if (state.left < 1 || state.left > WORDS || state.next > WORDS) return 0;
  uint32_t words[2 * WORDS];
  for (int i = 0; i < WORDS; i++) words[i] = (uint32_t)state.words[i];
  while (count >= (uint64_t)state.left) {
    count -= (uint64_t)state.left;
    make_words(words);
    memcpy(words, words + WORDS, WORDS * sizeof *words);
    state.left = WORDS, state.next = 1;
  }
  state.left -= (int32_t)count, state.next += count;
  for (int i = 0; i < WORDS; i++) state.words[i] = words[i];
  memcpy(of, &state, sizeof state);
  return 1;
}
