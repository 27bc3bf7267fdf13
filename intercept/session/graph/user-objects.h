// User objects: objects that the program wants destroyed once no graph needs them. References of the program, of graphs and of executable
// graphs are counted; the thread that releases the last one calls the program's function.
//
// Any thread; `mutex` is a leaf lock, and no function is called under it. Stays in the program over a suspend.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace vgpu::client {

class UserObject {
 public:
  UserObject(CUhostFn destroy, void* data) : destroy(destroy), data(data) {}
  ~UserObject() { destroy(data); }
  UserObject(const UserObject&) = delete;
  UserObject& operator=(const UserObject&) = delete;

 private:
  const CUhostFn destroy;
  void* const data;
};

// Counted references to objects, by handle.
class UserReferences {
 public:
  void add(uint64_t handle, const std::shared_ptr<UserObject>& object, uint64_t count) {
    auto& reference = held[handle];
    reference.object = object;
    reference.count += count;
  }
  // False if fewer are held. `last`: receives the object if its last reference is removed, for the caller to destroy.
  bool remove(uint64_t handle, uint64_t count, std::shared_ptr<UserObject>& last) {
    auto found = held.find(handle);
    if (found == held.end() || found->second.count < count) return false;
    if ((found->second.count -= count) != 0) return true;
    last = std::move(found->second.object);
    held.erase(found);
    return true;
  }
  std::shared_ptr<UserObject> find(uint64_t handle) const {
    auto found = held.find(handle);
    return found == held.end() ? nullptr : found->second.object;
  }
  void addAll(const UserReferences& other) {
    for (auto& [handle, reference] : other.held) add(handle, reference.object, reference.count);
  }
  bool isEmpty() const { return held.empty(); }

 private:
  struct Reference {
    std::shared_ptr<UserObject> object;
    uint64_t count = 0;
  };
  std::map<uint64_t, Reference> held;
};

class UserObjects {
 public:
  uint64_t make(CUhostFn destroy, void* data, uint64_t count) {
    std::lock_guard lock(mutex);
    uint64_t handle = ++made << 4;
    programs.add(handle, std::make_shared<UserObject>(destroy, data), count);
    return handle;
  }
  std::shared_ptr<UserObject> find(uint64_t handle) const {
    std::lock_guard lock(mutex);
    return programs.find(handle);
  }
  // The program's own references. CUDA_ERROR_INVALID_VALUE for an object of which it has none, or fewer than `count`.
  CUresult retain(uint64_t handle, uint64_t count) {
    std::lock_guard lock(mutex);
    auto object = programs.find(handle);
    if (object == nullptr) return CUDA_ERROR_INVALID_VALUE;
    programs.add(handle, object, count);
    return CUDA_SUCCESS;
  }
  CUresult release(uint64_t handle, uint64_t count) {
    std::shared_ptr<UserObject> last;
    std::lock_guard lock(mutex);
    return programs.remove(handle, count, last) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }

 private:
  mutable std::mutex mutex;
  UserReferences programs;
  uint64_t made = 0;
};

}  // namespace vgpu::client
