// The object list in memory, and a frame's effect on it. Uses neither a file nor a thread: StoredList owns the file, and tests apply
// effects that no row of the schema has at present.
//
// Rules (docs/objects.md): a frame belongs to each object it creates, changes or destroys, and makes that object need every other
// object the frame names. A destroyed record stays until the worker has executed the frame that destroyed it, and while another
// record that stays needs it.
#pragma once

#include <kj/common.h>

#include <map>
#include <set>
#include <unordered_map>

#include "vgpu/objects/object-list.h"

namespace vgpu {

// Whether `later` makes `earlier` superfluous: both set the same property of the same object (settings.cc).
bool supersedes(const RecordedFrame& later, const RecordedFrame& earlier);

// Whether frames of this method are settings: a later one may supersede an earlier one.
bool isSetting(api::Method method);

class RecordTable {
 public:
  // Throws kj::Exception, and changes nothing, if the frame makes an object that exists.
  void apply(RecordedFrame frame, kj::ArrayPtr<const api::EffectOn> effects);

  // The worker has executed every frame before `cut`, which is never earlier than that of the last call: records that these frames
  // destroyed may be removed.
  void settle(const RingCut& cut);

  // Adds a stored record. Throws kj::Exception if it contradicts the records already added. After the last one, link() checks and connects
  // what the records need of each other.
  void insert(ObjectRecord record);
  void link();

  const ObjectRecord* find(uint64_t key) const;
  std::vector<ObjectRecord> takeAll() &&;
  const ObjectRecord* findLive(const ObjectId& id) const;
  const std::map<uint64_t, ObjectRecord>& all() const { return records; }

  // Keys of the records that differ from the last saved state.
  const std::set<uint64_t>& unsaved() const { return written; }
  const std::set<uint64_t>& unsavedDrops() const { return dropped; }
  void markSaved();
  void markUnsaved();  // after this, all records count as unsaved

 private:
  struct IdHash {
    size_t operator()(const ObjectId& id) const {
      return std::hash<uint64_t>()(id.handle * 31 + static_cast<uint64_t>(id.kind));
    }
  };

  // The live objects that a frame names, grouped by the frame's effect on them.
  struct Named {
    const api::EffectOn* created = nullptr;
    std::vector<Need> all;  // the parent first
    std::vector<uint64_t> changed, destroyed;
    bool known = true, parented = false;
  };
  Named resolve(unsigned device, kj::ArrayPtr<const api::EffectOn> effects) const;

  void create(const api::EffectOn& effect, const RecordedFrame& frame, const Named& named);
  void change(uint64_t key, const RecordedFrame& frame, const Named& named);
  void changeContext(const RecordedFrame& frame, const Named& named);
  void destroy(uint64_t key, const RecordedFrame& frame, const Named& named);
  void need(ObjectRecord& record, const std::vector<Need>& needs);
  void forget(ObjectRecord& record, uint64_t key, std::set<uint64_t> candidates);
  void dropUnneeded(std::set<uint64_t> candidates);
  bool usedSince(uint64_t key, uint64_t number) const;
  bool stays(const ObjectRecord& record) const { return !record.destroyed() || !executed.hasExecuted(record.destroyedBy); }
  bool isNeeded(uint64_t key) const;
  void rename(uint64_t from, uint64_t to);
  void drop(uint64_t key);

  std::map<uint64_t, ObjectRecord> records;                // by the first frame's number
  std::unordered_map<ObjectId, uint64_t, IdHash> live;     // never contains destroyed objects
  std::unordered_map<uint64_t, std::set<uint64_t>> users;  // record → records that need it
  std::map<FramePlace, std::vector<uint64_t>> endings;     // frame → records that it destroys; until the frame is settled
  RingCut executed;
  std::set<uint64_t> written, dropped, saved;
};

}  // namespace vgpu
