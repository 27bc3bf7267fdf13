// The virtual object list: every live object of a session with the recipe that made it, kept in LMDB in the session's
// state directory, so that a suspend finds it complete and `vgpuctl inspect` reads it while the program runs.
//
// Owned by the session in the program's process; written by its recorder thread alone, in batches. Readers are other processes.
// All of it survives a suspend. A frame is kept as it was in its ring: to rebuild the session as it was when the worker had
// reached a position in each ring, take recordsAt() that cut, and execute every frame of every record in the order of their
// numbers, each once. docs/objects.md says why that is enough, and draws the format.
#pragma once

#include <capnp/common.h>
#include <kj/array.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "vgpu/api/effects.h"
#include "vgpu/objects/ring-cut.h"

namespace vgpu {

// What the list keeps of a frame beside its message.
struct FrameFacts {
  uint64_t position = 0;  // in the ring of `device`
  // Counts the session's building frames, those of all rings: recipes are executed again in this order. Within a ring it is the
  // order of positions.
  uint64_t number = 0;
  uint64_t address = 0, bytes = 0;  // the range that it made, if that is memory or a variable
  api::Method method{};
  uint8_t device = 0;

  FramePlace place() const { return {device, position}; }
};

// A frame that belongs to recipes, as the recorder hands it over.
struct RecordedFrame : FrameFacts {
  kj::Array<capnp::word> words;  // the frame's message (one segment, without a segment table)

  RecordedFrame clone() const;
};

struct ObjectId {
  api::Kind kind = api::Kind::NONE;
  uint64_t handle = 0;  // virtual; of a context: the device's number
  auto operator<=>(const ObjectId&) const = default;
};

// An object that another one's recipe names. Handles are reused after a destruction, `record` is not: it is the number of the
// frame that made the object.
struct Need : ObjectId {
  uint64_t record = 0;
  auto operator<=>(const Need&) const = default;
};

struct ObjectRecord {
  ObjectId id;
  uint8_t device = 0;
  uint64_t address = 0, bytes = 0;    // 0 if the object is not memory
  uint64_t destroyedAt = 0;           // number of the frame that destroyed it or its parent; 0 while it lives.
                                      // Kept until the worker has executed that frame, and while others need it
  bool parented = false;              // it is a child of the first of `needs`, and ends with it
  std::vector<Need> needs;            // objects its recipe names; the parent first if there is one
  std::vector<RecordedFrame> recipe;  // the frame that made it, then those that changed it, by number; never empty
  FramePlace destroyedBy;             // where that frame was

  uint64_t key() const { return recipe.front().number; }
  bool destroyed() const { return destroyedAt != 0; }
};

class ObjectList {
 public:
  // Opens the list in `directory`, empty if there is none. Throws kj::Exception (no space, wrong version, locked).
  // `mostBytes`: the file grows no larger, 0: than a session's may (record-store.h).
  static std::unique_ptr<ObjectList> open(const std::string& directory, uint64_t mostBytes = 0);
  virtual ~ObjectList() = default;

  // Adds one executed frame to the open batch: creates, changes or destroys objects as the schema says of its method. Frames that
  // belong to no recipe, and frames whose objects the list does not know (a changed object that is gone), are ignored. Throws
  // kj::Exception, and leaves the list as it was, if the frame is not a valid message or makes an object that exists.
  virtual void apply(RecordedFrame frame) = 0;

  // Makes the batch visible to readers, all of it at one moment. It outlives this process, however that ends, but not the
  // machine: nothing is synced, because a machine that goes down takes the session with it anyway. `executed`: up to where the
  // worker has executed frames, or earlier. An object that was destroyed by a later frame is kept: pending frames still use it,
  // and after a suspend another worker will execute them. Throws kj::Exception; the batch is kept for the next try then.
  virtual void commit(const RingCut& executed = UINT64_MAX) = 0;

  // Closes the file, and opens another one in `directory`, where there is none yet, with the same records: they are all in
  // memory. Of a list that is committed. Between the two nothing else may be called. enter() throws kj::Exception and the file
  // stays closed then.
  virtual void leave() = 0;
  virtual void enter(const std::string& directory) = 0;

  virtual size_t size() const = 0;  // records, including kept ones and those of the open batch
};

// Reads the list in `directory` at one moment, from any process but the one that has it open (LMDB allows a file to be open once
// in a process; a second time is refused). Every record in order of its first frame's number. The file's content comes from an
// untrusted program: sizes are checked, an invalid record throws kj::Exception. LMDB itself trusts its file and takes part in its
// lock file: this is for the program's own worker. Returns the number of the commit that it has read.
uint64_t readObjects(const std::string& directory, const std::function<void(ObjectRecord&&)>& visit);
// The number of the list's latest commit: as long as it is the same, so is the list. Opened as by readObjects(), and not read.
uint64_t commitNumber(const std::string& directory);

// The same from a private copy (list-copy.h), for all other processes: it neither writes to the program's folder nor waits for
// its locks. LMDB still trusts the copy, so processes that must not crash read it through a process that may.
void readObjectsCopied(const std::string& directory, const std::function<void(ObjectRecord&&)>& visit);

// The list as it was when the worker had executed the frames before `cut` and no other: it leaves out objects made since, and
// objects destroyed since are live. `records` are all of a list, in its order; every object that was destroyed since must still
// be among them. Throws kj::Exception if they contradict each other.
std::vector<ObjectRecord> recordsAt(std::vector<ObjectRecord> records, const RingCut& cut);

const char* kindName(api::Kind kind);

}  // namespace vgpu
