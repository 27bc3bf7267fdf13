// Modules are loaded and unloaded in an order that no restore can repeat: every remaining variable must keep its address, because the
// program and its device memory contain the addresses.
//
//   module-order [FILE]    with FILE it keeps loading and unloading, without a pause, until FILE exists
#include <unistd.h>

#include <map>
#include <random>
#include <string>

#include "driver-entry.h"

namespace {

decltype(&cuModuleLoadData) load;
decltype(&cuModuleUnload) unload;
decltype(&cuModuleGetGlobal) getGlobal;
decltype(&cuModuleGetFunction) getFunction;
decltype(&cuLaunchKernel) launchKernel;

// A module with a number in it, of any size, and a kernel that returns the number and its address.
std::string imageOf(unsigned number, size_t bytes) {
  return ".version 7.0\n.target sm_70\n.address_size 64\n"
         ".visible .global .align 256 .b8 room[" +
         std::to_string(bytes) +
         "];\n"
         ".visible .global .align 4 .u32 number = " +
         std::to_string(number) +
         ";\n"
         ".visible .entry tell(.param .u64 out) {\n"
         "  .reg .u64 %a, %n;\n  .reg .u32 %v;\n"
         "  ld.param.u64 %a, [out];\n  cvta.to.global.u64 %a, %a;\n"
         "  mov.u64 %n, number;\n  ld.global.u32 %v, [%n];\n"
         "  st.global.u64 [%a], %n;\n  st.global.u32 [%a+8], %v;\n  ret;\n}\n";
}

struct Module {
  CUmodule handle;
  CUfunction tell;
  CUdeviceptr number, room;
};
std::map<unsigned, Module> modules;

void loadModule(unsigned number, size_t bytes) {
  Module module;
  size_t size;
  check(load(&module.handle, imageOf(number, bytes).c_str()), "cuModuleLoadData");
  check(getFunction(&module.tell, module.handle, "tell"), "cuModuleGetFunction");
  check(getGlobal(&module.number, &size, module.handle, "number"), "cuModuleGetGlobal");
  check(getGlobal(&module.room, &size, module.handle, "room"), "cuModuleGetGlobal");
  modules[number] = module;
}

void unloadModule(unsigned number) {
  check(unload(modules.at(number).handle), "cuModuleUnload");
  modules.erase(number);
}

struct Told {
  unsigned long long address;
  unsigned number, unused;
};

// Whether each module's number is at the address that the program has stored, and its variable `room` has the bytes that were written.
bool areInPlace() {
  bool ok = true;
  for (auto& [number, module] : modules) {
    DeviceArray<Told> out(1);
    Told* address = out;
    void* parameters[] = {&address};
    check(launchKernel(module.tell, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr), "cuLaunchKernel");
    const Told told = out.download()[0];
    unsigned char byte = 0;
    CHECK(cudaMemcpy(&byte, reinterpret_cast<void*>(module.room + 60), 1, cudaMemcpyDeviceToHost));
    ok &= EXPECT(told.number == number) & EXPECT(told.address == module.number) & EXPECT(byte == number % 251);
  }
  return ok;
}

void fillRooms() {
  for (auto& [number, module] : modules) {
    const unsigned char byte = number % 251;
    CHECK(cudaMemcpy(reinterpret_cast<void*>(module.room + 60), &byte, 1, cudaMemcpyHostToDevice));
  }
}

// Between two and nine modules are loaded at a time, some of them for long.
bool takeTurns(const char* until) {
  std::mt19937 random(1);
  bool ok = true;
  for (unsigned number = 100; ok && access(until, F_OK) != 0; ++number) {
    if (modules.size() > 2 && (modules.size() == 9 || random() % 2 == 0))
      unloadModule(std::next(modules.begin(), static_cast<int>(random() % modules.size()))->first);
    else
      loadModule(number, 64 + random() % (random() % 4 == 0 ? 3 << 20 : 4096));
    fillRooms();
    ok &= areInPlace();
  }
  return ok;
}

}  // namespace

int main(int argc, char** argv) {
  CHECK(cudaFree(nullptr));
  load = find<decltype(load)>("cuModuleLoadData");
  unload = find<decltype(unload)>("cuModuleUnload");
  getGlobal = find<decltype(getGlobal)>("cuModuleGetGlobal");
  getFunction = find<decltype(getFunction)>("cuModuleGetFunction");
  launchKernel = find<decltype(launchKernel)>("cuLaunchKernel");

  const size_t sizes[] = {1000, 3 << 20, 100 << 10, 5 << 20, 1 << 20, 64, 2 << 20, 9 << 20};
  for (unsigned i = 0; i < 8; ++i) loadModule(i, sizes[i]);
  for (unsigned i : {1u, 4u, 6u}) unloadModule(i);
  for (unsigned i = 10; i < 14; ++i) loadModule(i, sizes[i % 8] / 2 + 200);
  for (unsigned i : {0u, 11u, 7u}) unloadModule(i);
  for (unsigned i : {4u, 1u, 0u}) loadModule(i, sizes[i]);  // again, in another order
  fillRooms();
  bool ok = areInPlace();
  if (argc > 1) return verdict("module-order", ok && takeTurns(argv[1]));
  pausePoint();
  ok &= areInPlace();
  loadModule(20, 1 << 20);
  unloadModule(3);
  fillRooms();
  return verdict("module-order", ok & areInPlace());
}
