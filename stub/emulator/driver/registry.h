// Handles: numbers for objects that the driver owns. A number is never reused, so a handle that outlives its object is refused and never
// names another object.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "stub/emulator/driver/casts-unsafe.h"
#include "stub/emulator/driver/cuda-api.h"

namespace vgpu::emulator::api {

template <class Object, class Handle>
class Registry {
 public:
  // `kind` keeps the handles of different registries apart; `missing` is the error for an unknown handle.
  Registry(uint64_t kind, CUresult missing) : next((kind << 32) + 16), missing(missing) {}

  // The handle is stored in object->handle before any other thread can find the object.
  Handle add(std::shared_ptr<Object> object) {
    std::unique_lock lock(mutex);
    uint64_t number = next;
    next += 16;
    Handle handle = toHandle(number);
    object->handle = handle;
    objects.emplace(number, std::move(object));
    return handle;
  }
  // add(), with a given handle that no living object has.
  void addAs(Handle handle, std::shared_ptr<Object> object) {
    std::unique_lock lock(mutex);
    object->handle = handle;
    objects[toNumber(handle)] = std::move(object);
  }
  std::shared_ptr<Object> find(Handle handle) const {
    std::shared_lock lock(mutex);
    auto at = objects.find(toNumber(handle));
    return at == objects.end() ? nullptr : at->second;
  }
  std::shared_ptr<Object> get(Handle handle) const {
    std::shared_ptr<Object> object = find(handle);
    if (!object) refuse(missing);
    return object;
  }
  std::vector<std::shared_ptr<Object>> all() const {
    std::shared_lock lock(mutex);
    std::vector<std::shared_ptr<Object>> list;
    for (const auto& [number, object] : objects) list.push_back(object);
    return list;
  }
  size_t count() const {
    std::shared_lock lock(mutex);
    return objects.size();
  }
  // Removes the object; its handle is unknown from here on.
  std::shared_ptr<Object> remove(Handle handle) {
    std::unique_lock lock(mutex);
    auto at = objects.find(toNumber(handle));
    if (at == objects.end()) refuse(missing);
    std::shared_ptr<Object> object = std::move(at->second);
    objects.erase(at);
    return object;
  }
  template <class Predicate>
  std::vector<std::shared_ptr<Object>> removeIf(Predicate predicate) {
    std::vector<std::shared_ptr<Object>> removed;
    std::unique_lock lock(mutex);
    for (auto at = objects.begin(); at != objects.end();) {
      if (predicate(*at->second)) {
        removed.push_back(std::move(at->second));
        at = objects.erase(at);
      } else {
        ++at;
      }
    }
    return removed;
  }

  template <class Each>
  void forEach(Each each) const {
    std::vector<std::shared_ptr<Object>> all;
    {
      std::shared_lock lock(mutex);
      for (const auto& [number, object] : objects) all.push_back(object);
    }
    for (const auto& object : all) each(*object);
  }

 private:
  static Handle toHandle(uint64_t number) {
    if constexpr (std::is_pointer_v<Handle>) {
      return asHandle<Handle>(number);
    } else {
      return number;
    }
  }
  static uint64_t toNumber(Handle handle) {
    if constexpr (std::is_pointer_v<Handle>) {
      return asNumber(handle);
    } else {
      return handle;
    }
  }

  mutable std::shared_mutex mutex;
  std::unordered_map<uint64_t, std::shared_ptr<Object>> objects;
  uint64_t next;
  CUresult missing;
};

}  // namespace vgpu::emulator::api
