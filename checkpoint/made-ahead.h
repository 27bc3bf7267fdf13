// What a worker has made of a session before it restores it: a migration sends the recipes of modules, with their functions and
// variables, and of libraries' handles ahead, because these take long to make and live long.
//
// What has ended since is ended here, and what has changed is made anew. On the working thread, quiesced.
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

  // Makes what these records have, all of such objects that need only each other, and ends all else that was made. `state`: the rows of
  // modules with variables at the same moment. Throws kj::Exception, for a person, if something cannot be made.
  void follow(stub::SessionState& on, const StateTables& state, const std::vector<ObjectRecord>& records);
  // Before a restore from all of a session's records: ends what they do not have. Then what has() is not to be executed again.
  void reduce(stub::SessionState& on, const StateTables& state, const std::vector<ObjectRecord>& records);
  bool has(const RecordedFrame& frame) const { return frames.contains(frame.number); }

 private:
  struct Made {
    ObjectId id;
    uint8_t device = 0;
    uint64_t root = 0;  // the record of the object with which it ends
    std::vector<uint64_t> frames;
  };
  static void end(stub::SessionState& on, const Made& object);

  std::map<uint64_t, Made> made;  // by record
  std::set<uint64_t> frames;      // of their recipes, by number
};

}  // namespace vgpu::checkpoint
