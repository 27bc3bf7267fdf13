#include "tools/vgpuctl/program-check.h"

#include <doctest/doctest.h>
#include <elf.h>
#include <kj/exception.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "../scratch-directory.h"

namespace vgpu::ctl {
namespace {

namespace fs = std::filesystem;

struct Folder : test::ScratchDirectory {
  std::string add(const std::string& name, const std::string& content) {
    std::string file = path + "/" + name;
    std::ofstream(file, std::ios::binary) << content;
    fs::permissions(file, fs::perms::owner_all);
    return file;
  }
};

template <typename T>
std::string bytesOf(const T& value) {
  std::string bytes(sizeof(value), '\0');
  std::memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

// An executable that names only its interpreter; an empty `interpreter`: none.
std::string elf(const std::string& interpreter, unsigned char elfClass = ELFCLASS64, uint16_t machine = EM_X86_64) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = elfClass;
  header.e_machine = machine;
  header.e_phoff = sizeof(header);
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = interpreter.empty() ? 0 : 1;
  Elf64_Phdr segment{};
  segment.p_type = PT_INTERP;
  segment.p_offset = sizeof(header) + sizeof(segment);
  segment.p_filesz = interpreter.size() + 1;
  return bytesOf(header) + bytesOf(segment) + interpreter + '\0';
}

std::string refusal(const std::string& path) {
  auto caught = kj::runCatchingExceptions([&] { requirePreloadable(path); });
  KJ_IF_MAYBE (exception, caught) {
    return exception->getDescription().cStr();
  }
  return "";
}

bool refuses(const std::string& path, const char* why) { return refusal(path).find(why) != std::string::npos; }

}  // namespace

TEST_CASE("programs that load libraries are accepted, and scripts of such programs") {
  Folder folder;
  std::string program = folder.add("program", elf("/lib64/ld-linux-x86-64.so.2"));
  CHECK(refusal(program).empty());
  CHECK(refusal(folder.add("script", "#! " + program + " -x\necho\n")).empty());
  CHECK(refusal(folder.add("empty", "")).empty());
  CHECK(refusal("/proc/self/exe").empty());
}

TEST_CASE("programs into which no library can be loaded are refused with the reason") {
  Folder folder;
  std::string fixed = folder.add("static", elf(""));
  CHECK(refuses(fixed, "linked statically with its C library"));
  CHECK(refuses(folder.add("script", "#!" + fixed + "\n"), "linked statically with its C library"));
  CHECK(refuses(folder.add("musl", elf("/lib/ld-musl-x86_64.so.1")), "musl"));
  CHECK(refuses(folder.add("old", elf("/lib/ld-linux.so.2", ELFCLASS32, EM_386)), "not a 64-bit x86 program"));
  CHECK(refuses(folder.add("arm", elf("/lib/ld-linux-aarch64.so.1", ELFCLASS64, EM_AARCH64)), "not a 64-bit x86"));
}

TEST_CASE("a program with file capabilities is refused, and a script run by such a program") {
  Folder folder;
  fs::permissions(folder.path, fs::perms(0755));
  std::string program = folder.add("program", elf("/lib64/ld-linux-x86-64.so.2"));
  std::string script = folder.add("script", "#!" + program + "\n");
  fs::permissions(program, fs::perms(0755));
  fs::permissions(script, fs::perms(0755));
  // cap_net_raw, permitted and effective: struct vfs_cap_data of linux/capability.h
  const uint32_t capabilities[] = {0x02000001, 1u << 13, 0, 0, 0};
  if (geteuid() != 0 || setxattr(program.c_str(), "security.capability", capabilities, sizeof(capabilities), 0) != 0) {
    MESSAGE("not checked: only root can give a file capabilities");
    return;
  }
  CHECK(refusal(program).empty());  // root has all capabilities, so its programs start as others do
  pid_t child = fork();
  if (child == 0) {
    constexpr uid_t nobody = 65534;
    if (setresuid(nobody, nobody, nobody) != 0) _exit(2);
    _exit(refuses(program, "has file capabilities") && refuses(script, "has file capabilities") ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("a truncated executable is refused and not read past its end") {
  Folder folder;
  std::string whole = elf("/lib64/ld-linux-x86-64.so.2");
  CHECK(refuses(folder.add("cut", whole.substr(0, sizeof(Elf64_Ehdr) + 8)), "linked statically"));
}

TEST_CASE("a program is found as a shell would find it") {
  Folder folder;
  std::string program = folder.add("tool-of-this-test", "x");
  std::string path = getenv("PATH") == nullptr ? "" : getenv("PATH");
  setenv("PATH", ("/nowhere:" + folder.path).c_str(), 1);
  CHECK(findExecutable("tool-of-this-test") == program);
  setenv("PATH", path.c_str(), 1);
  CHECK(findExecutable(program) == program);
  CHECK_THROWS_AS(findExecutable("tool-of-this-test"), kj::Exception);
  CHECK_THROWS_AS(findExecutable(folder.path + "/nothing"), kj::Exception);
  CHECK_THROWS_AS(findExecutable(folder.path), kj::Exception);
}

}  // namespace vgpu::ctl
