// The virtual object list: every live object of a session with the recipe that made it, kept in LMDB in the session's
// state directory, so that a suspend finds it complete and `vgpuctl inspect` reads it while the program runs.
//
// Owned by the session in the program's process; only its recorder thread writes it, in batches. Readers are other processes. All of it
// survives a suspend. A frame is kept as it was in its ring. To rebuild the session as of a position in each ring (a cut): take recordsAt()
// that cut, and execute every frame of every record once, in the order of their numbers. docs/objects.md explains why that is enough, and
// draws the format.
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

// What the list keeps of a frame besides its message.
struct FrameFacts {
  uint64_t position = 0;  // in the ring of `device`
  // Numbers the session's building frames across all rings: recipes are executed again in this order. Within a ring it is the order of
  // positions.
  uint64_t number = 0;
  uint64_t address = 0, bytes = 0;  // the range that the frame made, if that is memory or a variable
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
  uint64_t handle = 0;  // virtual handle; for a context: the device's number
  auto operator<=>(const ObjectId&) const = default;
};

// An object that another object's recipe names. Handles are reused after a destruction; `record`, the number of the frame that made the
// object, is not.
struct Need : ObjectId {
  uint64_t record = 0;
  auto operator<=>(const Need&) const = default;
};

struct ObjectRecord {
  ObjectId id;
  uint8_t device = 0;
  uint64_t address = 0, bytes = 0;    // 0 if the object is not memory
  uint64_t destroyedAt = 0;           // number of the frame that destroyed the object or its parent; 0 while it lives. A destroyed object
                                      // is kept until the worker has executed that frame, and while others need it
  bool parented = false;              // it is a child of the first of `needs`, and is destroyed with it
  std::vector<Need> needs;            // objects that its recipe names; the parent first if there is one
  std::vector<RecordedFrame> recipe;  // the frame that made it, then those that changed it, by number; never empty
  FramePlace destroyedBy;             // ring and position of that frame

  uint64_t key() const { return recipe.front().number; }
  bool destroyed() const { return destroyedAt != 0; }
};

class ObjectList {
 public:
  // Opens the list in `directory`; a missing list is created empty. Throws kj::Exception (no space, wrong version, locked). `mostBytes`:
  // limit of the file's size; 0: the limit for a session (record-store.h).
  static std::unique_ptr<ObjectList> open(const std::string& directory, uint64_t mostBytes = 0);
  virtual ~ObjectList() = default;

  // Adds one executed frame to the open batch: creates, changes or destroys objects as the schema says for its method. Ignores frames that
  // belong to no recipe, and frames whose objects the list does not know (such as a change of a destroyed object). Throws kj::Exception,
  // and leaves the list unchanged, if the frame is not a valid message or makes an object that exists.
  virtual void apply(RecordedFrame frame) = 0;

  // Makes the batch visible to readers atomically. It survives the end of this process in any way, but not a crash of the machine: nothing
  // is synced, because the session is lost then anyway. `executed`: the cut up to which the worker has executed frames, or an earlier one.
  // An object that a later frame destroyed is kept: pending frames still use it, and another worker executes them after a suspend. Throws
  // kj::Exception; the batch is then kept for the next commit.
  virtual void commit(const RingCut& executed = UINT64_MAX) = 0;

  // leave() closes the file; enter() creates another list in `directory`, where there must be none, with the same records, which are all in
  // memory. The list must be committed before leave(), and nothing else may be called between the two. If enter() throws kj::Exception, the
  // file stays closed.
  virtual void leave() = 0;
  virtual void enter(const std::string& directory) = 0;

  virtual size_t size() const = 0;  // records, including the destroyed ones that are kept and those of the open batch
};

// Reads one commit of the list in `directory`, from any process except the one that has it open (LMDB allows a process to open a file only
// once; a second open is refused). Visits every record, ordered by its first frame's number. The file's content comes from an untrusted
// program: sizes are checked, an invalid record throws kj::Exception. But LMDB itself trusts its file, and readers use its lock file: only
// the program's own worker may call this. Returns the number of the commit.
uint64_t readObjects(const std::string& directory, const std::function<void(ObjectRecord&&)>& visit);
// The number of the list's latest commit: the list is unchanged as long as this number is. Opens the list as readObjects() does, without
// reading its records.
uint64_t commitNumber(const std::string& directory);

// As readObjects(), from a private copy (list-copy.h); for all other processes: it neither writes to the program's folder nor waits for its
// locks. LMDB still trusts the copy, so a process that must not crash has a process that may crash read it.
void readObjectsCopied(const std::string& directory, const std::function<void(ObjectRecord&&)>& visit);

// The list as it was when the worker had executed exactly the frames before `cut`: objects made since are left out, objects destroyed since
// are live. `records` are all records of a list, in its order, and must still include every object destroyed since. Throws kj::Exception if
// the records contradict each other.
std::vector<ObjectRecord> recordsAt(std::vector<ObjectRecord> records, const RingCut& cut);

const char* kindName(api::Kind kind);

}  // namespace vgpu
