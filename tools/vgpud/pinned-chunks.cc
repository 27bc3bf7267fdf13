#include "tools/vgpud/pinned-chunks.h"

#include "vgpu/base/sizes.h"

namespace vgpu::daemon {

PinnedChunks::PinnedChunks(uint64_t bytes) : size(bytes / unit * unit) {
  if (size > 0) addGap(0, size);
}

PinnedChunks::Hold::~Hold() {
  for (uint64_t offset : held) chunks.release(offset);
}

void PinnedChunks::Hold::add(uint64_t offset) {
  if (!held.insert(offset).second) return;
  chunks.hold(offset);
  heldBytes += chunks.chunks.at(offset).bytes;
}

std::optional<uint64_t> PinnedChunks::Hold::find(const PinnedName& name) {
  auto found = chunks.named.find(name);
  if (found == chunks.named.end()) return std::nullopt;
  add(found->second);
  return found->second;
}

std::optional<uint64_t> PinnedChunks::Hold::take(uint64_t bytes) {
  if (bytes == 0 || bytes > chunks.size) return std::nullopt;
  uint64_t room = roundUp(bytes, unit);
  auto offset = chunks.allocate(room);
  if (!offset) return std::nullopt;
  Chunk chunk{.bytes = bytes, .room = room};
  chunk.idle = chunks.idle.insert(chunks.idle.end(), *offset);
  chunks.chunks.emplace(*offset, chunk);
  chunks.idleSum += room;
  add(*offset);
  return offset;
}

bool PinnedChunks::Hold::name(uint64_t offset, const PinnedName& name) {
  auto chunk = chunks.chunks.find(offset);
  if (!held.contains(offset) || chunk->second.name || chunk->second.bytes != name.chunk.bytes) return false;
  if (auto same = chunks.named.find(name); same != chunks.named.end()) {  // another operation has added it first: holds that chunk
    add(same->second);
    held.erase(offset);
    heldBytes -= chunk->second.bytes;
    chunks.release(offset);
    return true;
  }
  chunk->second.name = name;
  chunks.named.emplace(name, offset);
  return true;
}

void PinnedChunks::hold(uint64_t offset) {
  Chunk& chunk = chunks.at(offset);
  if (chunk.holds++ > 0) return;
  idle.erase(chunk.idle);
  idleSum -= chunk.room;
  held += chunk.room;
}

void PinnedChunks::release(uint64_t offset) {
  auto chunk = chunks.find(offset);
  if (--chunk->second.holds > 0) return;
  chunk->second.idle = idle.insert(idle.end(), offset);
  held -= chunk->second.room;
  idleSum += chunk->second.room;
  if (!chunk->second.name) remove(chunk);
}

// Removes an unheld chunk.
void PinnedChunks::remove(std::map<uint64_t, Chunk>::iterator chunk) {
  auto [offset, gone] = *chunk;
  idle.erase(gone.idle);
  idleSum -= gone.room;
  if (gone.name) named.erase(*gone.name);
  chunks.erase(chunk);
  addGap(offset, gone.room);
}

// Takes the smallest gap that is large enough; removes unheld chunks until there is one.
std::optional<uint64_t> PinnedChunks::allocate(uint64_t room) {
  if (room > size - held) return std::nullopt;
  for (;;) {
    if (auto fit = gapsBySize.lower_bound({room, 0}); fit != gapsBySize.end()) {
      auto [bytes, offset] = *fit;
      removeGap(gaps.find(offset));
      if (bytes > room) addGap(offset + room, bytes - room);
      return offset;
    }
    if (idle.empty()) return std::nullopt;  // the free space is too fragmented
    remove(chunks.find(idle.front()));
  }
}

void PinnedChunks::addGap(uint64_t offset, uint64_t bytes) {
  auto next = gaps.lower_bound(offset);
  if (next != gaps.end() && next->first == offset + bytes) {
    bytes += next->second;
    removeGap(next);
  }
  if (auto before = gaps.lower_bound(offset); before != gaps.begin() && (--before)->first + before->second == offset) {
    offset = before->first;
    bytes += before->second;
    removeGap(before);
  }
  gaps.emplace(offset, bytes);
  gapsBySize.emplace(bytes, offset);
}

void PinnedChunks::removeGap(std::map<uint64_t, uint64_t>::iterator gap) {
  gapsBySize.erase({gap->second, gap->first});
  gaps.erase(gap);
}

}  // namespace vgpu::daemon
