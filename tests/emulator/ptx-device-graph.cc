// Calls in kernels that concern graphs: what reaches the driver, and how its results are returned.
#include <mutex>

#include "device-graph-text.h"
#include "device-launch-runtime.h"

#include "stub/emulator/ptx/run/device-graphs.h"

namespace vgpu::emulator {
namespace {

using namespace vgpu::test;

// Records its calls, and returns what a test sets.
class RecordedGraphs : public DeviceGraphs {
 public:
  uint64_t current() const override { return 0x3f0000074300; }
  Answer launch(uint64_t graph, GraphStream stream) override {
    const std::lock_guard lock(mutex);
    launches.emplace_back(graph, stream);
    return answer;
  }
  Answer change(uint64_t node, const NodeChange& change, bool isMade) override {
    const std::lock_guard lock(mutex);
    if (isMade) changes.emplace_back(node, change);
    return isMade || valid-- != 0 ? answer : Answer::refused;
  }

  Answer answer = Answer::done;
  size_t valid = 1000;  // how many changes are valid before one is refused
  std::vector<std::pair<uint64_t, GraphStream>> launches;
  std::vector<std::pair<uint64_t, NodeChange>> changes;

 private:
  std::mutex mutex;
};

class GraphDevice : public LaunchingDevice {
 public:
  explicit GraphDevice(const std::string& body)
      : LaunchingDevice(launchingKernel("k", body), std::string(launchHeader) + std::string(graphCalls)) {
    launch.graphs = &graphs;
  }
  std::vector<uint32_t> run() {
    (*this)("k", {{1, 1, 1}, {1, 1, 1}}, notes, uint32_t{0});
    return noted();
  }
  std::optional<Fault> fault() { return tryLaunch("k", {{1, 1, 1}, {1, 1, 1}}, notes, uint32_t{0}); }
  RecordedGraphs graphs;
};

}  // namespace

TEST_CASE("a launch of a graph passes handle and stream, and returns the driver's result") {
  GraphDevice device(graphLaunch("77", tailStream) + takeNote("%r9") + graphLaunch("78", besideStream) +
                     graphLaunch("79", siblingStream));
  CHECK(device.run() == std::vector<uint32_t>{0});
  using Launch = std::pair<uint64_t, GraphStream>;
  CHECK(device.graphs.launches == std::vector<Launch>{{77, GraphStream::tail}, {78, GraphStream::fireAndForget}, {79, GraphStream::sibling}});
  GraphDevice other(graphLaunch("77", tailStream) + takeNote("%r9"));
  other.graphs.answer = DeviceGraphs::Answer::refused;
  CHECK(other.run() == std::vector<uint32_t>{1});
}

TEST_CASE("a graph cannot be launched into other streams") {
  for (const char* stream : {"0", "3", "4", "0x0400000000000000"}) {
    GraphDevice device(graphLaunch("77", stream) + takeNote("%r9"));
    CHECK(device.run() == std::vector<uint32_t>{1});
    CHECK(device.graphs.launches.empty());
  }
}

TEST_CASE("an invalid handle of a graph or node is an address: one that cannot be read is a fault, another one is refused") {
  const std::vector<std::string> calls = {graphLaunch("%d1", tailStream), setEnabled("%d1", 1), setGrid("%d1", 1, 1, 1)};
  for (const std::string& call : calls) {
    GraphDevice readable("mov.u64 %d1, %d0;" + call + takeNote("%r9")), unmapped("mov.u64 %d1, 4096;" + call);
    readable.graphs.answer = unmapped.graphs.answer = DeviceGraphs::Answer::stranger;
    CHECK(readable.run() == std::vector<uint32_t>{1});
    const auto fault = unmapped.fault();
    REQUIRE(fault);
    CHECK(fault->kind == Fault::Kind::illegalAddress);
  }
}

TEST_CASE("the register of the current graph has the driver's handle, and zero without a driver") {
  GraphDevice device("mov.u64 %d1, %current_graph_exec; shr.u64 %d2, %d1, 32; cvt.u32.u64 %r1, %d1; cvt.u32.u64 %r2, %d2;" +
                     takeNote("%r1") + takeNote("%r2"));
  CHECK(device.run() == std::vector<uint32_t>{0x74300, 0x3f00});
  GraphDevice other("mov.u64 %d1, %current_graph_exec; cvt.u32.u64 %r1, %d1;" + takeNote("%r1"));
  other.launch.graphs = nullptr;
  CHECK(other.run() == std::vector<uint32_t>{0});
}

TEST_CASE("without a driver, calls that concern graphs are faults") {
  for (const std::string& call : {graphLaunch("77", tailStream), setEnabled("77", 1)}) {
    GraphDevice device(call);
    device.launch.graphs = nullptr;
    const auto fault = device.fault();
    REQUIRE(fault);
    CHECK(fault->kind == Fault::Kind::notSupported);
  }
}

TEST_CASE("changes of a node arrive unchanged, also bytes from local memory") {
  GraphDevice device("{ .local .align 4 .b8 value[8]; mov.u64 %d2, value; cvta.local.u64 %d2, %d2; st.u8 [%d2+3], 201; st.u8 [%d2+4], 7;"
                     "add.u64 %d2, %d2, 3; }" +
                     setParameter("50", "6", "%d2", "2") + takeNote("%r9") + setEnabled("51", 256) + setEnabled("51", 1) +
                     setGrid("52", 3, 4, 5));
  CHECK(device.run() == std::vector<uint32_t>{0});
  const auto& changes = device.graphs.changes;
  REQUIRE(changes.size() == 4);
  CHECK(changes[0].first == 50);
  CHECK(changes[0].second.field == NodeChange::Field::parameter);
  CHECK(changes[0].second.offset == 6);
  CHECK(changes[0].second.bytes == std::vector{std::byte{201}, std::byte{7}});
  CHECK(changes[1].second.field == NodeChange::Field::enabled);
  CHECK(!changes[1].second.enabled);  // a bool is one byte
  CHECK(changes[2].second.enabled);
  CHECK(changes[3].first == 52);
  CHECK(changes[3].second.field == NodeChange::Field::grid);
  CHECK(changes[3].second.grid == std::array<uint32_t, 3>{3, 4, 5});
}

TEST_CASE("at most the maximum size of a kernel's parameters is read") {
  GraphDevice device(setParameter("50", "0", "4096", "40000") + takeNote("%r9"));
  CHECK(device.run() == std::vector<uint32_t>{1});
  CHECK(device.graphs.changes.empty());
  GraphDevice unmapped(setParameter("50", "0", "4096", "4"));
  const auto fault = unmapped.fault();
  REQUIRE(fault);
  CHECK(fault->kind == Fault::Kind::illegalAddress);
}

TEST_CASE("if one change of a batch is invalid, none is made") {
  struct Update {
    uint64_t node;
    uint32_t field, unused;
    uint64_t data[3];
  };
  GraphDevice device("ld.u64 %d1, [%d0+32768];" + applyUpdates("%d1", 4) + takeNote("%r9"));
  const uint64_t word = device.upload(std::vector<uint32_t>{0x04030201});
  const auto run = [&](size_t valid, uint32_t lastField) {
    const uint64_t updates = device.upload(std::vector<Update>{{60, 1, 0, {2 | uint64_t{3} << 32, 4, 0}},
                                                               {61, 2, 0, {word, 8, 3}},
                                                               {62, 3, 0, {uint64_t{1} << 32, 0, 0}},
                                                               {63, lastField, 0, {5, 0, 0}}});
    std::memcpy(device.memory.host(device.notes) + 32768, &updates, sizeof updates);
    device.graphs.changes.clear();
    device.graphs.valid = valid;
    return device.run().back();
  };
  CHECK(run(10, 3) == 0);
  const auto& changes = device.graphs.changes;
  REQUIRE(changes.size() == 4);
  CHECK(changes[0].second.grid == std::array<uint32_t, 3>{2, 3, 4});
  CHECK(changes[1].second.offset == 8);
  CHECK(changes[1].second.bytes == std::vector{std::byte{1}, std::byte{2}, std::byte{3}});
  CHECK(!changes[2].second.enabled);
  CHECK(changes[3].second.enabled);
  CHECK(run(2, 3) == 1);
  CHECK(changes.empty());
  CHECK(run(10, 0) == 1);  // cudaGraphKernelNodeFieldInvalid
  CHECK(changes.empty());
}

TEST_CASE("kernels that launch kernels or graphs, or change nodes, are recognized, also if called functions do it") {
  const auto callsOfKernel = [](const std::string& body) {
    const std::string helper = ".func helper ()\n{ .reg .b64 %d<4>; .reg .b32 %r<10>;\n" + graphLaunch("5", tailStream) + "ret; }\n";
    LaunchingDevice device(launchingKernel("k", body), std::string(launchHeader) + std::string(graphCalls) + helper);
    return callsOf(*device.module->findKernel("k"));
  };
  const KernelCalls none = callsOfKernel(takeNote("1")), kernels = callsOfKernel(launchOf("note", "1")),
                    graphs = callsOfKernel("call.uni helper, ();"), nodes = callsOfKernel(setEnabled("5", 1));
  CHECK(!none.launchKernels);
  CHECK(!none.launchGraphs);
  CHECK(!none.changeNodes);
  CHECK(kernels.launchKernels);
  CHECK(!kernels.launchGraphs);
  CHECK(graphs.launchGraphs);
  CHECK(!graphs.launchKernels);
  CHECK(nodes.changeNodes);
  CHECK(!nodes.launchGraphs);
}

}  // namespace vgpu::emulator
