// One value for each context, read without a lock.
#pragma once
#include <atomic>
#include <memory>

#include "intercept/runtime/process.h"

namespace vgpu::runtime {

/// T{} until set. The array is allocated at the first set, so an unused one costs a pointer. Reading takes no lock; setting requires the
/// lock of the module that owns the value. `T` is a pointer or a number.
template <class T>
class PerContext {
 public:
  constexpr PerContext() = default;
  ~PerContext() { delete[] values_.load(std::memory_order_relaxed); }
  PerContext(const PerContext&) = delete;
  PerContext& operator=(const PerContext&) = delete;

  T get(int slot) const {
    auto* values = values_.load(std::memory_order_acquire);
    return values == nullptr ? T{} : values[slot].load(std::memory_order_acquire);
  }

  void set(int slot, T value) {
    auto* values = values_.load(std::memory_order_relaxed);
    if (values == nullptr) {
      auto fresh = std::make_unique<std::atomic<T>[]>(maxSlots);
      values = fresh.release();
      values_.store(values, std::memory_order_release);
    }
    values[slot].store(value, std::memory_order_release);
  }

 private:
  std::atomic<std::atomic<T>*> values_ = nullptr;
};

}  // namespace vgpu::runtime
