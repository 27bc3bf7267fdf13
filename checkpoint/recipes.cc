#include "checkpoint/recipes.h"

#include <fmt/format.h>
#include <kj/debug.h>

#include <cstring>
#include <map>

#include "stub/worker/kinds/kind.h"
#include "vgpu/base/fail.h"
#include "vgpu/objects/record-format.h"

namespace vgpu::checkpoint {

std::vector<std::byte> encodeRecords(const std::vector<ObjectRecord>& records) {
  std::vector<std::byte> out;
  for (auto& record : records) {
    auto words = encodeRecord(record);
    auto bytes = words.asBytes();
    uint32_t size = static_cast<uint32_t>(bytes.size());
    size_t at = out.size();
    out.resize(at + sizeof size + size);
    std::memcpy(&out[at], &size, sizeof size);
    std::memcpy(&out[at + sizeof size], bytes.begin(), size);
  }
  return out;
}

std::vector<ObjectRecord> decodeRecords(std::span<const std::byte> bytes, uint64_t barrier) {
  std::vector<ObjectRecord> records;
  while (!bytes.empty()) {
    KJ_CONTEXT("a record of the snapshot", records.size());
    uint32_t size = 0;
    KJ_REQUIRE(bytes.size() >= sizeof size, "the file ends within a record");
    std::memcpy(&size, bytes.data(), sizeof size);
    bytes = bytes.subspan(sizeof size);
    KJ_REQUIRE(bytes.size() >= size, "the file ends within a record", size, bytes.size());
    auto copy = kj::heapArray<kj::byte>(size);
    if (size > 0) std::memcpy(copy.begin(), bytes.data(), size);
    bytes = bytes.subspan(size);
    records.push_back(decodeRecord(copy));
    KJ_REQUIRE(records.back().recipe.back().position < barrier, "a frame that is not of this moment",
               records.back().recipe.back().position, barrier);
  }
  return recordsAt(std::move(records), barrier);  // checks that they fit together
}

uint64_t bytesOf(const std::vector<ObjectRecord>& records) {
  uint64_t bytes = 0;
  for (auto& record : records)
    for (auto& frame : record.recipe) bytes += frame.words.asBytes().size();
  return bytes;
}

void rebuild(stub::SessionState& on, const std::vector<ObjectRecord>& records,
             const std::function<void(size_t)>& progress) {
  struct Step {
    const ObjectRecord* record;
    const RecordedFrame* frame;
  };
  std::map<uint64_t, Step> steps;
  for (auto& record : records)
    for (auto& frame : record.recipe) steps.emplace(frame.position, Step{&record, &frame});
  stub::Reply reply;
  for (auto& [position, step] : steps) {
    auto& [record, frame] = step;
    // Its pages are the program's and full: giving them back belongs to the worker that did it.
    bool endsHostMemory = frame->method == api::Method::endHostLease || frame->method == api::Method::hostRelease;
    KJ_REQUIRE(!endsHostMemory, "a recipe that ends a part of the host arena", position);
    reply.reset();
    CUresult result = on.execute(frame->method, frame->device, frame->words, position, 0, reply);
    if (result != CUDA_SUCCESS)
      fail(fmt::format("the {} {:#x} cannot be made again on this device: {} of position {} answers {}",
                       kindName(record->id.kind), record->id.handle, api::infoOf(frame->method).name, position,
                       stub::nameOf(on.driver, result)));
    progress(frame->words.asBytes().size());
  }
}

}  // namespace vgpu::checkpoint
