#include "stub/emulator/module/container.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <optional>
#include <utility>

#include "stub/emulator/driver/cuda-api.h"
#include "vgpu/image/elf.h"
#include "vgpu/image/fatbinary.h"
#include "vgpu/image/image.h"

namespace vgpu::emulator::api {
namespace {

using image::architectureSpecific, image::familySpecific;

[[noreturn]] void refuseImage(const std::string& what) { refuse(CUDA_ERROR_INVALID_IMAGE, what); }

// Without the zeros that pad it to a multiple of 8.
std::string ptxOf(std::string_view content) { return std::string(content.substr(0, content.find('\0'))); }

std::string label(const image::Member& member) {
  std::string kind = member.kind == image::ptx           ? "PTX compute_"
                     : member.kind == image::machineCode ? "SASS sm_"
                                                         : "kind " + std::to_string(member.kind) + " sm_";
  const char* suffix = member.flags & architectureSpecific ? "a" : member.flags & familySpecific ? "f" : "";
  return kind + std::to_string(member.architecture) + suffix;
}

// PTX for an architecture runs on it and on every later one; with the suffix `a` on that one alone; with `f`, like machine code, on it and
// later ones of the same major version (PTX ISA, ".target"; CUDA C++ Programming Guide, "Binary Compatibility").
bool isFor(const image::Member& member, int architecture) {
  auto device = static_cast<uint32_t>(architecture);
  if (member.architecture > device) return false;
  if (member.flags & architectureSpecific) return member.architecture == device;
  if (member.flags & familySpecific || member.kind == image::machineCode) return member.architecture / 10 == device / 10;
  return true;
}

void checkVersion(std::string_view ptx) {
  constexpr int newest = 90;  // PTX ISA 9.0, CUDA 13.0
  const size_t at = ptx.find(".version");
  if (at == std::string_view::npos) return;
  const std::string number(ptx.substr(at + 8, 16));
  int major = 0, minor = 0;
  if (std::sscanf(number.c_str(), " %d.%d", &major, &minor) != 2 || major * 10 + minor <= newest) return;
  refuse(CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
         "the PTX has version " + std::to_string(major) + "." + std::to_string(minor) + ", newer than 9.0");
}

std::string ptxOfFatbinary(image::Fatbinary fatbinary, int architecture) {
  // Of two members for one architecture, the one with a suffix is preferred.
  auto rank = [](const image::Member& m) {
    return std::pair(m.architecture, m.flags & (architectureSpecific | familySpecific));
  };
  std::optional<image::Member> best, other;
  bool hasMachineCode = false;  // for the device
  std::string there;
  while (auto member = fatbinary.next()) {
    if (member->kind == image::machineCode) hasMachineCode |= isFor(*member, architecture);
    if (member->kind == image::ptx && isFor(*member, architecture) && (!best || rank(*member) > rank(*best))) best = member;
    if (member->kind == image::ptx && (!other || rank(*member) < rank(*other))) other = member;
    there += (there.empty() ? "" : ", ") + label(*member);
  }
  if (!fatbinary.problem().empty()) refuseImage(fatbinary.problem());
  if (!best) {
    std::string what = "Compile with -gencode arch=compute_75,code=compute_75 or the like";
    if (other)
      what += ", or emulate a device that runs " + label(*other) +
              ": VGPU_EMULATED=architecture=" + std::to_string(other->architecture);
    refuse(CUDA_ERROR_NO_BINARY_FOR_GPU, "the fatbinary has no PTX for sm_" + std::to_string(architecture) +
                                             "; it has: " + (there.empty() ? "nothing" : there) + ". " + what + ".");
  }
  std::string room;
  auto content = image::contentOf(*best, room);
  if (!content)
    refuseImage("the " + label(*best) + " member is damaged: it does not decompress to what its header says");
  std::string ptx = ptxOf(*content);
  if (!hasMachineCode) checkVersion(ptx);  // with machine code the driver would use that, so a newer compiler's PTX is no reason to refuse
  return ptx;
}

// A host object or executable has fatbinaries in .nv_fatbin, for relocatable device code in __nv_relfatbin; a device object has only
// machine code, for which this returns nothing.
image::Bytes fatbinaryOfElf(const image::Elf& elf) {
  for (const char* name : {"__nv_relfatbin", ".nv_fatbin"})
    if (auto section = elf.findSection(name); section && !elf.bytesOf(*section).empty()) return elf.bytesOf(*section);
  return {};
}

std::string ptxOfElf(const image::Elf& elf, int architecture) {
  if (auto* problem = elf.problem()) refuseImage(problem);
  if (image::Bytes fatbinary = fatbinaryOfElf(elf); !fatbinary.empty())
    return ptxOfFatbinary(image::Fatbinary(fatbinary), architecture);
  refuse(CUDA_ERROR_NO_BINARY_FOR_GPU,
         "the module is machine code for one GPU architecture (ELF), but the emulated device runs PTX. Compile with -gencode "
         "arch=compute_75,code=compute_75 or similar to include PTX.");
}

// Whether the file defines the function and does not merely reference it.
bool defines(const image::Elf& elf, std::string_view function) {
  auto table = elf.findSection(SHT_SYMTAB);
  if (!table) return false;
  for (const Elf64_Sym& symbol : elf.symbolsOf(*table))
    if (symbol.st_shndx != SHN_UNDEF && elf.nameOf(*table, symbol) == function) return true;
  return false;
}

// The text up to its zero byte. PTX is ASCII; the driver treats anything else as a damaged binary.
std::string ptxOfText(std::string_view text) {
  text = text.substr(0, text.find('\0'));
  auto readable = [](unsigned char each) { return std::isprint(each) || std::isspace(each); };
  std::string_view start = text.substr(0, 64);
  if (text.empty() || !std::all_of(start.begin(), start.end(), readable)) {
    refuseImage("the module is neither PTX text nor a fatbinary nor an ELF file");
  }
  checkVersion(text);
  return std::string(text);
}

}  // namespace

std::string findPtx(std::span<const std::byte> image, int architecture) {
  if (image::isFatbinary(image)) return ptxOfFatbinary(image::Fatbinary(image), architecture);
  if (image::isElf(image)) return ptxOfElf(image::Elf(image), architecture);
  return ptxOfText(image::textOf(image));
}

bool isDeviceRuntime(std::span<const std::byte> image) {
  image::Fatbinary fatbinary(image::isElf(image) ? fatbinaryOfElf(image::Elf(image)) : image);
  while (auto member = fatbinary.next()) {
    if (member->kind != image::machineCode) continue;
    std::string room;
    auto content = image::contentOf(*member, room);
    return content && defines(image::Elf(std::as_bytes(std::span(*content))), "__cudaCDP2LaunchDeviceV2");
  }
  return false;
}

std::span<const std::byte> imageAt(const void* pointer) {
  std::string problem;
  auto bytes = image::imageAt(pointer, problem);
  if (!problem.empty()) refuseImage(problem);
  return bytes;
}

}  // namespace vgpu::emulator::api
