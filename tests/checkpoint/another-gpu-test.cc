// Sessions that are resumed on a different GPU: of another architecture or size, in another order, or one GPU instead of several.
#include <doctest/doctest.h>
#include <kj/debug.h>

#include "checkpoint/device-identity.h"
#include "session-fixture.h"
#include "stub/worker/execution.h"
#include "vgpu/snapshot/manifest.h"

using namespace vgpu;
using namespace vgpu::checkpoint;
using namespace vgpu::test;

namespace {

struct Suspended {
  // `prepare` is additional work of the program before it is suspended.
  explicit Suspended(const std::function<void(TestSession&)>& prepare = nullptr, const std::string& settings = "") {
    CHECK(session.inWorker(
              [&](stub::Worker& worker) {
                buildAndStop(session, worker);
                if (prepare) {
                  worker.proceed();
                  prepare(session);
                  session.require(synchronize());
                  session.commit();
                  worker.quiesce();
                }
                save(worker, path, session.scratch.path + "/list", someIdentity(), nullptr);
              },
              settings) == "");
  }
  // The message with which restore refuses such a device; the program's memory must be unchanged.
  std::string refusal(const std::string& settings, const TestSession::Adapt& adapt = nullptr) {
    auto before = session.program();
    std::string text = session.inWorker([&](stub::Worker& worker) { restore(worker, path, nullptr); }, settings, adapt);
    CHECK(session.program() == before);
    return text;
  }
  std::string finish(const std::string& settings, const TestSession::Adapt& adapt = nullptr) {
    return session.inWorker(
        [&](stub::Worker& worker) {
          proceed(worker, restore(worker, path, nullptr));
          requireFinished(session);
        },
        settings, adapt);
  }

  // Resumes on such a device and suspends again; `path` is the new snapshot afterwards.
  std::string suspendAgain(const std::string& settings) {
    std::string second = session.scratch.path + "/second";
    std::string error = session.inWorker(
        [&](stub::Worker& worker) {
          proceed(worker, restore(worker, path, nullptr));
          session.require(synchronize());
          session.commit();
          worker.quiesce();
          save(worker, second, session.scratch.path + "/list", someIdentity(), nullptr);
        },
        settings);
    path = second;
    return error;
  }

  TestSession session;
  std::string path = session.scratch.path + "/snapshot";
};

// A cooperative launch of add(counters, 0) with `blocks` blocks.
RecordedFrame cooperative(unsigned blocks, unsigned threads = 1) {
  return makeFrame<api::Cuda::LaunchKernelParams>(0, api::Method::launchKernel, 0, [&](auto params) {
    params.setFunction(made::addFunction);
    params.setCooperative(true);
    params.setGridX(blocks), params.setGridY(1), params.setGridZ(1);
    params.setBlockX(threads), params.setBlockY(1), params.setBlockZ(1);
    auto bytes = params.initParameters(12);
    std::memset(bytes.begin(), 0, bytes.size());
    std::memcpy(bytes.begin(), &made::counters, 8);
  });
}

// The same kernel with two blocks in one cluster.
RecordedFrame inCluster() {
  return makeFrame<api::Cuda::LaunchWithAttributesParams>(0, api::Method::launchWithAttributes, 0, [&](auto params) {
    params.setFunction(made::addFunction);
    params.setGridX(2), params.setGridY(1), params.setGridZ(1);
    params.setBlockX(1), params.setBlockY(1), params.setBlockZ(1);
    auto bytes = params.initParameters(12);
    std::memset(bytes.begin(), 0, bytes.size());
    std::memcpy(bytes.begin(), &made::counters, 8);
    CUlaunchAttribute cluster{};
    cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    cluster.value.clusterDim = {2, 1, 1};
    std::memcpy(params.initAttributes(sizeof cluster).begin(), &cluster, sizeof cluster);
  });
}

// Makes the driver report a device without clusters, as before Hopper. State of the worker's process.
decltype(stub::Driver::cuDeviceGetAttribute) attributeOfAny;
void lackClusters(stub::Driver& driver) {
  attributeOfAny = std::exchange(driver.cuDeviceGetAttribute, [](int* value, CUdevice_attribute attribute, CUdevice device) {
    CUresult result = attributeOfAny(value, attribute, device);
    if (attribute == CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH) *value = 0;
    return result;
  });
}

Device firstDevice(const std::string& path) { return readHeader(SnapshotReader(path)).devices.at(0); }

std::string refusalOf(const std::function<void()>& work) {
  KJ_IF_MAYBE (exception, kj::runCatchingExceptions(work)) return exception->getDescription().cStr();
  return "";
}

}  // namespace

TEST_CASE("a session is resumed on another architecture, and a later snapshot still names the GPU that its program has seen") {
  Suspended suspended;
  Device seen = firstDevice(suspended.path);
  CHECK(seen.capability == 90);
  CHECK(suspended.suspendAgain("architecture=80,memory=1GiB") == "");
  Device now = firstDevice(suspended.path);
  CHECK(now.capability == 90);
  CHECK(now.name == seen.name);
  CHECK(now.uuid == seen.uuid);
  CHECK(now.memoryBytes == seen.memoryBytes);
  CHECK(suspended.finish("architecture=120") == "");
}

TEST_CASE("a module that has no code for the other architecture is refused by name") {
  constexpr uint64_t module = 102, blob = 2;
  std::string ptx = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .global .u32 there;\n";
  Suspended suspended([&](TestSession& session) {
    bringImage(session, blob, std::as_bytes(std::span(ptx.c_str(), ptx.size() + 1)));
    session.require(moduleLoad(0, module, blob));
  });
  std::string text = suspended.refusal("architecture=80");
  contains(text, "the module 0x66 cannot be loaded again on GPU 0 here, vgpu emulated device sm_80 (compute capability 8.0)");
  contains(text, "neither machine code nor PTX for this GPU");
  CHECK(suspended.finish("architecture=100") == "");
}

TEST_CASE("a GPU with less memory than the session has is refused with both sizes, and a smaller one with enough is not") {
  Suspended suspended;
  contains(
      suspended.refusal("memory=16MiB"),
      "the program uses 32 MiB of GPU memory, but GPU 0 here, vgpu emulated device sm_90 (compute capability 9.0) has 16 MiB");
  CHECK(suspended.finish("memory=64MiB") == "");
}

TEST_CASE("a cooperative grid that would not fit is refused by its kernel, also after a resume in between") {
  Suspended suspended([&](TestSession& session) { session.post(cooperative(2000)); });
  contains(suspended.refusal("architecture=75"),
           "the program has launched the kernel add as a cooperative grid of 2000 blocks of 1 threads");
  CHECK(suspended.suspendAgain("architecture=80") == "");
  contains(suspended.refusal("architecture=75"), "2000 blocks");
  CHECK(suspended.finish("architecture=80") == "");
}

TEST_CASE("the largest cooperative grid is refused, however many other shapes the program has launched before") {
  Suspended suspended([&](TestSession& session) {
    for (unsigned shape = 1; shape <= 20; ++shape) session.post(cooperative(100 - shape, 1 + shape));
    session.post(cooperative(2000));
  });
  contains(suspended.refusal("architecture=75"), "as a cooperative grid of 2000 blocks of 1 threads");
  CHECK(suspended.finish("architecture=90") == "");
}

TEST_CASE("a cooperative grid is remembered behind many other shapes, and the GPU that ran all of them can resume the session") {
  Suspended suspended([&](TestSession& session) {
    for (unsigned shape = 0; shape < 100; ++shape) session.post(cooperative(150 - shape, 2 + shape));
    session.post(cooperative(2000));
  });
  auto manifest = manifestOf(readFile(suspended.path + "/manifest.json"));
  CHECK(manifest["state"]["launches"].size() < 80);
  contains(suspended.refusal("architecture=75"), "the program has launched the kernel add as a cooperative grid");
  CHECK(suspended.finish("architecture=90") == "");
}

TEST_CASE("a launch in clusters is refused by its kernel on a GPU that has none") {
  Suspended suspended([&](TestSession& session) { session.post(inCluster()); });
  contains(suspended.refusal("", lackClusters), "the program has launched the kernel add in clusters, but GPU 0 here");
  CHECK(suspended.finish("") == "");
}

TEST_CASE("dynamic shared memory that a kernel was allowed is refused by the kernel on a GPU with less") {
  Suspended suspended([&](TestSession& session) {
    session.require(makeFrame<api::Cuda::FuncSetAttributeParams>(0, api::Method::funcSetAttribute, 0, [](auto params) {
      params.setHfunc(made::addFunction);
      params.setAttrib(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
      params.setValue(200 << 10);
    }));
  });
  contains(suspended.refusal("architecture=80"), "(kernel add) cannot be created again on GPU 0 here, vgpu emulated device sm_80");
  CHECK(suspended.finish("architecture=90") == "");
}

TEST_CASE("a session without cooperative launches is resumed on a GPU with fewer multiprocessors") {
  Suspended suspended;
  CHECK(suspended.finish("architecture=75") == "");
}

TEST_CASE("the program's GPU is the one that was chosen for it") {
  Suspended suspended(nullptr, "devices=2");
  auto& session = suspended.session;
  CHECK(session.inWorker(
            [&](stub::Worker& worker) {
              proceed(worker, restore(worker, suspended.path, nullptr));
              requireFinished(session);
              worker.quiesce();
              worker.runQuiesced([](stub::SessionState& on) {
                CUdevice device = -1;
                on.select(0);
                stub::require(on.driver, on.driver.cuCtxGetDevice_v2(&device, on.of(0).gpu.context.get()),
                              "asking for the device");
                KJ_REQUIRE(device == 1, device);
              });
            },
            "devices=2",
            [](stub::Driver& driver) {
              driver.order = {1, 0};
            }) == "");
}

TEST_CASE("devices are chosen by number or by the person's map; devices that the session does not use need none of their own") {
  Suspended suspended(nullptr, "devices=2");  // the session uses only the first
  SnapshotReader directory(suspended.path);
  using Order = std::vector<CUdevice>;
  auto others = [](size_t count) { return std::vector<std::string>(count, "of another node"); };
  CHECK(chooseDevices(directory, {}, others(2)) == Order{0, 1});
  CHECK(chooseDevices(directory, {}, others(1)) == Order{0, 0});
  CHECK(chooseDevices(directory, std::array<uint32_t, 2>{1, 0}, others(2)) == Order{1, 0});
  CHECK(chooseDevices(directory, std::array<uint32_t, 1>{3}, others(4)) == Order{3, 1});
  CHECK(chooseDevices(directory, std::array<uint32_t, 2>{notMapped, 0}, others(2)) == Order{0, 0});
  contains(refusalOf([&] { chooseDevices(directory, std::array<uint32_t, 3>{0, 1, 0}, others(2)); }), "the program has 2 GPUs");
  contains(refusalOf([&] { chooseDevices(directory, std::array<uint32_t, 1>{2}, others(2)); }),
           "--device-map 0=2: there is no GPU 2 here");
  std::string manifest = readFile(suspended.path + "/manifest.json");
  forgeManifest(suspended.path, [](auto& json) { json["rings"].push_back({1, 0, 0}); });  // claims that the session has used the second too
  contains(refusalOf([&] { chooseDevices(SnapshotReader(suspended.path), {}, others(1)); }),
           "the program uses 2 GPUs, and this node has 1: name with --device-map 1=N");
  CHECK(chooseDevices(SnapshotReader(suspended.path), std::array<uint32_t, 2>{0, 0}, others(1)) == Order{0, 0});
  writeFile(suspended.path + "/manifest.json", manifest);
}
