// A matrix A of which half of the elements are stored (PTX ISA, "Sparse matrix storage"). A row is divided into chunks; for each, four bits
// of metadata give the positions of its stored elements: two of four elements, two pairs of eight 4-bit elements, or one of two tf32
// elements. A thread's word of metadata describes four adjacent chunks: the lower half in the row with the number of the thread's group,
// the upper half in the row eight below.
#pragma once

#include <algorithm>
#include <cstddef>

#include "stub/emulator/ptx/run/matrix-values.h"

namespace vgpu::emulator {

inline uint32_t sparseChunk(Element e) { return e == Element::tf32 ? 2 : bitsOf(e) == 4 ? 8 : 4; }
// Number of threads in each group of four whose metadata an instruction of depth `depth` reads; the selector says which.
inline uint32_t sparseThreads(Element e, uint32_t depth) { return depth / sparseChunk(e) / 4; }

// The metadata of chunk `chunk` of row `row`, of 16 rows, in the words of a warp's lanes.
inline uint32_t sparseBits(const uint32_t* words, uint32_t threads, uint32_t selector, uint32_t row, uint32_t chunk) {
  const uint32_t lane = row % 8 * 4 + selector * threads + chunk / 4;
  return words[lane] >> (row / 8 * 16 + chunk % 4 * 4) & 15;
}

// Expands the stored elements of one row to `depth` elements.
inline void expandSparseRow(Element e, const double* stored, double* row, uint32_t depth, const uint32_t* words,
                            uint32_t selector, uint32_t rowNumber) {
  const uint32_t chunk = sparseChunk(e), threads = sparseThreads(e, depth), unit = chunk == 8 ? 2 : 1;
  std::fill_n(row, depth, 0.0);
  for (uint32_t c = 0; c < depth / chunk; ++c) {
    const uint32_t bits = sparseBits(words, threads, selector, rowNumber, c);
    if (chunk == 2) {
      row[c * 2 + (bits >> 3)] = stored[c];  // 0b0100: the first element, 0b1110: the second
      continue;
    }
    for (uint32_t half = 0; half < 2; ++half)
      for (uint32_t u = 0; u < unit; ++u) row[c * chunk + (bits >> 2 * half & 3) * unit + u] = stored[(c * 2 + half) * unit + u];
  }
}

}  // namespace vgpu::emulator
