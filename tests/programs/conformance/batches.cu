// Batches of copies by the runtime: what they copy, and their errors.
#include "numbers.h"

__global__ void add(int* to, int value) { *to += value; }

namespace {

constexpr size_t wordCount = 256;
int *words, *others;  // on the device
int* pinned;
int host[wordCount];  // pageable
cudaStream_t stream;

void setUp() {
  CHECK(cudaMalloc(&words, wordCount * sizeof(int)));
  CHECK(cudaMalloc(&others, wordCount * sizeof(int)));
  CHECK(cudaMallocHost(&pinned, wordCount * sizeof(int)));
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (size_t i = 0; i < wordCount; ++i) host[i] = static_cast<int>(i), pinned[i] = static_cast<int>(1000 + i);
  CHECK(cudaMemcpy(words, host, sizeof host, cudaMemcpyHostToDevice));
  CHECK(cudaMemset(others, 0, wordCount * sizeof(int)));
  CHECK(cudaDeviceSynchronize());
}

cudaMemcpyAttributes inOrder(cudaMemcpySrcAccessOrder order = cudaMemcpySrcAccessOrderStream, unsigned flags = 0) {
  cudaMemcpyAttributes attributes{};
  attributes.srcAccessOrder = order;
  attributes.flags = flags;
  return attributes;
}

// A copy of 16 bytes from `words` to `others`, in which one thing is changed.
struct Batch {
  void* to[4] = {others, others + 8, others + 16, others + 24};
  const void* from[4] = {words + 1, words + 2, words + 3, words + 4};
  size_t sizes[4] = {16, 16, 16, 16};
  cudaMemcpyAttributes attributes[4] = {inOrder(), inOrder(), inOrder(), inOrder()};
  size_t begins[4] = {0, 1, 2, 3};
  size_t count = 4, kinds = 1;
  cudaError_t copy(cudaStream_t in = stream) {
    return cudaMemcpyBatchAsync(to, from, sizes, count, attributes, begins, kinds, in);
  }
};

cudaMemcpy3DOperand memory(void* place, size_t rowLength = 0, size_t layerHeight = 0) {
  cudaMemcpy3DOperand operand{};
  operand.type = cudaMemcpyOperandTypePointer;
  operand.op.ptr.ptr = place;
  operand.op.ptr.rowLength = rowLength;
  operand.op.ptr.layerHeight = layerHeight;
  return operand;
}
cudaMemcpy3DOperand part(cudaArray_t array, size_t x = 0, size_t y = 0, size_t z = 0) {
  cudaMemcpy3DOperand operand{};
  operand.type = cudaMemcpyOperandTypeArray;
  operand.op.array.array = array;
  operand.op.array.offset = {x, y, z};
  return operand;
}
cudaMemcpy3DBatchOp box(const cudaMemcpy3DOperand& to, const cudaMemcpy3DOperand& from, size_t width, size_t height = 1,
                        size_t depth = 1) {
  cudaMemcpy3DBatchOp copy{};
  copy.src = from;
  copy.dst = to;
  copy.extent = make_cudaExtent(width, height, depth);
  copy.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  return copy;
}

void clear() {
  SAY(cudaStreamSynchronize(stream));
  CHECK(cudaMemset(others, 0, wordCount * sizeof(int)));
  CHECK(cudaDeviceSynchronize());
}

}  // namespace

SECTION(copies) {
  setUp();
  Batch batch;
  SAY(batch.copy());
  SAY(cudaStreamSynchronize(stream));
  ARRAY(others, 32);
  clear();
  batch.from[0] = host + 10, batch.from[1] = pinned + 10, batch.from[2] = words + 10;  // to the device, from every kind of memory
  batch.to[3] = host + 100, batch.from[3] = words + 50;
  batch.sizes[0] = 4, batch.sizes[1] = 6, batch.sizes[2] = 32;
  SAY(batch.copy());
  SAY(cudaStreamSynchronize(stream));
  ARRAY(others, 32);
  ARRAY(host + 99, 6);
  clear();
  batch.to[0] = pinned, batch.from[0] = words + 3;  // and to every kind
  batch.to[1] = host, batch.from[1] = pinned + 20;
  batch.to[2] = pinned + 8, batch.from[2] = host + 20;
  batch.to[3] = host + 8, batch.from[3] = host + 30;
  for (size_t& size : batch.sizes) size = 8;
  SAY(batch.copy());
  SAY(cudaStreamSynchronize(stream));
  ARRAY(pinned, 10);
  ARRAY(host, 10);
}

SECTION(attributes) {
  setUp();
  Batch batch;
  batch.kinds = 2;
  batch.begins[1] = 2;
  batch.attributes[1] = inOrder(cudaMemcpySrcAccessOrderAny);
  SAY(batch.copy());
  batch.attributes[1] = inOrder(cudaMemcpySrcAccessOrderDuringApiCall);
  SAY(batch.copy());
  batch.kinds = 4;
  batch.begins[1] = 1;
  batch.from[3] = host + 7;
  batch.attributes[3] = inOrder(cudaMemcpySrcAccessOrderDuringApiCall);
  SAY(batch.copy());
  host[7] = -1;  // it has been read
  SAY(cudaStreamSynchronize(stream));
  ARRAY(others, 32);
  batch.attributes[0] = inOrder(cudaMemcpySrcAccessOrderStream, cudaMemcpyFlagPreferOverlapWithCompute);
  SAY(batch.copy());
  batch.attributes[0].flags = 2;
  SAY(batch.copy());
  batch.attributes[0].flags = ~0u;
  SAY(batch.copy());
  batch.attributes[0] = inOrder(cudaMemcpySrcAccessOrderInvalid);
  SAY(batch.copy());
  batch.attributes[0] = inOrder(static_cast<cudaMemcpySrcAccessOrder>(4));
  SAY(batch.copy());
  batch.attributes[0] = inOrder(static_cast<cudaMemcpySrcAccessOrder>(-1));
  SAY(batch.copy());
  batch.attributes[0] = inOrder();
  batch.attributes[3] = inOrder(cudaMemcpySrcAccessOrderInvalid);  // for the last copy
  clear();
  SAY(batch.copy());
  SAY(cudaStreamSynchronize(stream));
  ARRAY(others, 32);
  // Location hints only apply to memory without a fixed location.
  batch.attributes[3] = inOrder();
  batch.attributes[0].srcLocHint = {cudaMemLocationTypeDevice, 99};
  SAY(batch.copy());
  batch.attributes[0].srcLocHint = {static_cast<cudaMemLocationType>(99), 0};
  SAY(batch.copy());
  batch.attributes[0] = inOrder();
  batch.attributes[0].dstLocHint = {cudaMemLocationTypeHostNuma, -1};
  SAY(batch.copy());
  SAY(cudaStreamSynchronize(stream));
}

SECTION(beginnings) {
  setUp();
  Batch batch;
  batch.kinds = 2;
  for (size_t first : {0, 1})
    for (size_t other : {0, 1, 3, 4, 5}) {
      batch.begins[0] = first;
      batch.begins[1] = other;
      sayNumbers("attributes begin at copies", {first, other});
      SAY(batch.copy());
    }
  batch.begins[0] = 0;
  batch.begins[1] = 2;
  batch.begins[2] = 1;
  for (size_t kinds : {0, 1, 2, 3}) {
    batch.kinds = kinds;
    VALUE(kinds);
    SAY(batch.copy());
  }
  size_t many[5] = {0, 1, 2, 3, 4};
  cudaMemcpyAttributes all[5] = {inOrder(), inOrder(), inOrder(), inOrder(), inOrder()};
  SAY(cudaMemcpyBatchAsync(batch.to, batch.from, batch.sizes, 4, all, many, 5, stream));
  batch.count = 0;
  SAY(batch.copy());
  batch.kinds = 0;
  SAY(batch.copy());
  SAY(cudaStreamSynchronize(stream));
}

SECTION(wrongCopies) {
  setUp();
  Batch batch;
  batch.sizes[1] = 0;
  SAY(batch.copy());
  SAY(cudaStreamSynchronize(stream));
  ARRAY(others, 32);
  batch = Batch();
  batch.to[1] = nullptr;
  clear();
  SAY(batch.copy());
  SAY(cudaStreamSynchronize(stream));
  ARRAY(others, 32);  // whether the earlier copies were made
  batch = Batch();
  batch.from[1] = nullptr;
  SAY(batch.copy());
  batch.sizes[1] = 0;
  SAY(batch.copy());
  batch = Batch();
  batch.to[0] = others + 1;  // adjacent to the source, and equal to it
  batch.from[0] = others;
  batch.from[1] = batch.to[1];
  SAY(batch.copy());
  SAY(cudaStreamSynchronize(stream));
  SAY(cudaGetLastError());
}

SECTION(streams) {
  setUp();
  Batch batch;
  SAY(batch.copy(nullptr));
  SAY(batch.copy(cudaStreamLegacy));
  SAY(batch.copy(cudaStreamPerThread));
  SAY(cudaStreamSynchronize(cudaStreamPerThread));
  ARRAY(others, 32);
  cudaStream_t blocking;
  CHECK(cudaStreamCreate(&blocking));
  add<<<1, 1, 0, blocking>>>(words + 1, 100);
  SAY(batch.copy(blocking));
  add<<<1, 1, 0, blocking>>>(words + 1, 100);
  SAY(cudaStreamSynchronize(blocking));
  ARRAY(others, 4);
}

SECTION(managed) {
  setUp();
  int* memory = nullptr;
  CHECK(cudaMallocManaged(&memory, wordCount * sizeof(int)));
  for (size_t i = 0; i < wordCount; ++i) memory[i] = static_cast<int>(2000 + i);
  Batch batch;
  batch.kinds = 4;
  batch.from[0] = memory;
  batch.to[1] = memory + 100;
  batch.from[2] = memory + 8, batch.to[2] = memory + 110;
  batch.attributes[0].srcLocHint = {cudaMemLocationTypeHost, 0};
  batch.attributes[1].dstLocHint = {cudaMemLocationTypeDevice, 0};
  batch.attributes[2].srcLocHint = {cudaMemLocationTypeHostNuma, 0};
  batch.attributes[2].dstLocHint = {cudaMemLocationTypeHostNumaCurrent, 0};
  SAY(batch.copy());
  SAY(cudaStreamSynchronize(stream));
  ARRAY(others, 32);
  ARRAY(memory + 98, 18);
  batch.attributes[1].dstLocHint = {cudaMemLocationTypeDevice, 99};
  SAY(batch.copy());
  batch.attributes[1].dstLocHint = {cudaMemLocationTypeDevice, -1};
  SAY(batch.copy());
  batch.attributes[1].dstLocHint = {static_cast<cudaMemLocationType>(99), 0};
  SAY(batch.copy());
  batch.attributes[1].dstLocHint = {cudaMemLocationTypeHostNuma, 9999};
  SAY(batch.copy());
  SAY(cudaStreamSynchronize(stream));
}

// How a batch is captured: as nodes, or with an error.
static void capture(cudaMemcpySrcAccessOrder order) {
  setUp();
  Batch batch;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  size_t nodes = 0, edges = 0;
  batch.from[3] = pinned + 1;
  batch.attributes[0] = inOrder(order);
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  SAY(batch.copy());
  SAY(cudaStreamEndCapture(stream, &graph));
  if (graph == nullptr) return;
  SAY(cudaGraphGetNodes(graph, nullptr, &nodes));
  VALUE(nodes);
  SAY(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
  VALUE(edges);
  SAY(cudaGraphInstantiate(&executable, graph, 0));
  SAY(cudaGraphLaunch(executable, stream));
  SAY(cudaStreamSynchronize(stream));
  ARRAY(others, 32);
}
SECTION(captured) { capture(cudaMemcpySrcAccessOrderStream); }
SECTION(capturedDuringCall) { capture(cudaMemcpySrcAccessOrderDuringApiCall); }
SECTION(capturedAny) { capture(cudaMemcpySrcAccessOrderAny); }

SECTION(capturedBoxes) {
  setUp();
  cudaMemcpy3DBatchOp op = box(memory(others), memory(words + 5), 8, 2, 2);
  cudaGraph_t graph = nullptr;
  size_t nodes = 0;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  SAY(cudaMemcpy3DBatchAsync(1, &op, 0, stream));
  SAY(cudaStreamEndCapture(stream, &graph));
  if (graph == nullptr) return;
  SAY(cudaGraphGetNodes(graph, nullptr, &nodes));
  VALUE(nodes);
}

SECTION(capturedWithError) {
  setUp();
  Batch batch;
  batch.attributes[0] = inOrder(cudaMemcpySrcAccessOrderInvalid);
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  SAY(batch.copy());
  SAY(cudaStreamEndCapture(stream, &graph));
  VALUE(graph != nullptr);
}

SECTION(boxes) {
  setUp();
  char* to = reinterpret_cast<char*>(others);
  char* from = reinterpret_cast<char*>(words);
  cudaMemcpy3DBatchOp all[] = {box(memory(to), memory(from), 12), box(memory(to + 64, 16), memory(from + 64, 32), 8, 2),
                               box(memory(to + 128, 16, 3), memory(from + 128, 8, 2), 8, 2, 2),
                               box(memory(to + 256), memory(from + 256), 4, 3, 2)};
  SAY(cudaMemcpy3DBatchAsync(4, all, 0, stream));
  SAY(cudaStreamSynchronize(stream));
  ARRAY(others, 72);
  clear();
  cudaMemcpy3DBatchOp ofHost[] = {box(memory(to), memory(host + 40), 12), box(memory(to + 64, 16), memory(pinned + 40, 32), 8, 2),
                                  box(memory(host, 16), memory(from + 128, 8), 8, 2),
                                  box(memory(pinned, 16), memory(host + 80, 8), 8, 2)};
  for (auto& each : ofHost) each.srcAccessOrder = cudaMemcpySrcAccessOrderDuringApiCall;
  SAY(cudaMemcpy3DBatchAsync(4, ofHost, 0, stream));
  SAY(cudaStreamSynchronize(stream));
  ARRAY(others, 24);
  ARRAY(host, 8);
  ARRAY(pinned, 8);
}

SECTION(boxesOfArrays) {
  setUp();
  cudaChannelFormatDesc format = cudaCreateChannelDesc<int>(), narrow = cudaCreateChannelDesc<short>();
  cudaArray_t plane = nullptr, other = nullptr, deep = nullptr, ofShorts = nullptr;
  CHECK(cudaMallocArray(&plane, &format, 8, 4));
  CHECK(cudaMallocArray(&other, &format, 8, 4));
  CHECK(cudaMallocArray(&ofShorts, &narrow, 8, 4));
  CHECK(cudaMalloc3DArray(&deep, &format, make_cudaExtent(4, 4, 4), 0));
  // Widths and row lengths count elements.
  cudaMemcpy3DBatchOp in[] = {box(part(plane, 1, 1), memory(words, 4), 3, 2),
                              box(part(deep, 0, 1, 2), memory(words + 32, 4, 4), 4, 2, 2)};
  SAY(cudaMemcpy3DBatchAsync(2, in, 0, stream));
  cudaMemcpy3DBatchOp between = box(part(other, 4, 0), part(plane, 1, 1), 3, 2);
  SAY(cudaMemcpy3DBatchAsync(1, &between, 0, stream));
  cudaMemcpy3DBatchOp out[] = {box(memory(others, 8), part(plane, 1, 1), 3, 2), box(memory(others + 16), part(other, 4, 0), 3, 2),
                               box(memory(others + 32), part(deep, 0, 1, 2), 4, 2, 2)};
  SAY(cudaMemcpy3DBatchAsync(3, out, 0, stream));
  SAY(cudaStreamSynchronize(stream));
  ARRAY(others, 48);
  cudaMemcpy3DBatchOp wrong = box(memory(others), part(plane, 6, 0), 3, 1);
  SAY(cudaMemcpy3DBatchAsync(1, &wrong, 0, stream));
  wrong = box(memory(others), part(plane, 0, 3), 3, 2);
  SAY(cudaMemcpy3DBatchAsync(1, &wrong, 0, stream));
  wrong = box(memory(others), part(plane, 0, 0, 1), 3, 1);
  SAY(cudaMemcpy3DBatchAsync(1, &wrong, 0, stream));
  wrong = box(memory(others), part(deep, 0, 0, 3), 3, 1, 2);
  SAY(cudaMemcpy3DBatchAsync(1, &wrong, 0, stream));
  wrong = box(memory(others), part(plane, ~size_t{0}, 0), 3, 1);
  SAY(cudaMemcpy3DBatchAsync(1, &wrong, 0, stream));
  wrong = box(memory(others), part(plane, size_t{1} << 62, 0), 3, 1);  // four times that is 0 modulo 2^64
  SAY(cudaMemcpy3DBatchAsync(1, &wrong, 0, stream));
  wrong = box(memory(others), part(plane), (size_t{1} << 62) + 1, 1);
  SAY(cudaMemcpy3DBatchAsync(1, &wrong, 0, stream));
  wrong = box(memory(others), part(plane), 3, 1, 2);
  SAY(cudaMemcpy3DBatchAsync(1, &wrong, 0, stream));
  wrong = box(part(ofShorts), part(plane), 3, 1);
  SAY(cudaMemcpy3DBatchAsync(1, &wrong, 0, stream));
  wrong = box(part(plane), part(ofShorts), 3, 1);
  SAY(cudaMemcpy3DBatchAsync(1, &wrong, 0, stream));
  SAY(cudaStreamSynchronize(stream));
  SAY(cudaGetLastError());
}

SECTION(wrongBoxes) {
  setUp();
  auto right = [] { return box(memory(others, 16, 2), memory(words, 16, 2), 8, 2, 2); };
  cudaMemcpy3DBatchOp op = right();
  auto copy = [&](unsigned long long flags = 0, cudaStream_t in = stream) { return cudaMemcpy3DBatchAsync(1, &op, flags, in); };
  SAY(copy());
  SAY(copy(1));
  SAY(copy(~0ull));
  SAY(copy(0, nullptr));
  SAY(copy(0, cudaStreamLegacy));
  SAY(copy(0, cudaStreamPerThread));
  SAY(cudaMemcpy3DBatchAsync(0, &op, 0, stream));
  for (int which = 0; which < 3; ++which) {
    op = right();
    (which == 0 ? op.extent.width : which == 1 ? op.extent.height : op.extent.depth) = 0;
    VALUE(which);
    SAY(copy());
  }
  op = right();
  op.src.op.ptr.rowLength = 7;
  SAY(copy());
  op = right();
  op.dst.op.ptr.rowLength = 7;
  SAY(copy());
  op = right();
  op.src.op.ptr.layerHeight = 1;
  SAY(copy());
  op = right();
  op.dst.op.ptr.layerHeight = 1;
  SAY(copy());
  op = right();
  op.src.op.ptr.ptr = nullptr;
  SAY(copy());
  op = right();
  op.dst.op.ptr.ptr = nullptr;
  SAY(copy());
  for (int type : {0, 3, -1}) {
    op = right();
    op.src.type = static_cast<cudaMemcpy3DOperandType>(type);
    VALUE(type);
    SAY(copy());
    op = right();
    op.dst.type = static_cast<cudaMemcpy3DOperandType>(type);
    SAY(copy());
  }
  for (int order : {0, 1, 2, 3, 4, -1}) {
    op = right();
    op.srcAccessOrder = static_cast<cudaMemcpySrcAccessOrder>(order);
    VALUE(order);
    SAY(copy());
  }
  for (unsigned flags : {1u, 2u, ~0u}) {
    op = right();
    op.flags = flags;
    VALUE(flags);
    SAY(copy());
  }
  op = right();
  op.src.op.ptr.locHint = {cudaMemLocationTypeDevice, 99};
  SAY(copy());
  op = right();
  op.src.op.ptr.locHint = {static_cast<cudaMemLocationType>(99), 0};
  SAY(copy());
  SAY(cudaStreamSynchronize(stream));
  SAY(cudaGetLastError());
}

// The second of three copies is wrong: whether the first was made.
SECTION(wrongAmongRight) {
  setUp();
  cudaMemcpy3DBatchOp all[] = {box(memory(others), memory(words + 1), 4), box(memory(others + 1), memory(words + 2), 4),
                               box(memory(others + 2), memory(words + 3), 4)};
  all[1].srcAccessOrder = cudaMemcpySrcAccessOrderInvalid;
  SAY(cudaMemcpy3DBatchAsync(3, all, 0, stream));
  SAY(cudaStreamSynchronize(stream));
  ARRAY(others, 4);
  all[1] = box(memory(others + 1), memory(words + 2), 0);
  SAY(cudaMemcpy3DBatchAsync(3, all, 0, stream));
  SAY(cudaStreamSynchronize(stream));
  ARRAY(others, 4);
  all[1] = box(memory(others + 1), memory(words + 250), 64);
  SAY(cudaMemcpy3DBatchAsync(3, all, 0, stream));
  SAY(cudaStreamSynchronize(stream));
  ARRAY(others, 4);
}

// Null for a required pointer: one per section, because the driver may crash.
#define NOTHING(name, call) \
  SECTION(name) {           \
    setUp();                \
    Batch batch;            \
    SAY(call);              \
  }

NOTHING(nothingTo, cudaMemcpyBatchAsync(nullptr, batch.from, batch.sizes, 4, batch.attributes, batch.begins, 1, stream))
NOTHING(nothingFrom, cudaMemcpyBatchAsync(batch.to, nullptr, batch.sizes, 4, batch.attributes, batch.begins, 1, stream))
NOTHING(nothingSizes, cudaMemcpyBatchAsync(batch.to, batch.from, nullptr, 4, batch.attributes, batch.begins, 1, stream))
NOTHING(nothingAttributes, cudaMemcpyBatchAsync(batch.to, batch.from, batch.sizes, 4, nullptr, batch.begins, 1, stream))
NOTHING(nothingBeginnings, cudaMemcpyBatchAsync(batch.to, batch.from, batch.sizes, 4, batch.attributes, nullptr, 1, stream))
NOTHING(nothingOfNone, cudaMemcpyBatchAsync(nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0, stream))
NOTHING(nothingBoxes, cudaMemcpy3DBatchAsync(1, nullptr, 0, stream))
NOTHING(nothingBoxesOfNone, cudaMemcpy3DBatchAsync(0, nullptr, 0, stream))

