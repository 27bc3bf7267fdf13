// Which methods set a value that a later frame of the same method replaces. A method whose row does not say so appends to the recipe: a
// wrong row loses state, a missing one only costs space.
#include "vgpu/objects/record-table.h"

namespace vgpu {

bool isSetting(api::Method method) { return api::infoOf(method).isSetting; }

bool supersedes(const RecordedFrame& later, const RecordedFrame& earlier) {
  return later.method == earlier.method && later.device == earlier.device && isSetting(later.method) &&
         api::setsTheSame(later.method, later.words, earlier.words);
}

}  // namespace vgpu
