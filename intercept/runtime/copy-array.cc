// Copies of a run of bytes that passes through an array row by row (cudaMemcpyToArray and others): deprecated, but still used.
#include <algorithm>
#include <array>

#include "intercept/runtime/convert.h"
#include "intercept/runtime/copy.h"
#include "intercept/runtime/rows.h"
#include "intercept/runtime/shape.h"

namespace vgpu::runtime {
namespace {

/// A position in an array.
struct Place {
  size_t x;  // bytes
  size_t y;
};

CUresult rowBytes(CUarray array, size_t& bytes) {
  CUDA_ARRAY3D_DESCRIPTOR descriptor;
  CUresult result = cuArray3DGetDescriptor(&descriptor, array);
  size_t element = 1;
  if (result == CUDA_SUCCESS) result = elementSize(array, element);
  bytes = result == CUDA_SUCCESS ? descriptor.Width * element : 0;
  return result;
}

/// A part of the run of `bytes` that starts at `at`. A run is at most three rectangles: the rest of a row, whole rows, the start of a row.
struct Piece {
  size_t done;  // bytes of the run before this piece
  Place at;
  size_t width, height;
};
std::array<Piece, 3> split(Place at, size_t row, size_t bytes) {
  size_t first = at.x == 0 ? 0 : std::min(bytes, row - at.x);
  size_t whole = (bytes - first) / row, y = at.y + (first > 0);
  size_t last = bytes - first - whole * row;
  return {Piece{0, at, first, 1}, Piece{first, {0, y}, row, whole},
          Piece{first + whole * row, {0, y + whole}, last, 1}};
}

/// Calls `use(piece, bytes of the run before it)` for each piece that is not empty.
template <class Use>
cudaError_t forPieces(CUarray array, Place at, size_t bytes, Use use) {
  size_t row;
  if (bytes == 0) return cudaSuccess;
  if (CUresult result = rowBytes(array, row); result != CUDA_SUCCESS) return answer(result);
  if (at.x > row) return cudaErrorInvalidValue;
  if (at.x == row) at = {0, at.y + 1};
  for (const Piece& piece : split(at, row, bytes)) {
    if (piece.width == 0 || piece.height == 0) continue;
    if (cudaError_t error = use(piece); error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

/// Posts the copy to a stream; the functions without a stream wait for it.
cudaError_t copyPiece(const Side& to, const Side& from, const Piece& piece, cudaMemcpyKind kind, CUstream stream) {
  CUDA_MEMCPY3D copy;
  cudaError_t error = describeCopy(to, from, {piece.width, piece.height, 1}, kind, copy);
  return error != cudaSuccess ? error : answer(cuMemcpy3DAsync(&copy, stream));
}

/// A number that is no direction counts as cudaMemcpyDefault (docs/facts.md).
cudaMemcpyKind knownOf(cudaMemcpyKind kind) { return unsigned{kind} > cudaMemcpyDefault ? cudaMemcpyDefault : kind; }

cudaError_t copyTo(cudaArray_t to, Place at, const void* from, size_t bytes, cudaMemcpyKind kind, CUstream stream) {
  kind = knownOf(kind);
  if (!reachesDevice(kind, cudaMemcpyHostToDevice)) return cudaErrorInvalidMemcpyDirection;
  auto array = handle<CUarray>(to);
  return forPieces(array, at, bytes, [&](const Piece& piece) {
    void* start = toPointer(toDevice(from) + piece.done);
    return copyPiece({.array = array, .x = piece.at.x, .y = piece.at.y}, {.memory = start, .pitch = piece.width}, piece,
                     kind, stream);
  });
}

cudaError_t copyFrom(void* to, cudaArray_const_t from, Place at, size_t bytes, cudaMemcpyKind kind, CUstream stream) {
  kind = knownOf(kind);
  if (!reachesDevice(kind, cudaMemcpyDeviceToHost)) return cudaErrorInvalidMemcpyDirection;
  auto array = handle<CUarray>(from);
  return forPieces(array, at, bytes, [&](const Piece& piece) {
    void* start = toPointer(toDevice(to) + piece.done);
    return copyPiece({.memory = start, .pitch = piece.width}, {.array = array, .x = piece.at.x, .y = piece.at.y}, piece,
                     kind, stream);
  });
}

/// The two arrays' rows may differ in length: the run is cut at the row ends of both.
cudaError_t copyBetween(cudaArray_t to, Place toAt, cudaArray_const_t from, Place fromAt, size_t bytes,
                        cudaMemcpyKind kind, CUstream stream) {
  if (!reachesDevice(kind, cudaMemcpyDeviceToDevice)) return cudaErrorInvalidMemcpyDirection;
  auto target = handle<CUarray>(to), source = handle<CUarray>(from);
  size_t row;
  if (CUresult result = rowBytes(target, row); result != CUDA_SUCCESS) return answer(result);
  size_t start, end;  // bytes of the target before the run, and up to its end
  if (toAt.x > row) return cudaErrorInvalidValue;
  if (__builtin_mul_overflow(toAt.y, row, &start) || __builtin_add_overflow(start, toAt.x, &start) ||
      __builtin_add_overflow(start, bytes, &end))
    return cudaErrorInvalidValue;
  return forPieces(source, fromAt, bytes, [&](const Piece& piece) {
    for (size_t y = 0; y < piece.height; ++y) {
      size_t before = start + piece.done + y * piece.width;  // bytes of the target before this row
      cudaError_t error = forPieces(target, {before % row, before / row}, piece.width, [&](const Piece& part) {
        return copyPiece({.array = target, .x = part.at.x, .y = part.at.y},
                         {.array = source, .x = piece.at.x + part.done, .y = piece.at.y + y}, part, kind, stream);
      });
      if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
  });
}

template <class On>
cudaError_t andWait(cudaError_t error, On on) {
  return error != cudaSuccess ? error : answer(cuStreamSynchronize(on(nullptr)));
}

}  // namespace
}  // namespace vgpu::runtime

using namespace vgpu::runtime;

RUNTIME_SYNC(cudaMemcpyToArray,
             (cudaArray_t to, size_t x, size_t y, const void* from, size_t bytes, cudaMemcpyKind kind),
             andWait(copyTo(to, {x, y}, from, bytes, kind, on(nullptr)), on))
RUNTIME_STREAM(cudaMemcpyToArrayAsync,
               (cudaArray_t to, size_t x, size_t y, const void* from, size_t bytes, cudaMemcpyKind kind,
                cudaStream_t stream),
               copyTo(to, {x, y}, from, bytes, kind, on(stream)))
RUNTIME_SYNC(cudaMemcpyFromArray,
             (void* to, cudaArray_const_t from, size_t x, size_t y, size_t bytes, cudaMemcpyKind kind),
             andWait(copyFrom(to, from, {x, y}, bytes, kind, on(nullptr)), on))
RUNTIME_STREAM(cudaMemcpyFromArrayAsync,
               (void* to, cudaArray_const_t from, size_t x, size_t y, size_t bytes, cudaMemcpyKind kind,
                cudaStream_t stream),
               copyFrom(to, from, {x, y}, bytes, kind, on(stream)))
RUNTIME_SYNC(cudaMemcpyArrayToArray,
             (cudaArray_t to, size_t toX, size_t toY, cudaArray_const_t from, size_t fromX, size_t fromY, size_t bytes,
              cudaMemcpyKind kind),
             andWait(copyBetween(to, {toX, toY}, from, {fromX, fromY}, bytes, kind, on(nullptr)), on))
