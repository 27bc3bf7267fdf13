#include "intercept/patch/object.h"

#include <sys/auxv.h>
#include <unistd.h>

#include <bit>
#include <cstdio>
#include <cstring>

#include "intercept/patch/compiler.h"
#include "intercept/patch/face.h"
#include "intercept/patch/plan.h"
#include "intercept/patch/write.h"
#include "vgpu/image/elf-file.h"

namespace vgpu::runtime {
namespace {

/// The file mapped at an address, as the kernel names it; empty if there is none. For the program itself if it was started through the
/// dynamic linker (`ld-linux-x86-64.so.2 ./program`).
std::string findMappedFile(uint64_t address) {
  FILE* maps = fopen("/proc/self/maps", "re");
  if (maps == nullptr) return {};
  std::string found;
  char line[4352];
  while (found.empty() && fgets(line, sizeof line, maps) != nullptr) {
    unsigned long long from, to;
    int path = 0;
    if (sscanf(line, "%llx-%llx %*s %*s %*s %*s %n", &from, &to, &path) < 2 || path == 0) continue;
    if (address >= from && address < to) found.assign(line + path, strcspn(line + path, "\n"));
  }
  fclose(maps);
  return found;
}

/// The program's own file.
std::string findProgramFile(const LoadedObject& object) {
  image::ElfFile executable("/proc/self/exe");
  for (const auto& segment : executable.segments())
    if (segment.p_type == PT_DYNAMIC && object.base + segment.p_vaddr == std::bit_cast<uint64_t>(object.dynamic)) {
      char path[4096];
      ssize_t length = readlink("/proc/self/exe", path, sizeof path);
      bool stillThere = length > 0 && access(std::string(path, length).c_str(), R_OK) == 0;
      return stillThere ? std::string(path, length) : "/proc/self/exe";
    }
  return findMappedFile(std::bit_cast<uint64_t>(object.dynamic));
}

bool isKernelPage(const LoadedObject& object) {
  uint64_t vdso = getauxval(AT_SYSINFO_EHDR);
  return vdso != 0 && object.base == vdso;
}

}  // namespace

bool isProgram(const LoadedObject& object) { return object.name == nullptr || object.name[0] == '\0'; }

std::string patchObject(const LoadedObject& object) {
  if (isKernelPage(object)) return {};
  std::string path = isProgram(object) ? findProgramFile(object) : object.name;
  image::ElfFile file(path.c_str());
  // An unreadable file, such as one deleted after it was mapped, is left alone; a CUDA runtime in it would fail at its first call with
  // NVIDIA's own error.
  if (!file.valid() || file.header().e_machine != EM_X86_64) return {};
  if (noteFace(file, object)) return {};
  auto face = findFace(path);
  auto compiler = planForCompiler(file, path, object);
  Plan plan = compiler ? *compiler : face ? planForLibrary(file, path, *face) : planFor(file, path, exports(), exports12());
  if (plan.verdict == Plan::Verdict::refuse) return plan.reason;
  if (plan.verdict == Plan::Verdict::leave) return {};
  std::string problem = writeJumps(file, object.base, plan.jumps);
  return problem.empty() ? problem : path + " cannot be patched: " + problem;
}

}  // namespace vgpu::runtime
