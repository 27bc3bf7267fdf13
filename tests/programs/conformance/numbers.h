// Prints several numbers in a line: the fields of a structure, or the elements of an array.
#pragma once

#include <initializer_list>

#include "conformance.h"

// An integer, enumeration or bool of any type.
struct Number {
  template <typename T>
  Number(T value) : value(static_cast<int64_t>(value)) {}
  int64_t value;
};

inline void sayNumbers(const char* what, std::initializer_list<Number> numbers) {
  std::printf("%s: %s is", currentSection, what);
  for (Number number : numbers) std::printf(" %" PRId64, number.value);
  std::printf("\n");
}

// Prints the elements of an array in memory of the device or the host.
template <typename T>
void sayArray(const char* what, const T* values, size_t count) {
  std::vector<T> copied(count);
  CHECK(cudaMemcpy(copied.data(), values, count * sizeof(T), cudaMemcpyDefault));
  std::printf("%s: %s is", currentSection, what);
  for (T value : copied) std::printf(" %" PRId64, static_cast<int64_t>(value));
  std::printf("\n");
}
#define ARRAY(values, count) sayArray(#values, values, count)
