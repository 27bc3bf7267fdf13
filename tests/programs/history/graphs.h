// Executable graphs over their own memory: captured or built node by node, changed and launched again, while the graph exists and after it
// was destroyed.
#pragma once

#include "memory.h"

namespace history {

class Graph : public Object {
 public:
  Graph(World& world, int device) : world(world), device(device) {
    for (auto& one : memory) one = makeDeviceMemory(world, device, 4000 + world.pick(4000));
    isCaptured = world.oneIn(2);
    for (uint32_t i = 0, count = 1 + world.pick(6); i < count; ++i) {
      const size_t at = world.pick(500);
      pieces.push_back({static_cast<Kind>(world.pick(4)), static_cast<int>(world.pick(2)), at, 1 + world.pick(400),
                        world.pick(1000), nullptr});
    }
    const int slot = world.pickSlot(device);
    isCaptured ? capture(slot) : build(slot);
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
  }
  ~Graph() override {
    world.wait(slot);
    CHECK(cudaGraphExecDestroy(executable));
    if (graph != nullptr) CHECK(cudaGraphDestroy(graph));
  }

  void act() override {
    switch (world.pick(8)) {
      case 0: return memory[world.pick(2)]->act();
      case 1: return change();
      case 2: return renew();
      default: return launch(world.pickSlot(device), 1 + world.pick(3));
    }
  }
  bool isRight(Digest& digest) override { return memory[0]->isRight(digest) & memory[1]->isRight(digest); }

 private:
  enum class Kind { mix, turn, fill, copy };
  struct Piece {
    Kind kind;
    int to;
    size_t at, count;  // words
    uint32_t number;
    cudaGraphNode_t node;  // if the graph was built node by node
  };
  uint32_t* place(int which, size_t at, int slot) { return reinterpret_cast<uint32_t*>(memory[which]->use(slot)) + at; }

  void capture(int inSlot) {
    for (auto& one : memory) one->use(inSlot);
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (auto& [kind, to, at, count, number, node] : pieces) {
      uint32_t *target = place(to, at, inSlot), *source = place(1 - to, at, inSlot);
      const auto words = static_cast<uint32_t>(count);
      switch (kind) {
        case Kind::mix: mixWords<<<1, 64, 0, stream>>>(target, source, words, number); break;
        case Kind::turn: turnWords<<<1, 64, 0, stream>>>(target, words, number); break;
        case Kind::fill: CHECK(cudaMemsetAsync(target, number & 255, 4 * count, stream)); break;
        case Kind::copy: CHECK(cudaMemcpyAsync(target, source, 4 * count, cudaMemcpyDeviceToDevice, stream)); break;
      }
    }
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaStreamDestroy(stream));
  }

  void build(int inSlot) {
    for (auto& one : memory) one->use(inSlot);
    CHECK(cudaGraphCreate(&graph, 0));
    cudaGraphNode_t last = nullptr;
    for (auto& piece : pieces) {
      uint32_t *target = place(piece.to, piece.at, inSlot), *source = place(1 - piece.to, piece.at, inSlot);
      const cudaGraphNode_t* before = last == nullptr ? nullptr : &last;
      const size_t count = last == nullptr ? 0 : 1;
      switch (piece.kind) {
        case Kind::fill: {
          cudaMemsetParams how{};
          how.dst = target;
          how.value = piece.number & 255;
          how.elementSize = 1;
          how.width = 4 * piece.count;
          how.height = 1;
          CHECK(cudaGraphAddMemsetNode(&piece.node, graph, before, count, &how));
          break;
        }
        case Kind::copy:
          CHECK(cudaGraphAddMemcpyNode1D(&piece.node, graph, before, count, target, source, 4 * piece.count,
                                         cudaMemcpyDeviceToDevice));
          break;
        default:
          withKernel(piece, inSlot, [&](auto& how) { CHECK(cudaGraphAddKernelNode(&piece.node, graph, before, count, &how)); });
      }
      last = piece.node;
    }
  }

  template <typename Use>
  void withKernel(const Piece& piece, int inSlot, Use use) {
    uint32_t *target = place(piece.to, piece.at, inSlot), *source = place(1 - piece.to, piece.at, inSlot);
    auto words = static_cast<uint32_t>(piece.count);
    uint32_t number = piece.number;
    void* ofMix[] = {&target, &source, &words, &number};
    void* ofTurn[] = {&target, &words, &number};
    cudaKernelNodeParams how{};
    const bool mixes = piece.kind == Kind::mix;
    how.func = mixes ? reinterpret_cast<void*>(mixWords) : reinterpret_cast<void*>(turnWords);
    how.gridDim = how.blockDim = dim3(1);
    how.blockDim.x = 64;
    how.kernelParams = mixes ? ofMix : ofTurn;
    use(how);
  }

  // Sets new numbers for a kernel of the executable graph, while the graph still has its node.
  void change() {
    Piece& piece = pieces[world.pick(pieces.size())];
    if (graph == nullptr || isCaptured || piece.kind > Kind::turn) return;
    piece.number = world.pick(1000);
    world.enter(slot);
    withKernel(piece, slot, [&](auto& how) {
      CHECK(cudaGraphExecKernelNodeSetParams(executable, piece.node, &how));
      CHECK(cudaGraphKernelNodeSetParams(piece.node, &how));
    });
  }
  // Instantiates the graph again, or destroys the graph and keeps the executable graph.
  void renew() {
    if (graph == nullptr) return;
    world.wait(slot);
    if (world.oneIn(2)) {
      CHECK(cudaGraphDestroy(graph));
      graph = nullptr;
    } else {
      CHECK(cudaGraphExecDestroy(executable));
      CHECK(cudaGraphInstantiate(&executable, graph, 0));
    }
  }

  void launch(int inSlot, uint32_t times) {
    world.order(slot, inSlot);
    slot = inSlot;
    for (auto& one : memory) one->use(slot);
    for (uint32_t i = 0; i < times; ++i) {
      CHECK(cudaGraphLaunch(executable, world.enter(slot)));
      for (auto& [kind, to, at, count, number, node] : pieces) {
        Memory &target = *memory[to], &source = *memory[1 - to];
        switch (kind) {
          case Kind::mix: target.mixWanted(source, at, at, count, number); break;
          case Kind::turn: target.turnWanted(at, count, number); break;
          case Kind::fill:
            for (size_t i = 0; i < count; ++i) target.setWord(at + i, (number & 255) * 0x01010101u);
            break;
          case Kind::copy:
            for (size_t i = 0; i < count; ++i) target.setWord(at + i, source.word(at + i));
            break;
        }
      }
    }
  }

  World& world;
  const int device;
  std::shared_ptr<Memory> memory[2];
  std::vector<Piece> pieces;
  bool isCaptured;
  int slot = device * 4;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
};

inline std::shared_ptr<Object> makeGraph(World& world) { return std::make_shared<Graph>(world, world.pickDevice()); }

}  // namespace history
