// Eight numbers at a time, in whatever registers the processor has.
#pragma once

// Loops gain from wider registers, where a processor has them. Without fused multiplication, which is not asked for,
// all versions give the same numbers.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define FOREBAY_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define FOREBAY_CLONES
#endif

// Has to become part of its caller: only there it is known how wide registers are.
#define FOREBAY_INLINE __attribute__((always_inline)) inline

namespace forebay {

typedef float Eight __attribute__((vector_size(32)));
// The same at any address.
typedef float EightAnywhere __attribute__((vector_size(32), aligned(4), may_alias));

FOREBAY_INLINE void load(Eight& values, const float* from) { values = *reinterpret_cast<const EightAnywhere*>(from); }

FOREBAY_INLINE void store(const Eight& values, float* to) { *reinterpret_cast<EightAnywhere*>(to) = values; }

// Eight times eight that are `step` apart. Not a loop: of one, compilers make a copy in memory.
FOREBAY_INLINE void load_all(Eight* values, const float* from, unsigned long step) {
  load(values[0], from);
  load(values[1], from + step);
  load(values[2], from + 2 * step);
  load(values[3], from + 3 * step);
  load(values[4], from + 4 * step);
  load(values[5], from + 5 * step);
  load(values[6], from + 6 * step);
  load(values[7], from + 7 * step);
}

// Rows to columns.
FOREBAY_INLINE void transpose(Eight* v) {
  Eight a[8], b[8];
  for (int i = 0; i < 8; i += 2) {
    a[i] = __builtin_shufflevector(v[i], v[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    a[i + 1] = __builtin_shufflevector(v[i], v[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  for (int i = 0; i < 8; i += 4) {
    b[i] = __builtin_shufflevector(a[i], a[i + 2], 0, 1, 8, 9, 4, 5, 12, 13);
    b[i + 1] = __builtin_shufflevector(a[i], a[i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    b[i + 2] = __builtin_shufflevector(a[i + 1], a[i + 3], 0, 1, 8, 9, 4, 5, 12, 13);
    b[i + 3] = __builtin_shufflevector(a[i + 1], a[i + 3], 2, 3, 10, 11, 6, 7, 14, 15);
  }
  for (int i = 0; i < 4; ++i) {
    v[i] = __builtin_shufflevector(b[i], b[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    v[i + 4] = __builtin_shufflevector(b[i], b[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

FOREBAY_INLINE void keep_within_pixels(Eight& values) {
  const Eight least = {}, most = least + 255.0f;
  values = values > least ? values : least;
  values = values < most ? values : most;
}

}  // namespace forebay
