// Code that the program loads itself: modules, linked modules, and code libraries, each with variables and a kernel.
#pragma once

#include "memory.h"

namespace history {

// step: number = number * by + 1; room[1] ^= number; *out += room[1].
inline std::string imageOf(uint32_t number, size_t roomBytes) {
  return ".version 7.0\n.target sm_70\n.address_size 64\n"
         ".visible .global .align 16 .b8 room[" + std::to_string(roomBytes) + "];\n"
         ".visible .global .align 4 .u32 number = " + std::to_string(number) + ";\n"
         ".visible .entry step(.param .u64 out, .param .u32 by) {\n"
         "  .reg .u64 %out;\n  .reg .u32 %number, %by, %word;\n"
         "  ld.param.u64 %out, [out];\n  ld.param.u32 %by, [by];\n  cvta.to.global.u64 %out, %out;\n"
         "  ld.global.u32 %number, [number];\n  mad.lo.u32 %number, %number, %by, 1;\n  st.global.u32 [number], %number;\n"
         "  ld.global.u32 %word, [room+4];\n  xor.b32 %word, %word, %number;\n  st.global.u32 [room+4], %word;\n"
         "  ld.global.u32 %number, [%out];\n  add.u32 %number, %number, %word;\n  st.global.u32 [%out], %number;\n  ret;\n}\n";
}

// A variable of an image; its lifetime is the image's.
struct ImageMemory : Memory {
  ImageMemory(World& world, int device, CUdeviceptr at, size_t bytes) : Memory(world, device, bytes) {
    data = reinterpret_cast<void*>(at);
  }
};

class Code : public Object {
 public:
  enum class Origin { module, link, library };

  Code(World& world, int device, Origin origin) : world(world), device(device), origin(origin), first(world.pick(UINT32_MAX)) {
    static const size_t sizes[] = {8, 200, 5000, 70000, 600000, 3000000};
    const size_t roomBytes = 8 + world.pick(sizes[world.pick(std::size(sizes))]);
    const std::string text = imageOf(first, roomBytes);
    world.enter(world.pickSlot(device));
    switch (origin) {
      case Origin::module: CALL(cuModuleLoadData, &module, text.c_str()); break;
      case Origin::link: link(text); break;
      case Origin::library: CALL(cuLibraryLoadData, &library, text.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0); break;
    }
    find();
    room = std::make_unique<ImageMemory>(world, device, addresses[0], roomBytes);
    number = std::make_unique<ImageMemory>(world, device, addresses[1], sizeof first);
    room->fillAll();
    number->setWord(0, first);
  }
  ~Code() override {
    const int slot = world.pickSlot(device);
    room->use(slot);
    number->use(slot);
    world.wait(slot);
    if (state != nullptr) CALL(cuLinkDestroy, state);
    if (library != nullptr) CALL(cuLibraryUnload, library);
    else CALL(cuModuleUnload, module);
  }

  void act() override {
    switch (world.pick(4)) {
      case 0: return room->act();
      case 1: return find();
      default: return step(world.pickSlot(device));
    }
  }
  bool isRight(Digest& digest) override {
    find();
    return number->isRight(digest) & room->isRight(digest);
  }

 private:
  // The link state lives as long as the module made from it.
  void link(const std::string& text) {
    void* image = nullptr;
    size_t bytes = 0;
    CALL(cuLinkCreate, 0, nullptr, nullptr, &state);
    CALL(cuLinkAddData, state, CU_JIT_INPUT_PTX, const_cast<char*>(text.c_str()), text.size() + 1, "history", 0, nullptr,
         nullptr);
    CALL(cuLinkComplete, state, &image, &bytes);
    CALL(cuModuleLoadData, &module, image);
  }
  // Every address must be the one that was found first.
  void find() {
    size_t size = 0;
    CUdeviceptr now[2];
    world.enter(world.pickSlot(device));
    for (int i = 0; i < 2; ++i) {
      const char* name = i == 0 ? "room" : "number";
      if (origin == Origin::library) CALL(cuLibraryGetGlobal, &now[i], &size, library, name);
      else CALL(cuModuleGetGlobal, &now[i], &size, module, name);
      if (addresses[i] == 0) addresses[i] = now[i];
      if (!EXPECT(now[i] == addresses[i])) std::exit(1);
    }
    if (function != nullptr) return;
    if (origin == Origin::library) CALL(cuLibraryGetKernel, reinterpret_cast<CUkernel*>(&function), library, "step");
    else CALL(cuModuleGetFunction, &function, module, "step");
  }
  void step(int slot) {
    auto out = world.pickObject<Memory>([&](auto& one) { return one.device == device && one.isWritten; });
    if (!out) return;
    uint32_t by = world.pick(1000);
    auto* target = reinterpret_cast<uint32_t*>(out->use(slot));
    room->use(slot);
    number->use(slot);
    void* parameters[] = {&target, &by};
    CALL(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, world.enter(slot), parameters, nullptr);
    number->setWord(0, number->word(0) * by + 1);
    room->setWord(1, room->word(1) ^ number->word(0));
    out->setWord(0, out->word(0) + room->word(1));
  }

  World& world;
  const int device;
  const Origin origin;
  const uint32_t first;
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  CUlinkState state = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr addresses[2] = {0, 0};
  std::unique_ptr<ImageMemory> room, number;
};

inline std::shared_ptr<Object> makeCode(World& world) {
  return std::make_shared<Code>(world, world.pickDevice(), static_cast<Code::Origin>(world.pick(3)));
}

}  // namespace history
