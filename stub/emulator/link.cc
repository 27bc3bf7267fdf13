#include "link.h"

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string_view>

#include "container.h"
#include "driver.h"

namespace vgpu::emulator::api {
namespace {

// Whether a line, after blanks, begins with one of the directives that a PTX text has once.
bool isHeaderLine(std::string_view line) {
  size_t start = line.find_first_not_of(" \t");
  if (start == std::string_view::npos) return false;
  line.remove_prefix(start);
  for (std::string_view directive : {".version", ".target", ".address_size"}) {
    if (line.starts_with(directive)) return true;
  }
  return false;
}

[[noreturn]] void refuseLink(Link& link, const Refusal& refusal, const char* what) {
  std::string text = std::string(what) + ": " + refusal.message;
  link.log.error(text);
  std::fprintf(stderr, "vgpu emulator: link refused: %s\n", text.c_str());
  throw refusal;
}

void add(Link& link, CUjitInputType type, std::span<const std::byte> image, const char* name) {
  try {
    bool carriesPtx = type == CU_JIT_INPUT_PTX || type == CU_JIT_INPUT_FATBINARY || type == CU_JIT_INPUT_OBJECT ||
                      type == CU_JIT_INPUT_CUBIN;
    if (!carriesPtx) refuse(CUDA_ERROR_NOT_SUPPORTED, "only PTX, fatbinaries and objects that carry PTX can be linked");
    link.pieces.push_back(findPtx(image, link.context.device.architecture()));
  } catch (const Refusal& refusal) {
    refuseLink(link, refusal, name && *name ? name : "link input");
  }
}

}  // namespace

std::string joinPtx(const std::vector<std::string>& pieces) {
  std::string joined;
  for (size_t i = 0; i < pieces.size(); ++i) {
    std::string_view rest = pieces[i];
    while (!rest.empty()) {
      size_t end = rest.find('\n');
      std::string_view line = rest.substr(0, end);
      if (i == 0 || !isHeaderLine(line)) joined.append(line);
      joined += '\n';
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    }
  }
  return joined;
}

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
    require(!link->pieces.empty());
    link->linked = joinPtx(link->pieces);
    try {
      LoadedModule check(context, link->linked);  // what is wrong with the whole is said here, as by a linker
    } catch (const Refusal& refusal) {
      refuseLink(*link, refusal, "linked image");
    }
    *image = link->linked.data();
    if (bytes) *bytes = link->linked.size() + 1;
  });
}

CUresult CUDAAPI cuLinkDestroy(CUlinkState handle) {
  return enterDriver([&](Driver& driver) { driver.links.remove(handle); });
}
