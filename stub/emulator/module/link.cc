#include "stub/emulator/module/link.h"

#include <cstdio>
#include <fstream>
#include <iterator>

#include "stub/emulator/driver/driver.h"
#include "stub/emulator/module/container.h"
#include "stub/emulator/module/group-functions.h"
#include "vgpu/image/archive.h"

namespace vgpu::emulator::api {
namespace {

// Refuses with `now`, and makes cuLinkComplete return `completion`: the driver completes a link without an input that is no code, but not
// one whose inputs contradict each other.
[[noreturn]] void refuseLink(Link& link, CUresult now, CUresult completion, const std::string& text) {
  if (link.completion == CUDA_SUCCESS) link.completion = completion;
  if (!link.said.empty()) link.said += '\n';
  link.log.error(link.said += text);
  std::fprintf(stderr, "vgpu emulator: link refused: %s\n", text.c_str());
  refuse(now, text);
}

std::string asLog(const std::vector<std::string>& problems) {
  std::string text;
  for (const std::string& line : problems) text += (text.empty() ? "error   : " : "\nerror   : ") + line;
  return text;
}

void add(Link& link, CUjitInputType type, std::span<const std::byte> image, const char* name) {
  const std::string called = name && *name ? name : "link input";
  TextLinker::Problems problems;
  try {
    bool carriesPtx = type == CU_JIT_INPUT_PTX || type == CU_JIT_INPUT_FATBINARY || type == CU_JIT_INPUT_OBJECT ||
                      type == CU_JIT_INPUT_CUBIN || type == CU_JIT_INPUT_LIBRARY;
    if (!carriesPtx)
      refuse(CUDA_ERROR_NOT_SUPPORTED, "the emulated device links only PTX, and fatbinaries, objects and libraries that contain PTX");
    auto addPiece = [&](std::span<const std::byte> piece) {
      const bool isRuntime = isDeviceRuntime(piece);
      problems = link.linker.add(called, isRuntime ? std::string(groupFunctions) : findPtx(piece, link.context.device.architecture()));
    };
    if (type != CU_JIT_INPUT_LIBRARY || !image::isArchive(image)) {
      addPiece(image);
    } else {
      image::Archive archive(image);
      for (auto member = archive.next(); member && problems.lines.empty(); member = archive.next()) addPiece(*member);
    }
  } catch (const Refusal& refusal) {
    refuseLink(link, refusal.code, CUDA_SUCCESS, called + ": " + refusal.message);
  } catch (const PtxError& error) {
    refuseLink(link, codeOf(error), CUDA_SUCCESS, called + ": " + error.what());
  }
  if (problems.lines.empty()) return;
  const CUresult code = problems.ofKernels ? CUDA_ERROR_UNKNOWN : CUDA_ERROR_INVALID_SOURCE;
  refuseLink(link, code, code, asLog(problems.lines));
}

void complete(Link& link) {
  require(link.completion == CUDA_SUCCESS, link.completion);
  if (const std::vector<std::string> undefined = link.linker.undefined(); !undefined.empty())
    refuseLink(link, CUDA_ERROR_UNKNOWN, CUDA_ERROR_UNKNOWN, asLog(undefined));
  link.image = link.linker.linked();
  try {
    LoadedModule check(link.context, link.image);  // errors of the whole image are reported here, as by a linker
  } catch (const Refusal& refusal) {
    refuseLink(link, refusal.code, refusal.code, "linked image: " + refusal.message);
  }
}

}  // namespace
}  // namespace vgpu::emulator::api

using namespace vgpu::emulator::api;

CUresult CUDAAPI cuLinkCreate_v2(unsigned count, CUjit_option* options, void** values, CUlinkState* handle) {
  return enterContext([&](Context& context) {
    require(handle != nullptr);
    *handle = context.driver.links.add(std::make_shared<Link>(context, JitLog(count, options, values)));
  });
}

CUresult CUDAAPI cuLinkAddData_v2(CUlinkState handle, CUjitInputType type, void* data, size_t bytes, const char* name,
                                  unsigned count, CUjit_option* options, void** values) {
  return enterContext([&](Context& context) {
    require(data != nullptr && bytes != 0);
    JitLog(count, options, values);  // refuses unknown options
    add(*context.driver.links.get(handle), type, {static_cast<const std::byte*>(data), bytes}, name);
  });
}

CUresult CUDAAPI cuLinkAddFile_v2(CUlinkState handle, CUjitInputType type, const char* path, unsigned count,
                                  CUjit_option* options, void** values) {
  return enterContext([&](Context& context) {
    require(path != nullptr);
    JitLog(count, options, values);
    std::ifstream file(path, std::ios::binary);
    if (!file) refuse(CUDA_ERROR_FILE_NOT_FOUND);
    std::string bytes{std::istreambuf_iterator<char>(file), {}};
    add(*context.driver.links.get(handle), type, std::as_bytes(std::span(bytes)), path);
  });
}

CUresult CUDAAPI cuLinkComplete(CUlinkState handle, void** image, size_t* bytes) {
  return enterContext([&](Context& context) {
    require(image != nullptr);
    std::shared_ptr<Link> link = context.driver.links.get(handle);
    complete(*link);
    link->log.done();
    *image = link->image.data();
    if (bytes) *bytes = link->image.size() + 1;
  });
}

CUresult CUDAAPI cuLinkDestroy(CUlinkState handle) {
  return enterDriver([&](Driver& driver) { driver.links.remove(handle); });
}
