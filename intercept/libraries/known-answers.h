// Answers of libraries that are the same to every call like the first (`query once` of vgpu/api/cublas.table): which algorithm a
// product of matrices is given, which frameworks ask before each product. A call is told by its digest (seen-calls.h).
//
// For the whole process, any thread. `mutex` is a leaf, held while an answer is copied. It stays over a suspend, as SeenCalls
// does.
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
  // Copies the results of such a call's reply. False if none is known.
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
    if (all.size() >= mostAnswers) all.clear();  // a program that asks for so many different ones asks for each once
    all.try_emplace(digest, results.begin(), results.end());
  }

 private:
  static constexpr size_t mostAnswers = 4096, mostBytes = 4096;
  std::mutex mutex;
  std::unordered_map<uint64_t, std::vector<unsigned char>> all;
};

}  // namespace vgpu::client
