// Threads that load and unload modules, each in its own order, while streams are made and destroyed and kernels print: the device
// allocations before a module's load differ from run to run. Every remaining variable must be where the program and its device memory
// expect it.
#include <map>
#include <mutex>
#include <string>

#include "captured-output.h"
#include "driver-entry.h"

namespace {

decltype(&cuModuleLoadData) load;
decltype(&cuModuleUnload) unload;
decltype(&cuModuleGetGlobal) getGlobal;

constexpr unsigned threads = 6, rounds = 12;
constexpr size_t sizes[] = {64, 3 << 20, 5000, 700 << 10, 1 << 20, 2 << 20, 200};

struct Module {
  CUmodule handle;
  CUdeviceptr variable;
};
std::mutex mutex;
std::map<unsigned, Module> modules;  // by number, of all threads

__global__ void say(unsigned number) { printf("%u\n", number); }
__global__ void keep(unsigned long long* addresses, unsigned at, unsigned long long address) { addresses[at] = address; }

void loadModule(unsigned number) {
  const std::string image = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .global .align 256 .b8 variable[" +
                            std::to_string(sizes[number % std::size(sizes)]) + "];\n.visible .global .align 4 .u32 more" +
                            std::to_string(number) + ";\n";
  Module module;
  size_t bytes;
  check(load(&module.handle, image.c_str()), "cuModuleLoadData");
  check(getGlobal(&module.variable, &bytes, module.handle, "variable"), "cuModuleGetGlobal");
  CHECK(cudaMemset(reinterpret_cast<void*>(module.variable), static_cast<int>(number % 251), 64));
  std::lock_guard lock(mutex);
  modules[number] = module;
}

void unloadModule(unsigned number) {
  CUmodule handle;
  {
    std::lock_guard lock(mutex);
    handle = modules.at(number).handle;
    modules.erase(number);
  }
  check(unload(handle), "cuModuleUnload");
}

// A third of the modules stays for good, another third is unloaded two rounds later, the rest at once.
void work(unsigned thread, unsigned from, unsigned to) {
  for (unsigned round = from; round < to; ++round) {
    const unsigned number = thread * 1000 + round;
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    say<<<1, 1, 0, stream>>>(number);
    loadModule(number);
    CHECK(cudaStreamSynchronize(stream));
    if (number % 3 == 0) unloadModule(number);
    if (round >= from + 2 && (number - 2) % 3 == 1) unloadModule(number - 2);
    CHECK(cudaStreamDestroy(stream));
  }
}

void workAll(unsigned from, unsigned to) {
  std::vector<std::thread> all;
  for (unsigned thread = 1; thread <= threads; ++thread) all.emplace_back(work, thread, from, to);
  for (auto& thread : all) thread.join();
}

bool areInPlace(const std::vector<unsigned long long>& kept) {
  bool ok = EXPECT(kept.size() <= modules.size());
  size_t at = 0;
  for (auto& [number, module] : modules) {
    if (at < kept.size()) {  // modules loaded before, through addresses stored on the device
      unsigned char bytes[64];
      CHECK(cudaMemcpy(bytes, reinterpret_cast<void*>(kept[at]), sizeof bytes, cudaMemcpyDeviceToHost));
      for (unsigned char byte : bytes) ok &= byte == number % 251;
      ok &= EXPECT(kept[at] == module.variable);
    }
    ++at;
  }
  return EXPECT(ok);
}

}  // namespace

int main() {
  alarm(60);
  CHECK(cudaFree(nullptr));
  load = find<decltype(load)>("cuModuleLoadData");
  unload = find<decltype(unload)>("cuModuleUnload");
  getGlobal = find<decltype(getGlobal)>("cuModuleGetGlobal");
  CapturedOutput output(CapturedOutput::Into::file);
  workAll(0, rounds);
  DeviceArray<unsigned long long> addresses(modules.size());
  unsigned at = 0;
  for (auto& [number, module] : modules) keep<<<1, 1>>>(addresses, at++, module.variable);
  CHECK(cudaDeviceSynchronize());
  pausePoint();
  bool ok = areInPlace(addresses.download());
  const auto before = modules;
  workAll(rounds, 2 * rounds);
  for (auto& [number, module] : before) unloadModule(number);
  output.finish();
  return verdict("module-threads", ok & areInPlace({}));
}
