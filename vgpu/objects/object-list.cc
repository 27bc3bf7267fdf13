#include "vgpu/objects/object-list.h"

#include <fmt/format.h>
#include <kj/debug.h>

#include <optional>

#include "vgpu/objects/record-format.h"
#include "vgpu/objects/record-store.h"
#include "vgpu/objects/record-table.h"

namespace vgpu {

namespace {

uint64_t readStore(RecordStore& store, const std::function<void(ObjectRecord&&)>& visit) {
  return store.read([&](uint64_t key, kj::ArrayPtr<const kj::byte> bytes) {
    KJ_CONTEXT("a record of the object list", key);
    ObjectRecord record = decodeRecord(bytes);
    KJ_REQUIRE(record.key() == key, "a record stored under another record's key", record.key());
    visit(std::move(record));
  });
}

// The batch is the difference between the table and the store: a frame takes no more room than its effect, and an object that is made and
// destroyed within one batch never reaches the store.
class StoredList final : public ObjectList {
 public:
  StoredList(const std::string& directory, uint64_t mostBytes) : mostBytes(mostBytes) {
    store.emplace(directory, RecordStore::Access::write, mostBytes);
    readStore(*store, [&](ObjectRecord&& record) { table.insert(std::move(record)); });
    table.link();
  }

  void apply(RecordedFrame frame) override {
    if (api::infoOf(frame.method).replay != api::Replay::BUILD) return;
    auto effects = effectsOf(frame.method, frame.words);
    table.apply(std::move(frame), kj::arrayPtr(effects.data(), effects.size()));
  }

  void commit(const RingCut& executed) override {
    table.settle(executed);
    if (table.unsaved().empty() && table.unsavedDrops().empty()) return;
    auto changes = kj::heapArrayBuilder<RecordStore::Change>(table.unsaved().size() + table.unsavedDrops().size());
    for (uint64_t key : table.unsavedDrops()) changes.add(RecordStore::Change{key, nullptr});
    for (uint64_t key : table.unsaved()) changes.add(RecordStore::Change{key, encodeRecord(*table.find(key))});
    store->write(changes.asPtr());
    table.markSaved();
  }

  void leave() override { store.reset(); }

  void enter(const std::string& directory) override {
    store.emplace(directory, RecordStore::Access::write, mostBytes);
    KJ_ON_SCOPE_FAILURE(store.reset());
    table.markUnsaved();
    commit(0);
  }

  size_t size() const override { return table.all().size(); }

 private:
  const uint64_t mostBytes;
  std::optional<RecordStore> store;
  RecordTable table;
};

}  // namespace

std::unique_ptr<ObjectList> ObjectList::open(const std::string& directory, uint64_t mostBytes) {
  return std::make_unique<StoredList>(directory, mostBytes == 0 ? mostListBytes : mostBytes);
}

uint64_t readObjects(const std::string& directory, const std::function<void(ObjectRecord&&)>& visit) {
  RecordStore store(directory, RecordStore::Access::read);
  return readStore(store, visit);
}

uint64_t commitNumber(const std::string& directory) { return RecordStore(directory, RecordStore::Access::read).commitNumber(); }

void readObjectsCopied(const std::string& directory, const std::function<void(ObjectRecord&&)>& visit) {
  RecordStore store(directory, RecordStore::Access::copy);
  readStore(store, visit);
}

}  // namespace vgpu
