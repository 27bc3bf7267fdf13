// Executable graphs that copy registered memory which the program unregisters after instantiation and registers again, before or after the
// suspend. In the latter case restore makes the graph while its memory is not registered.
#include "program.h"

#include <sys/mman.h>

namespace {

constexpr size_t bytes = 2 << 20;

class Registered {
 public:
  explicit Registered(bool isTo) {
    memory = static_cast<char*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    CHECK(cudaHostRegister(memory, bytes, 0));
    cudaGraph_t graph;
    cudaGraphNode_t node;
    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(isTo ? cudaGraphAddMemcpyNode1D(&node, graph, nullptr, 0, device, memory, count, cudaMemcpyHostToDevice)
               : cudaGraphAddMemcpyNode1D(&node, graph, nullptr, 0, memory, device, count, cudaMemcpyDeviceToHost));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaHostUnregister(memory));
  }
  ~Registered() {
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaHostUnregister(memory));
    munmap(memory, bytes);
  }
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;

  void wake() { CHECK(cudaHostRegister(memory, bytes, 0)); }
  bool copies(char host, char there, const char* expected) {
    std::memset(memory, host, count);
    device.upload(std::vector<char>(count, there));
    CHECK(cudaGraphLaunch(exec, cudaStreamLegacy));
    if (!EXPECT_ERROR(cudaStreamSynchronize(cudaStreamLegacy), cudaSuccess)) return false;
    return EXPECT(memory[count - 1] == expected[0]) & EXPECT(device.download()[count - 1] == expected[1]);
  }

 private:
  static constexpr size_t count = 4096;
  char* memory;
  DeviceArray<char> device{count};
  cudaGraphExec_t exec;
};

}  // namespace

int main() {
  Registered to(true), from(false), toLater(true), fromLater(false);
  to.wake();
  from.wake();
  bool ok = to.copies('a', 'b', "aa") & from.copies('c', 'd', "dd");
  pausePoint();
  toLater.wake();
  fromLater.wake();
  ok &= to.copies('e', 'f', "ee") & from.copies('g', 'h', "hh") & toLater.copies('i', 'j', "ii") & fromLater.copies('k', 'l', "ll");
  return verdict("registered-graphs", ok);
}
