// Maps an address in the program to our record of it, for the launch path: a lookup takes no lock and allocates nothing.
//
// Open addressing with linear probing in an array of at least twice as many entries as keys. Writers hold the owner's lock. A key once
// written stays in its array and only its value changes (null: erased), so a reader never sees an entry move. A full array is replaced by
// one without the erased keys; readers may still use the old one, so it is kept until the process ends.
//
// The old arrays cost at most 64 bytes for each key that is added (or added again after a replacement dropped it): a new array has at least
// four entries a live key and is full when half of them are used, so a quarter of its entries are keys added since. If keys are only added,
// each array is twice as large as the one before, so all old arrays together are no larger than the current one.
#pragma once
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>

namespace vgpu::runtime {

template <class T>
class PointerTable {
 public:
  constexpr PointerTable() = default;
  PointerTable(const PointerTable&) = delete;
  PointerTable& operator=(const PointerTable&) = delete;

  T* find(const void* key) const {
    const Array* array = current_.load(std::memory_order_acquire);
    if (array == nullptr || key == nullptr) return nullptr;
    for (size_t at = hash(key, *array);; at = (at + 1) & (array->size - 1)) {
      const void* there = array->entries[at].key.load(std::memory_order_acquire);
      if (there == key) return array->entries[at].value.load(std::memory_order_acquire);
      if (there == nullptr) return nullptr;
    }
  }

  /// Under the owner's lock. Replaces an earlier value; a null value erases.
  void set(const void* key, T* value) {
    Array* array = current_.load(std::memory_order_relaxed);
    if (array == nullptr || (array->used + 1) * 2 > array->size) array = grow(array);
    insert(*array, key, value);
  }

 private:
  struct Entry {
    std::atomic<const void*> key = nullptr;
    std::atomic<T*> value = nullptr;
  };
  struct Array {
    size_t size;  // a power of two
    size_t used;  // keys, including erased ones
    std::unique_ptr<Entry[]> entries;
    Array* previous;
  };

  static size_t hash(const void* key, const Array& array) {
    return (std::bit_cast<uint64_t>(key) * 0x9e3779b97f4a7c15) >> (64 - std::countr_zero(array.size));
  }

  static void insert(Array& array, const void* key, T* value) {
    for (size_t at = hash(key, array);; at = (at + 1) & (array.size - 1)) {
      const void* there = array.entries[at].key.load(std::memory_order_relaxed);
      if (there != nullptr && there != key) continue;
      array.entries[at].value.store(value, std::memory_order_release);
      if (there == nullptr) ++array.used;
      array.entries[at].key.store(key, std::memory_order_release);
      return;
    }
  }

  Array* grow(Array* old) {
    size_t live = 0;
    if (old != nullptr)
      for (size_t i = 0; i < old->size; ++i) live += old->entries[i].value.load(std::memory_order_relaxed) != nullptr;
    size_t size = std::bit_ceil((live + 1) * 4 < 64 ? 64 : (live + 1) * 4);
    auto fresh = std::make_unique<Array>(Array{size, 0, std::make_unique<Entry[]>(size), old});
    if (old != nullptr)
      for (size_t i = 0; i < old->size; ++i)
        if (T* value = old->entries[i].value.load(std::memory_order_relaxed))
          insert(*fresh, old->entries[i].key.load(std::memory_order_relaxed), value);
    Array* published = fresh.release();  // reachable from current_ for as long as the process lives
    current_.store(published, std::memory_order_release);
    return published;
  }

  std::atomic<Array*> current_ = nullptr;
};

}  // namespace vgpu::runtime
