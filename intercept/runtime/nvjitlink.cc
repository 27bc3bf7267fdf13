// nvJitLinkGetLinkedCubin gives PTX: whatever a program has linked to machine code is linked a second time. PTX text, and containers of
// PTX, are linked by the driver's linker (cuLink*); LTO-IR is first compiled to PTX by nvJitLink itself (`-lto -ptx`). If an input cannot
// be linked that way, the program gets the machine code, which the device refuses by name.
//
// Any thread. A link is used by one thread at a time, the holder of its handle; `mutex` guards the list of links. The driver's linker needs
// a context: if none is current, the context of the thread's device is current while it runs. All state is in the program's process; a
// link's is freed with its handle.
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intercept/runtime/compiler-row.h"
#include "intercept/runtime/process.h"
#include "intercept/runtime/ptx-version.h"
#include "vgpu/image/archive.h"
#include "vgpu/image/fatbinary.h"

namespace vgpu::runtime {
namespace {

/// The functions of one copy of the library. Results are nvJitLink.h's nvJitLinkResult.
struct NvJitLink {
  int (*create)(void** handle, uint32_t optionCount, const char** options);
  int (*destroy)(void** handle);
  int (*addData)(void* handle, int type, const void* data, size_t bytes, const char* name);
  int (*addFile)(void* handle, int type, const char* path);
  int (*complete)(void* handle);
  int (*getCubinSize)(void* handle, size_t* bytes);
  int (*getCubin)(void* handle, void* image);
  int (*getPtxSize)(void* handle, size_t* bytes);
  int (*getPtx)(void* handle, char* text);
};
NvJitLink copies[mostCopies];

/// nvJitLinkInputType, only the values that are distinguished here.
enum InputType : int { cubin = 1, ptx = 2, ltoIr = 3, fatbinary = 4, object = 5, library = 6, any = 10 };

struct Input {
  int type;
  std::string bytes, name;
};

struct Link {
  std::vector<std::string> options;
  std::vector<Input> inputs;
  std::string text;  ///< the linked PTX, zero-terminated; empty if the inputs cannot be linked to PTX
};

std::mutex mutex;
constinit std::map<void*, Link>* links = nullptr;  // never freed before the process ends

Link* findLink(void* handle) {
  std::lock_guard lock(mutex);
  if (links == nullptr) return nullptr;
  auto found = links->find(handle);
  return found == links->end() ? nullptr : &found->second;
}

bool startsWith(std::string_view bytes, uint32_t magic) {
  return bytes.size() >= sizeof magic && std::memcmp(bytes.data(), &magic, sizeof magic) == 0;
}

/// The type of an input that the program passed as `any`.
int findType(const std::string& input) {
  constexpr uint32_t ltoIrMagic = 0x7f4e43ed;
  const auto bytes = std::as_bytes(std::span(input));
  if (startsWith(input, ltoIrMagic)) return ltoIr;
  if (image::isArchive(bytes)) return library;
  if (image::isFatbinary(bytes)) return fatbinary;
  return input.starts_with("\177ELF") ? object : ptx;
}

void keep(Link& link, int type, std::string bytes, const char* name) {
  if (type == any) type = findType(bytes);
  link.inputs.push_back({type, std::move(bytes), name != nullptr ? name : ""});
}

CUjitInputType asDriverType(int type) {
  switch (type) {
    case cubin: return CU_JIT_INPUT_CUBIN;
    case fatbinary: return CU_JIT_INPUT_FATBINARY;
    case object: return CU_JIT_INPUT_OBJECT;
    case library: return CU_JIT_INPUT_LIBRARY;
    default: return CU_JIT_INPUT_PTX;
  }
}

/// Links the LTO-IR among the inputs to PTX with the library itself. Empty if it cannot be linked.
std::string linkLtoIr(const NvJitLink& genuine, const Link& link) {
  std::vector<const char*> options;
  for (auto& option : link.options) options.push_back(option.c_str());
  options.push_back("-ptx");
  void* handle = nullptr;
  if (genuine.create(&handle, static_cast<uint32_t>(options.size()), options.data()) != 0) return {};
  bool isGood = true;
  for (auto& input : link.inputs)
    if (input.type == ltoIr)
      isGood = isGood && genuine.addData(handle, ltoIr, input.bytes.data(), input.bytes.size(), input.name.c_str()) == 0;
  size_t bytes = 0;
  std::string text;
  if (isGood && genuine.complete(handle) == 0 && genuine.getPtxSize(handle, &bytes) == 0) {
    text.resize(bytes);
    if (genuine.getPtx(handle, text.data()) != 0) text.clear();
  }
  genuine.destroy(&handle);
  return text;
}

CUresult addTo(CUlinkState state, Input& input) {
  auto& [type, bytes, name] = input;
  if (type == ptx) lowerPtxVersion(bytes);
  return cuLinkAddData(state, asDriverType(type), bytes.data(), bytes.size(), name.c_str(), 0, nullptr, nullptr);
}

CUresult linkAll(const NvJitLink& genuine, Link& link, CUlinkState state, std::string& text) {
  bool hasLtoIr = false;
  for (auto& input : link.inputs) {
    if (input.type == ltoIr) {
      hasLtoIr = true;
    } else if (CUresult error = addTo(state, input); error != CUDA_SUCCESS) {
      return error;
    }
  }
  if (hasLtoIr) {
    Input linked{ptx, linkLtoIr(genuine, link), "lto.ptx"};
    if (CUresult error = addTo(state, linked); error != CUDA_SUCCESS) return error;
  }
  void* image = nullptr;
  size_t bytes = 0;
  CUresult error = cuLinkComplete(state, &image, &bytes);
  if (error == CUDA_SUCCESS) text.assign(static_cast<const char*>(image), bytes);
  return error;
}

/// The PTX of all inputs. Empty if they cannot be linked to PTX.
std::string linkToPtx(const NvJitLink& genuine, Link& link) {
  std::string text;
  CUcontext before = nullptr;
  if (ready() != cudaSuccess || cuCtxGetCurrent(&before) != CUDA_SUCCESS || readyInContext() != cudaSuccess) return text;
  CUlinkState state = nullptr;
  if (cuLinkCreate(0, nullptr, nullptr, &state) == CUDA_SUCCESS) {
    if (linkAll(genuine, link, state, text) != CUDA_SUCCESS) text.clear();
    cuLinkDestroy(state);
  }
  if (before == nullptr) cuCtxSetCurrent(nullptr);
  if (!text.empty() && text.back() != '\0') text += '\0';
  return text;
}

template <size_t copy>
struct Ours {
  static const NvJitLink& genuine() { return copies[copy]; }

  static int create(void** handle, uint32_t optionCount, const char** options) {
    int result = genuine().create(handle, optionCount, options);
    if (result != 0) return result;
    Link link;
    link.options.assign(options, options + optionCount);
    for (auto& option : link.options)
      if (option == "-ptx") return result;  // the program asks for PTX, so there is no machine code to replace
    std::lock_guard lock(mutex);
    if (links == nullptr) links = std::make_unique<std::map<void*, Link>>().release();
    links->insert_or_assign(*handle, std::move(link));
    return result;
  }

  static int destroy(void** handle) {
    if (handle != nullptr && findLink(*handle) != nullptr) {
      std::lock_guard lock(mutex);
      links->erase(*handle);
    }
    return genuine().destroy(handle);
  }

  static int addData(void* handle, int type, const void* data, size_t bytes, const char* name) {
    int result = genuine().addData(handle, type, data, bytes, name);
    if (Link* link = findLink(handle); result == 0 && link != nullptr)
      keep(*link, type, std::string(static_cast<const char*>(data), bytes), name);
    return result;
  }

  static int addFile(void* handle, int type, const char* path) {
    int result = genuine().addFile(handle, type, path);
    if (Link* link = findLink(handle); result == 0 && link != nullptr) {
      std::ifstream file(path, std::ios::binary);
      keep(*link, type, std::string(std::istreambuf_iterator<char>(file), {}), path);
    }
    return result;
  }

  static int complete(void* handle) {
    int result = genuine().complete(handle);
    if (Link* link = findLink(handle); result == 0 && link != nullptr) {
      link->text = linkToPtx(genuine(), *link);
      link->inputs.clear();
    }
    return result;
  }

  static int getCubinSize(void* handle, size_t* bytes) {
    Link* link = findLink(handle);
    if (link == nullptr || link->text.empty() || bytes == nullptr) return genuine().getCubinSize(handle, bytes);
    *bytes = link->text.size();
    return 0;
  }

  static int getCubin(void* handle, void* image) {
    Link* link = findLink(handle);
    if (link == nullptr || link->text.empty() || image == nullptr) return genuine().getCubin(handle, image);
    std::memcpy(image, link->text.data(), link->text.size());
    return 0;
  }
};

}  // namespace

std::span<const CompilerRow> nvJitLinkRows() {
#define ROW(name, member) \
  {name, note<copies, &NvJitLink::member>, {asTarget(&Ours<0>::member), asTarget(&Ours<1>::member)}}
  static const CompilerRow rows[] = {
      ROW("nvJitLinkCreate", create),
      ROW("nvJitLinkDestroy", destroy),
      ROW("nvJitLinkAddData", addData),
      ROW("nvJitLinkAddFile", addFile),
      ROW("nvJitLinkComplete", complete),
      ROW("nvJitLinkGetLinkedCubinSize", getCubinSize),
      ROW("nvJitLinkGetLinkedCubin", getCubin),
      {"nvJitLinkGetLinkedPtxSize", note<copies, &NvJitLink::getPtxSize>, {}},
      {"nvJitLinkGetLinkedPtx", note<copies, &NvJitLink::getPtx>, {}},
  };
#undef ROW
  return rows;
}

}  // namespace vgpu::runtime
