// How applying a patch plan changes an object's memory.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "intercept/patch/write.h"
#include "vgpu/image/elf-file.h"

using namespace vgpu::runtime;
using vgpu::image::ElfFile;

namespace {

constexpr uint64_t page = 4096;
constexpr std::array<Elf64_Addr, 2> functions{page, 2 * page};  // each is the only function of its segment

void fromOurs() {}
const Export target{"cudaFree", &fromOurs};

// A file with two executable segments of a page each, filled with return instructions.
class TwoSegments {
 public:
  TwoSegments() : file(memfd_create("two-segments", MFD_CLOEXEC)) {
    std::array<unsigned char, 3 * page> bytes;
    bytes.fill(0xc3);
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_machine = EM_X86_64;
    header.e_phoff = sizeof header;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = functions.size();
    std::memcpy(bytes.data(), &header, sizeof header);
    for (size_t i = 0; i < functions.size(); ++i) {
      Elf64_Phdr segment{PT_LOAD, PF_R | PF_X, functions[i], functions[i], functions[i], page, page, page};
      std::memcpy(bytes.data() + sizeof header + i * sizeof segment, &segment, sizeof segment);
    }
    if (write(file, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
      throw std::runtime_error("write");
  }
  ~TwoSegments() { close(file); }

  std::string path() const { return "/proc/self/fd/" + std::to_string(file); }

 private:
  int file;
};

// The file mapped as in a program. The second segment's pages either can be made writable or, being a shared mapping of a file opened for
// reading, cannot.
class Loaded {
 public:
  Loaded(const TwoSegments& file, bool lastIsFixed) : fd(open(file.path().c_str(), O_RDONLY | O_CLOEXEC)) {
    start = static_cast<unsigned char*>(mmap(nullptr, 3 * page, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0));
    if (start == MAP_FAILED) throw std::runtime_error("mmap");
    int kind = lastIsFixed ? MAP_SHARED : MAP_PRIVATE;
    if (mmap(start + functions[1], page, PROT_READ | PROT_EXEC, kind | MAP_FIXED, fd, functions[1]) == MAP_FAILED)
      throw std::runtime_error("mmap");
  }
  ~Loaded() {
    munmap(start, 3 * page);
    close(fd);
  }
  uint64_t base() const { return std::bit_cast<uint64_t>(start); }
  bool isPatched(size_t function) const { return start[functions[function]] != 0xc3; }

 private:
  int fd;
  unsigned char* start;
};

const std::vector<Jump> jumps{{&target, functions[0]}, {&target, functions[1]}};

}  // namespace

TEST_CASE("functions of several segments become jumps") {
  TwoSegments file;
  Loaded loaded(file, false);
  CHECK(writeJumps(ElfFile(file.path().c_str()), loaded.base(), jumps) == "");
  CHECK(loaded.isPatched(0));
  CHECK(loaded.isPatched(1));
  std::bit_cast<void (*)()>(loaded.base() + functions[1])();
}

TEST_CASE("if one segment cannot be made writable, none is changed") {
  TwoSegments file;
  Loaded loaded(file, true);
  CHECK(writeJumps(ElfFile(file.path().c_str()), loaded.base(), jumps).find("mprotect") != std::string::npos);
  CHECK_FALSE(loaded.isPatched(0));
  CHECK_FALSE(loaded.isPatched(1));
  std::bit_cast<void (*)()>(loaded.base() + functions[0])();  // and its code is still executable
}
