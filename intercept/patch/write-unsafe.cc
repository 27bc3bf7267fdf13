#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>

#include "intercept/patch/write.h"

namespace vgpu::runtime {
namespace {

unsigned char* memoryAt(uint64_t address) { return reinterpret_cast<unsigned char*>(address); }

void writeJump(uint64_t address, void (*to)()) {
  unsigned char code[jumpBytes] = {0xff, 0x25, 0, 0, 0, 0};
  memcpy(code + 6, &to, sizeof to);
  memcpy(memoryAt(address), code, sizeof code);
}

/// Makes the pages of [from, to) writable during its lifetime; they are executable before and after.
class WritableCode {
 public:
  WritableCode(uint64_t from, uint64_t to) {
    uint64_t page = sysconf(_SC_PAGESIZE);
    start_ = from & ~(page - 1);
    size_ = ((to + page - 1) & ~(page - 1)) - start_;
    error_ = mprotect(memoryAt(start_), size_, PROT_READ | PROT_WRITE) == 0 ? 0 : errno;
  }
  ~WritableCode() {
    // Nothing of the object has run yet. The process cannot continue without its code, and the kernel allowed this change a moment ago.
    if (mprotect(memoryAt(start_), size_, PROT_READ | PROT_EXEC) != 0) abort();
  }
  WritableCode(const WritableCode&) = delete;
  WritableCode& operator=(const WritableCode&) = delete;

  std::string problem() const {
    return error_ == 0
               ? ""
               : "the system does not allow its code to be changed (mprotect: " + std::string(strerror(error_)) + ")";
  }

 private:
  uint64_t start_, size_;
  int error_;
};

bool sameInMemory(const image::Elf& file, uint64_t base, const Jump& jump) {
  auto bytes = file.bytesAt(jump.address);
  return bytes.size() >= jumpBytes && memcmp(bytes.data(), memoryAt(base + jump.address), jumpBytes) == 0;
}

/// An optional endbr64, a return, and padding up to the length of a jump.
bool onlyReturns(const unsigned char* code) {
  constexpr unsigned char endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
  size_t at = memcmp(code, endbr64, sizeof endbr64) == 0 ? sizeof endbr64 : 0;
  if (code[at] == 0xf3) ++at;  // "rep ret" of older compilers
  if (code[at] != 0xc3) return false;
  constexpr unsigned char padding[] = {0x00, 0x0f, 0x1f, 0x2e, 0x40, 0x44, 0x66, 0x80, 0x84, 0x90, 0xcc};
  return std::all_of(code + at + 1, code + jumpBytes,
                     [&](unsigned char byte) { return std::ranges::binary_search(padding, byte); });
}

}  // namespace

std::string writeJumps(const image::Elf& file, uint64_t base, const std::vector<Jump>& jumps) {
  for (const Jump& jump : jumps)
    if (!sameInMemory(file, base, jump))
      return std::string("its code in memory differs from its file (at ") + jump.to->name +
             "): was the file replaced while it was loaded, or patched by another tool?";
  // One stretch a segment: the runtime's functions lie together, and a file may have several executable segments. All stretches are
  // writable before the first jump is written.
  std::deque<WritableCode> stretches;
  for (auto first = jumps.begin(); first != jumps.end();) {
    auto segment = *file.findSegment(first->address);
    auto last = std::find_if(first, jumps.end(),
                             [&](const Jump& j) { return j.address - segment.p_vaddr >= segment.p_memsz; });
    auto& code = stretches.emplace_back(base + first->address, base + std::prev(last)->address + jumpBytes);
    if (auto problem = code.problem(); !problem.empty()) return problem;
    first = last;
  }
  for (const Jump& jump : jumps) writeJump(base + jump.address, jump.to->function);
  return {};
}

std::string replaceEmptyFunction(uint64_t address, void (*to)()) {
  if (!onlyReturns(memoryAt(address))) return "the dynamic linker's r_brk function is not the empty function expected";
  WritableCode code(address, address + jumpBytes);
  if (auto problem = code.problem(); !problem.empty()) return problem;
  writeJump(address, to);
  return {};
}

}  // namespace vgpu::runtime
