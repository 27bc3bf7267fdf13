// Copies of rows and boxes between every kind of memory and arrays, in every direction, with odd widths, pitches, heights and depths: each
// compared byte by byte with the same copy on the CPU, including gaps. Many shapes are larger than a staging slab, or have rows that are.
#include "program.h"

#include <cstring>

struct Shape {
  size_t width, height, depth;           // bytes, rows, slices
  size_t hostPitch, hostRows;            // a host slice has `hostRows` rows of `hostPitch` bytes
  size_t devicePitch, deviceRows;
  size_t x, y, z;                        // origin of the box in the device's memory
};

constexpr size_t MiB = 1 << 20;
constexpr Shape shapes[] = {
    {1, 1, 1, 1, 1, 1, 1, 0, 0, 0},                      // one byte
    {3, 5, 1, 7, 5, 11, 9, 1, 2, 0},                     // narrow odd rows
    {61, 37, 5, 67, 41, 96, 43, 5, 3, 2},                // a small box in a larger one
    {256, 4096, 1, 320, 4096, 512, 4096, 0, 0, 0},       // many rows
    {1000, 3001, 1, 1000, 3001, 1024, 3005, 7, 1, 0},    // contiguous on one side, more than one slab
    {4, 3, 70000, 4, 3, 8, 4, 1, 1, 0},                  // very many small slices
    {MiB + 13, 2, 2, MiB + 29, 2, MiB + 512, 3, 3, 1, 0},  // rows longer than a slab
    {600000, 3, 2, 600001, 4, 600064, 3, 0, 0, 1},       // one row per slab
    {1024, 600, 2, 1024, 600, 1024, 600, 0, 0, 0},       // contiguous: one piece
};

enum class Kind { pageable, pinned, device };
const char* nameOf(Kind kind) { return kind == Kind::pageable ? "pageable" : kind == Kind::pinned ? "pinned" : "device"; }

// Memory of one kind, which the CPU fills and reads with whole copies.
class Memory {
 public:
  Memory(Kind kind, size_t bytes) : kind(kind), bytes(bytes) {
    if (kind == Kind::pageable) data = static_cast<unsigned char*>(std::malloc(bytes));
    if (kind == Kind::pinned) CHECK(cudaMallocHost(&data, bytes));
    if (kind == Kind::device) CHECK(cudaMalloc(&data, bytes));
  }
  ~Memory() {
    if (kind == Kind::pageable) std::free(data);
    if (kind == Kind::pinned) CHECK(cudaFreeHost(data));
    if (kind == Kind::device) CHECK(cudaFree(data));
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  void fill(const std::vector<unsigned char>& from) {
    CHECK(cudaMemcpy(data, from.data(), bytes, cudaMemcpyDefault));
    CHECK(cudaDeviceSynchronize());
  }
  std::vector<unsigned char> read() const {
    std::vector<unsigned char> into(bytes);
    CHECK(cudaMemcpy(into.data(), data, bytes, cudaMemcpyDefault));
    return into;
  }

  const Kind kind;
  const size_t bytes;
  unsigned char* data = nullptr;
};

std::vector<unsigned char> pattern(size_t bytes, unsigned seed) {
  std::vector<unsigned char> made(bytes);
  uint32_t state = seed * 2654435761u + 1;
  for (unsigned char& byte : made) byte = static_cast<unsigned char>((state = state * 1664525u + 1013904223u) >> 24);
  return made;
}

struct Layout {
  size_t pitch, rows, x, y, z;
  size_t place(size_t row, size_t slice) const { return ((z + slice) * rows + y + row) * pitch + x; }
  size_t bytesFor(const Shape& shape) const { return (z + shape.depth) * rows * pitch; }
};

void copyOnCpu(std::vector<unsigned char>& to, const Layout& toLayout, const std::vector<unsigned char>& from,
               const Layout& fromLayout, const Shape& shape) {
  for (size_t z = 0; z < shape.depth; ++z)
    for (size_t y = 0; y < shape.height; ++y)
      std::memcpy(&to[toLayout.place(y, z)], &from[fromLayout.place(y, z)], shape.width);
}

cudaMemcpy3DParms described(const Memory& to, const Layout& toLayout, const Memory& from, const Layout& fromLayout,
                            const Shape& shape) {
  cudaMemcpy3DParms copy{};
  copy.dstPtr = make_cudaPitchedPtr(to.data, toLayout.pitch, toLayout.pitch, toLayout.rows);
  copy.dstPos = make_cudaPos(toLayout.x, toLayout.y, toLayout.z);
  copy.srcPtr = make_cudaPitchedPtr(from.data, fromLayout.pitch, fromLayout.pitch, fromLayout.rows);
  copy.srcPos = make_cudaPos(fromLayout.x, fromLayout.y, fromLayout.z);
  copy.extent = make_cudaExtent(shape.width, shape.height, shape.depth);
  copy.kind = cudaMemcpyDefault;
  return copy;
}

// Copies a box between two kinds of memory, with the call that waits or the asynchronous one.
bool boxArrives(const Shape& shape, Kind toKind, Kind fromKind, bool waits) {
  const Layout host{shape.hostPitch, shape.hostRows, 0, 0, 0};
  const Layout device{shape.devicePitch, shape.deviceRows, shape.x, shape.y, shape.z};
  const Layout toLayout = toKind == Kind::device ? device : host, fromLayout = fromKind == Kind::device ? device : host;
  Memory to(toKind, toLayout.bytesFor(shape)), from(fromKind, fromLayout.bytesFor(shape));
  auto wanted = pattern(to.bytes, 1);
  const auto source = pattern(from.bytes, 2);
  to.fill(wanted);
  from.fill(source);
  copyOnCpu(wanted, toLayout, source, fromLayout, shape);
  const cudaMemcpy3DParms copy = described(to, toLayout, from, fromLayout, shape);
  if (waits) {
    CHECK(cudaMemcpy3D(&copy));
  } else {
    CHECK(cudaMemcpy3DAsync(&copy, cudaStreamLegacy));
    // Pageable memory has been read when the call returns.
    if (fromKind == Kind::pageable) std::memset(from.data, 0xee, from.bytes);
    CHECK(cudaStreamSynchronize(cudaStreamLegacy));
  }
  const auto found = to.read();
  if (found == wanted) return true;
  const size_t at = std::mismatch(found.begin(), found.end(), wanted.begin()).first - found.begin();
  std::fprintf(stderr, "%s to %s, %zu x %zu x %zu: byte %zu is %d, wanted %d\n", nameOf(fromKind), nameOf(toKind),
               shape.width, shape.height, shape.depth, at, found[at], wanted[at]);
  return false;
}

// Copies a box of four-byte elements into an array and back.
bool arrayKeeps(size_t width, size_t height, size_t depth, Kind kind) {
  cudaArray_t array;
  const auto channels = cudaCreateChannelDesc<int>();
  CHECK(cudaMalloc3DArray(&array, &channels, make_cudaExtent(width + 3, height == 1 ? 0 : height + 2, depth == 1 ? 0 : depth + 1)));
  const size_t bytes = width * sizeof(int), pitch = bytes + 12, rows = height + 1;
  const Shape shape{bytes, height, depth, pitch, rows, pitch, rows, 0, 0, 0};
  const Layout layout{pitch, rows, 0, 0, 0};
  Memory from(kind, layout.bytesFor(shape)), to(kind, layout.bytesFor(shape));
  const auto source = pattern(from.bytes, 3);
  auto wanted = pattern(to.bytes, 4);
  from.fill(source);
  to.fill(wanted);
  copyOnCpu(wanted, layout, source, layout, shape);
  const cudaPos place = make_cudaPos(2, height == 1 ? 0 : 1, depth == 1 ? 0 : 1);  // in elements
  cudaMemcpy3DParms in{}, out{};
  in.srcPtr = make_cudaPitchedPtr(from.data, pitch, pitch, rows);
  in.dstArray = array;
  in.dstPos = place;
  out.dstPtr = make_cudaPitchedPtr(to.data, pitch, pitch, rows);
  out.srcArray = array;
  out.srcPos = place;
  in.extent = out.extent = make_cudaExtent(width, height, depth);
  in.kind = out.kind = cudaMemcpyDefault;
  CHECK(cudaMemcpy3D(&in));
  CHECK(cudaMemcpy3D(&out));
  const bool same = to.read() == wanted;
  if (!same) std::fprintf(stderr, "array, %s, %zu x %zu x %zu: not what went in\n", nameOf(kind), width, height, depth);
  CHECK(cudaFreeArray(array));
  return same;
}

bool allDirections(const Shape& shape, bool waits) {
  bool ok = true;
  for (Kind to : {Kind::pageable, Kind::pinned, Kind::device})
    for (Kind from : {Kind::pageable, Kind::pinned, Kind::device}) ok &= boxArrives(shape, to, from, waits);
  return ok;
}

int main() {
  bool ok = true;
  // Rows are in transit at the pause: posted copies are completed elsewhere.
  const size_t width = 100, height = 5000, pitch = 128;
  const auto source = pattern(width * height, 5);
  Memory device(Kind::device, pitch * height);
  CHECK(cudaMemset(device.data, 0, device.bytes));
  CHECK(cudaMemcpy2DAsync(device.data, pitch, source.data(), width, width, height, cudaMemcpyHostToDevice, cudaStreamLegacy));
  pausePoint();
  std::vector<unsigned char> back(width * height);
  CHECK(cudaMemcpy2D(back.data(), width, device.data, pitch, width, height, cudaMemcpyDeviceToHost));
  ok &= same("rows over the pause", back, source);

  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i) ok &= allDirections(shapes[i], i % 2 == 0);
  for (Kind kind : {Kind::pageable, Kind::pinned, Kind::device}) {
    ok &= arrayKeeps(17, 1, 1, kind);
    ok &= arrayKeeps(33, 19, 1, kind);
    ok &= arrayKeeps(3, 5, 29, kind);
    ok &= arrayKeeps(640, 600, 1, kind);  // more than a slab
    ok &= arrayKeeps(50, 40, 300, kind);
  }
  return verdict("pitched-copies", ok);
}
