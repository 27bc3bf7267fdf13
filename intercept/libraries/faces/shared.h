// Functions that implement several entries of a face: rows of vgpu/api/cublas.table name them and pass the arguments that differ. They use
// the driver API as any program does.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vgpu::client::faces {

// Returns the status of an entry that no session supports; prints the entry's name at its first call.
int refuse(const char* symbol);

const char* nameOfStatus(int status);
const char* textOfStatus(int status);

enum class Direction { toDevice, fromDevice };
enum class Wait { waits, returns };
constexpr auto toDevice = Direction::toDevice, fromDevice = Direction::fromDevice;
constexpr auto waits = Wait::waits, returns = Wait::returns;

// Copies a matrix by columns of `rows` elements; `from` and `to` are the leading dimensions. Returns a status.
int copyMatrix(Direction direction, int64_t rows, int64_t columns, int64_t elementBytes, const void* source, int64_t from,
               void* destination, int64_t to, void* stream, Wait wait);

}  // namespace vgpu::client::faces
