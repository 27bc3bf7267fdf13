// Replies of libraries that are the same for every identical call (`query once` of vgpu/api/cublas.table): for instance the algorithm for a
// matrix product, which frameworks request before each product. A call's digest identifies it (seen-calls.h).
//
// One for the process, any thread. `mutex` is a leaf lock, held while a reply is copied. Survives a suspend, as SeenCalls does.
#pragma once

#include <kj/array.h>

#include <cstdint>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace vgpu::client {

class KnownAnswers {
 public:
  // Copies the results of the known reply to such a call. False if none is known.
  bool find(uint64_t digest, std::vector<unsigned char>& results) {
    std::lock_guard lock(mutex);
    auto found = all.find(digest);
    if (found == all.end()) return false;
    results = found->second;
    return true;
  }

  void add(uint64_t digest, kj::ArrayPtr<const kj::byte> results) {
    if (results.size() > mostBytes) return;
    std::lock_guard lock(mutex);
    if (all.size() >= mostAnswers) all.clear();  // a program with that many different calls requests each again
    all.try_emplace(digest, results.begin(), results.end());
  }

 private:
  static constexpr size_t mostAnswers = 4096, mostBytes = 4096;
  std::mutex mutex;
  std::unordered_map<uint64_t, std::vector<unsigned char>> all;
};

}  // namespace vgpu::client
