// The objects of a session that a worker has made before it restores the session. A migration sends the recipes of modules (with their
// functions and variables) and of library handles ahead, because these take long to make and live long.
//
// Objects that the program has destroyed since are destroyed here, and changed ones are made again. Used on the working thread, quiesced.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "stub/worker/session-state.h"
#include "vgpu/objects/object-list.h"
#include "vgpu/objects/state-table.h"

namespace vgpu::checkpoint {

class MadeAhead {
 public:
  // Whether an object of this kind can be made ahead.
  static bool isOf(api::Kind kind);

  // Makes the objects of these records, which need only each other, and destroys all others that were made. `state`: the rows of modules
  // with variables at the same moment. Throws kj::Exception with a message for the person if something cannot be made.
  void follow(stub::SessionState& on, const StateTables& state, const std::vector<ObjectRecord>& records);
  // Before a restore from all records of a session: destroys the objects that these lack. Frames for which has() is true must not be
  // executed again.
  void reduce(stub::SessionState& on, const StateTables& state, const std::vector<ObjectRecord>& records);
  bool has(const RecordedFrame& frame) const { return frames.contains(frame.number); }

 private:
  struct Made {
    ObjectId id;
    uint8_t device = 0;
    uint64_t root = 0;  // the record of the object with which it is destroyed
    std::vector<uint64_t> frames;
  };
  static void end(stub::SessionState& on, const Made& object);

  std::map<uint64_t, Made> made;  // by record
  std::set<uint64_t> frames;      // numbers of their recipes' frames
};

}  // namespace vgpu::checkpoint
