// Several numbers in a line, for programs that look at many.
#pragma once

#include <initializer_list>

#include "conformance.h"

inline void sayNumbers(const char* what, std::initializer_list<int64_t> numbers) {
  std::printf("%s: %s is", currentSection, what);
  for (int64_t number : numbers) std::printf(" %" PRId64, number);
  std::printf("\n");
}

// As many as an array has, which the device may read or the host.
template <typename T>
void sayArray(const char* what, const T* values, size_t count) {
  std::vector<T> copied(count);
  CHECK(cudaMemcpy(copied.data(), values, count * sizeof(T), cudaMemcpyDefault));
  std::printf("%s: %s is", currentSection, what);
  for (T value : copied) std::printf(" %" PRId64, static_cast<int64_t>(value));
  std::printf("\n");
}
#define ARRAY(values, count) sayArray(#values, values, count)
