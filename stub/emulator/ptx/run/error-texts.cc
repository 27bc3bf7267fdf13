#include "stub/emulator/ptx/run/error-texts.h"

#include <driver_types.h>

#include <map>
#include <string>

#include "stub/emulator/ptx/run/windows.h"

namespace vgpu::emulator {
namespace {

struct ErrorTextRow {
  cudaError_t code;
  const char *name, *text;
};
#define ROW(code, text) \
  { code, #code, text }
constexpr ErrorTextRow errorTextRows[] = {
#include "vgpu/api/error-texts.inc"
};
#undef ROW

// All texts in one block, beginning with the text for unknown errors.
struct ErrorTexts {
  ErrorTexts() {
    add("unrecognized error code");
    for (const ErrorTextRow& row : errorTextRows) places[row.code] = {add(row.name), add(row.text)};
  }
  uint64_t add(const char* text) {
    const uint64_t at = bytes.size();
    bytes.append(text).push_back('\0');
    return at;
  }
  struct Place {
    uint64_t name = 0, text = 0;
  };
  Place find(uint32_t error) const {
    const auto found = places.find(error);
    return found == places.end() ? Place{} : found->second;
  }

  std::string bytes;
  std::map<uint32_t, Place> places;
};

const ErrorTexts& errorTexts() {
  static const ErrorTexts texts;
  return texts;
}

}  // namespace

uint64_t addressOfErrorText(uint32_t error) { return errorTextWindow | errorTexts().find(error).text; }
uint64_t addressOfErrorName(uint32_t error) { return errorTextWindow | errorTexts().find(error).name; }
std::span<const std::byte> errorTextBytes() { return std::as_bytes(std::span(errorTexts().bytes)); }

}  // namespace vgpu::emulator
