#include "tools/vgpuctl/program-check.h"

#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "vgpu/base/fail.h"
#include "vgpu/image/elf-file.h"

namespace vgpu::ctl {
namespace {

namespace fs = std::filesystem;

bool isExecutableFile(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

// Whether starting the program is treated like a set-user-ID one because of file capabilities; not if root runs it (capabilities(7),
// ld.so(8)).
bool gainsCapabilities(const std::string& path) {
  if (getuid() == 0 && geteuid() == 0) return false;
  return getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
}

void requireNoPrivileges(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) < 0) fail("cannot inspect " + path + ": " + strerror(errno));
  bool changesUser = (status.st_mode & S_ISUID) != 0 && status.st_uid != geteuid();
  bool changesGroup = (status.st_mode & S_ISGID) != 0 && status.st_gid != getegid();
  if (changesUser || changesGroup) {
    fail(path + " is a set-user-ID program: Linux does not preload vgpu's libraries into it. Run a copy without that bit");
  }
  if (gainsCapabilities(path)) {
    fail(path +
         " has file capabilities (getcap shows them): Linux does not preload vgpu's libraries into it. Run a copy, which has none");
  }
}

// Empty if the program is linked statically: then nothing loads libraries into it.
std::string interpreterOf(const image::Elf& program) {
  for (const auto& segment : program.segments()) {
    if (segment.p_type != PT_INTERP) continue;
    auto text = image::textOf(program.bytesOf(segment));
    return std::string(text.substr(0, text.find('\0')));
  }
  return "";
}

void requireLoadable(const std::string& path, const image::Elf& program) {
  if (!program.valid() || program.header().e_machine != EM_X86_64) {
    fail(path + " is not a 64-bit x86 program, and vgpu's libraries are for such programs only");
  }
  std::string interpreter = interpreterOf(program);
  if (interpreter.empty()) {
    fail(path +
         " is linked statically with its C library: vgpu's libraries cannot be loaded into it. Link it without -static (the CUDA runtime "
         "itself may stay static)");
  }
  if (interpreter.find("musl") != std::string::npos) {
    fail(path + " is linked with the musl C library; vgpu's libraries need glibc. Build it on a glibc system");
  }
}

// The interpreter of a script: the first word after "#!".
std::string scriptInterpreter(std::string_view script) {
  constexpr size_t lineBytes = 256;  // Linux reads no more of the line (BINPRM_BUF_SIZE of linux/binfmts.h)
  auto line = script.substr(2, lineBytes);
  std::string word;
  std::istringstream(std::string(line.substr(0, line.find('\n')))) >> word;
  return word;
}

}  // namespace

std::string findExecutable(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    std::error_code error;
    if (!fs::exists(name, error)) fail("there is no program " + name);
    if (!isExecutableFile(name)) fail(name + " is not executable");
    return name;
  }
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    if (isExecutableFile(candidate)) return candidate;
  }
  std::error_code error;
  std::string hint = fs::exists(name, error) ? "; did you mean ./" + name + "?" : "";
  fail("there is no program \"" + name + "\" in PATH" + hint);
}

void requirePreloadable(const std::string& path) {
  requireNoPrivileges(path);
  image::MappedFile file(path.c_str());  // has no bytes if it is executable but not readable: then nothing can be checked
  if (image::isElf(file.bytes())) return requireLoadable(path, image::Elf(file.bytes()));
  auto text = image::textOf(file.bytes());
  if (!text.starts_with("#!")) return;
  std::string interpreter = scriptInterpreter(text);
  image::MappedFile other(interpreter.c_str());
  if (!image::isElf(other.bytes())) return;
  requireNoPrivileges(interpreter);
  requireLoadable(interpreter, image::Elf(other.bytes()));
}

}  // namespace vgpu::ctl
