#include "tools/vgpuctl/program-check.h"

#include <elf.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "vgpu/wire/unix-socket.h"

namespace vgpu {
namespace {

namespace fs = std::filesystem;

constexpr size_t mostProgramHeaders = 256;

template <typename T>
bool readAt(std::ifstream& file, uint64_t offset, T& value) {
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(static_cast<char*>(static_cast<void*>(&value)), sizeof(value));
  return static_cast<bool>(file);
}

bool isExecutableFile(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

// A program with file capabilities starts like a set-user-ID one, unless root runs it (capabilities(7), ld.so(8)).
bool gainsCapabilities(const std::string& path) {
  if (getuid() == 0 && geteuid() == 0) return false;
  return getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
}

void requireNoPrivileges(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) < 0) fail("cannot look at " + path + ": " + strerror(errno));
  bool changesUser = (status.st_mode & S_ISUID) != 0 && status.st_uid != geteuid();
  bool changesGroup = (status.st_mode & S_ISGID) != 0 && status.st_gid != getegid();
  if (changesUser || changesGroup) {
    fail(path + " is a set-user-ID program: Linux loads no library of ours into it. Run a copy without that bit");
  }
  if (gainsCapabilities(path)) {
    fail(path + " has file capabilities (getcap shows them): Linux loads no library of ours into it. Run a copy, which "
                "has none");
  }
}

// Empty where the program has no interpreter: nothing loads libraries into it.
std::string interpreterOf(std::ifstream& file, const Elf64_Ehdr& header) {
  for (size_t i = 0; i < header.e_phnum && i < mostProgramHeaders; ++i) {
    Elf64_Phdr segment;
    if (!readAt(file, header.e_phoff + i * header.e_phentsize, segment)) return "";
    if (segment.p_type != PT_INTERP || segment.p_filesz > 4096) continue;
    std::string text(segment.p_filesz, '\0');
    file.seekg(static_cast<std::streamoff>(segment.p_offset));
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    return text.c_str();
  }
  return "";
}

void requireLoadable(const std::string& path, std::ifstream& file, const Elf64_Ehdr& header) {
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64) {
    fail(path + " is not a 64-bit x86 program, and vgpu's libraries are");
  }
  std::string interpreter = interpreterOf(file, header);
  if (interpreter.empty()) {
    fail(path +
         " is linked statically with its C library: no library of ours can be loaded into it. Link it without "
         "-static (the CUDA runtime itself may stay static)");
  }
  if (interpreter.find("musl") != std::string::npos) {
    fail(path + " is linked with the musl C library; vgpu's libraries need glibc. Build it on a glibc system");
  }
}

// What runs a script: the first word after "#!".
std::string scriptInterpreter(std::ifstream& file) {
  std::string line, word;
  file.clear();
  file.seekg(2);
  std::getline(file, line);
  std::istringstream(line) >> word;
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
  std::ifstream file(path, std::ios::binary);
  if (!file) return;  // executable but not readable: nothing can be known
  Elf64_Ehdr header{};
  if (readAt(file, 0, header) && std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0) {
    return requireLoadable(path, file, header);
  }
  char start[2] = {};
  if (!readAt(file, 0, start) || start[0] != '#' || start[1] != '!') return;
  std::string interpreter = scriptInterpreter(file);
  Elf64_Ehdr inner{};
  std::ifstream other(interpreter, std::ios::binary);
  if (other && readAt(other, 0, inner) && std::memcmp(inner.e_ident, ELFMAG, SELFMAG) == 0) {
    requireNoPrivileges(interpreter);
    requireLoadable(interpreter, other, inner);
  }
}

}  // namespace vgpu
