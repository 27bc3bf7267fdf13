// The table of a library's entries (vgpu/api/driver.entries), which tools/import-api keeps: what the vendor's headers say.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace vgpu::generator {

struct CParameter {
  std::string type, name;
};

struct Entry {
  unsigned since = 0;      // CUDA version: 12040 is 12.4
  std::string flavour;     // "ptsz" or "ptds" where there is one for per-thread default streams; else empty
  std::vector<CParameter> parameters;
};

using Entries = std::map<std::string, Entry>;  // by exported symbol

// Throws kj::Exception naming the line that makes no sense.
Entries readEntries(const std::string& path);

// The emitters: each returns the text of one file.
std::string emitEntriesHeader(const Entries& entries);
std::string emitUnsupported(const Entries& entries);
std::string emitPerThread(const Entries& entries);

}  // namespace vgpu::generator
