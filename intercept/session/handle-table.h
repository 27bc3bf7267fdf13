// The program's handles: which are live, and what the client must know about each object (kinds/kinds.h).
//
// Owned by the session; one table for each kind. A lookup takes no lock: an object's state never moves, and a state with a different handle
// belongs to another object of that kind. Making and destroying handles takes the table's mutex; under it only the mutex of CompletionWords
// is taken. An object is ended by one atomic exchange of its handle, so only one of several threads ends it. Stays in the program's process
// over a suspend.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "intercept/session/kinds/kinds.h"

namespace vgpu::client {

// The handles of one kind; KindTable has the objects' states.
class Handles {
 public:
  uint64_t reserve(api::Kind kind, unsigned device);
  void publish(uint64_t handle, uint64_t context);
  void abandon(uint64_t handle);
  bool isLive(uint64_t handle) const;
  std::vector<uint64_t> live(unsigned device, uint64_t context) const;

  // retire() ends an object but reserves its place; revive() makes an object of the same handle there. False if it is not live.
  bool retire(uint64_t handle);
  void revive(uint64_t handle, uint64_t context) {
    resetAt(handleIndex(handle));
    publish(handle, context);
  }

  template <typename Last>
  bool destroy(uint64_t handle, Last&& last) {
    std::lock_guard lock(mutex);
    if (!retire(handle)) return false;
    last();
    putLast(handleIndex(handle));
    return true;
  }

 protected:
  static constexpr uint32_t chunkPlaces = 1024, chunkCount = 1024;

  ~Handles() = default;

 private:
  // For a place that exists.
  virtual ObjectHead& headAt(uint32_t index) const = 0;
  virtual void resetAt(uint32_t index) = 0;
  virtual void addChunk(uint32_t chunk) = 0;

  void addPlaces();
  void putLast(uint32_t index);

  mutable std::mutex mutex;
  std::atomic<uint32_t> places{0};
  // A list through the free places, so that destroying an object allocates no memory.
  static constexpr uint32_t none = ~uint32_t{0};
  uint32_t firstFree = none, lastFree = none;
};

template <typename State>
class KindTable final : public Handles {
 public:
  // The state of a live object; nullptr if there is none. The handle must be of this kind.
  State* find(uint64_t handle) const {
    const uint32_t index = handleIndex(handle);
    if (index >= chunkCount * chunkPlaces) return nullptr;
    State* chunk = chunks[index / chunkPlaces].load(std::memory_order_acquire);
    if (chunk == nullptr) return nullptr;
    State& state = chunk[index % chunkPlaces];
    return state.handle.load(std::memory_order_acquire) == handle ? &state : nullptr;
  }
  // The state of a reserved place.
  State& at(uint32_t index) const {
    return chunks[index / chunkPlaces].load(std::memory_order_acquire)[index % chunkPlaces];
  }

 private:
  ObjectHead& headAt(uint32_t index) const override { return at(index); }
  void resetAt(uint32_t index) override { at(index).reset(); }
  void addChunk(uint32_t chunk) override {
    owned.push_back(std::make_unique<State[]>(chunkPlaces));
    chunks[chunk].store(owned.back().get(), std::memory_order_release);
  }

  std::array<std::atomic<State*>, chunkCount> chunks{};
  std::vector<std::unique_ptr<State[]>> owned;
};

class HandleTable {
 public:
  HandleTable();

  // Makes a new handle of `kind`; the caller fills its state before it gives the handle to the program.
  uint64_t create(api::Kind kind, unsigned device, uint64_t context = 0) {
    uint64_t handle = reserve(kind, device);
    of(handle).publish(handle, context);
    return handle;
  }
  // The same in two steps, for an object that can be found otherwise than by its handle: it is invisible before publish(), which fills it.
  // abandon() gives a reserved handle back.
  uint64_t reserve(api::Kind kind, unsigned device) { return byKind[static_cast<size_t>(kind)]->reserve(kind, device); }
  template <api::Kind kind, typename Fill>
  void publish(uint64_t handle, uint64_t context, Fill&& fill) {
    fill(table<kind>().at(handleIndex(handle)));
    of(handle).publish(handle, context);
  }
  void abandon(uint64_t handle) { of(handle).abandon(handle); }

  // The state of a live object of `kind`; nullptr if there is none.
  template <api::Kind kind>
  StateOf<kind>* find(uint64_t handle) const {
    return handleKind(handle) == static_cast<unsigned>(kind) ? table<kind>().find(handle) : nullptr;
  }
  // The context in which a live object was made; 0 if it is not live.
  template <api::Kind kind>
  uint64_t contextOf(uint64_t handle) const {
    auto* state = find<kind>(handle);
    return state == nullptr ? 0 : state->context.load(std::memory_order_relaxed);
  }
  bool isLive(api::Kind kind, uint64_t handle) const {
    return handleKind(handle) == static_cast<unsigned>(kind) && of(handle).isLive(handle);
  }

  // False if the object is not live: only one of several callers ends it. For that caller `last` is called with the state, under the lock,
  // before the place is reused.
  template <api::Kind kind, typename Last>
  bool destroy(uint64_t handle, Last&& last) {
    return handleKind(handle) == static_cast<unsigned>(kind) &&
           of(handle).destroy(handle, [&] { last(table<kind>().at(handleIndex(handle))); });
  }
  bool destroy(uint64_t handle) { return of(handle).destroy(handle, [] {}); }
  // Instead of destroy(), if the object's place is to stay reserved for it (spare-events.h).
  bool retire(uint64_t handle) { return of(handle).retire(handle); }
  void revive(uint64_t handle, uint64_t context) { of(handle).revive(handle, context); }

  // All live handles of `kind` on `device`; only those of `context` if it is not 0.
  std::vector<uint64_t> live(api::Kind kind, unsigned device, uint64_t context = 0) const {
    return byKind[static_cast<size_t>(kind)]->live(device, context);
  }

 private:
  template <size_t... kinds>
  static std::tuple<KindTable<StateOf<static_cast<api::Kind>(kinds)>>...> tablesOf(std::index_sequence<kinds...>);
  using Tables = decltype(tablesOf(std::make_index_sequence<api::kindCount>()));

  template <api::Kind kind>
  auto& table() {
    return std::get<static_cast<size_t>(kind)>(tables);
  }
  template <api::Kind kind>
  auto& table() const {
    return std::get<static_cast<size_t>(kind)>(tables);
  }
  // The table of the handle's kind; an empty table for an invalid kind.
  Handles& of(uint64_t handle) const { return *byKind[handleKind(handle) < api::kindCount ? handleKind(handle) : 0]; }

  Tables tables;
  std::array<Handles*, api::kindCount> byKind;
};

}  // namespace vgpu::client
