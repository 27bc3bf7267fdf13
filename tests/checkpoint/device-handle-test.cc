// Over a suspend: the handles by which kernels know the graphs that they launch (stub/worker/device-handles.h).
#include <doctest/doctest.h>

#include "session-fixture.h"

using namespace vgpu;
using namespace vgpu::checkpoint;
using namespace vgpu::test;

namespace {

uint64_t graphOf(unsigned number) { return makeHandle(api::Kind::GRAPH_EXEC, 0, 0, 30 + number); }

// Makes a graph of one fill that kernels can launch.
void makeGraph(TestSession& session, unsigned number) {
  session.post(makeFrame<api::Cuda::GraphBeginParams>(0, api::Method::graphBegin, 0, [&](auto p) { p.setGraph(graphOf(number)); }));
  session.post(makeFrame<api::Cuda::GraphFillParams>(0, api::Method::graphFill, 0, [&](auto p) {
    p.setGraph(graphOf(number));
    p.setDestination(made::counters);
    p.setElementBytes(4);
    p.setWidth(1);
    p.setHeight(1);
  }));
  session.require(makeFrame<api::Cuda::GraphInstantiateParams>(0, api::Method::graphInstantiate, 0, [&](auto p) {
    p.setGraph(graphOf(number));
    p.setFlags(CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH);
  }));
}

void endGraph(TestSession& session, unsigned number) {
  session.post(makeFrame<api::Cuda::GraphEndParams>(0, api::Method::graphEnd, 0, [&](auto p) { p.setGraph(graphOf(number)); }));
}

// Makes graphs 0, 3, 5 and 6; the handles between them are free, or belong to another graph.
void makeGraphs(TestSession& session, stub::Worker& worker) {
  session.require(makeFrame<api::Cuda::LeaseParams>(0, api::Method::lease, 0, [](auto p) {
    p.setAddress(made::arena);
    p.setBytes(made::leaseBytes);
  }));
  for (unsigned number = 0; number < 5; ++number) makeGraph(session, number);
  for (unsigned number : {1, 4, 2}) endGraph(session, number);
  for (unsigned number : {5, 6}) makeGraph(session, number);
  session.require(synchronize());
  worker.quiesce();
}

nlohmann::json rowsOf(const SavedSession& saved) { return manifestOf(readFile(saved.path + "/manifest.json"))["state"]["graphSettings"]; }

}  // namespace

TEST_CASE("graphs that kernels launch get their handles back, whatever was made and destroyed before") {
  SavedSession saved(makeGraphs);
  auto rows = rowsOf(saved);
  REQUIRE(rows.size() == 4);
  std::set<uint64_t> handles;
  for (auto& row : rows) {
    CHECK(row[2] == "handle");
    handles.insert(row[1].get<uint64_t>());
  }
  CHECK(handles.size() == 4);
  CHECK(saved.restored() == "");
}

TEST_CASE("a resume fails if the driver assigns a needed handle to no graph, and the snapshot stays") {
  SavedSession saved(makeGraphs);
  std::string good = readFile(saved.path + "/manifest.json");
  forgeManifest(saved.path, [](auto& json) {
    auto& address = json["state"]["graphSettings"][1][1];
    address = address.template get<uint64_t>() + 8;
  });
  contains(saved.restored(), "kernels of this program launch it by the handle 0x");
  writeFile(saved.path + "/manifest.json", good);
  CHECK(saved.restored() == "");
}
