#include "tools/worker/process-record.h"

#include <doctest/doctest.h>

using vgpu::stub::ProcessRecord;

namespace {

ProcessRecord fresh() {
  ProcessRecord record;
  record.devices.resize(2);
  for (auto& device : record.devices) device.freeBytes = 1000;
  record.mappedBytes = 64;
  return record;
}

}  // namespace

TEST_CASE("a process in the state of a new one has left nothing") {
  CHECK(fresh().leftSince(fresh()).empty());
  ProcessRecord more = fresh();
  more.devices[1].freeBytes = 2000;  // because another process has ended
  more.mappedBytes = 32;
  more.devices[0].flags |= CU_CTX_LMEM_RESIZE_TO_MAX;  // set by the driver
  CHECK(more.leftSince(fresh()).empty());
}

TEST_CASE("each kind of state that a session can leave is named") {
  ProcessRecord record = fresh();
  record.devices[1].limits[0] = 1;
  CHECK(record.leftSince(fresh()) == "a changed limit of device 1");
  record = fresh();
  record.devices[0].cacheConfig = CU_FUNC_CACHE_PREFER_L1;
  CHECK(record.leftSince(fresh()) == "a changed cache configuration of device 0");
  record = fresh();
  record.devices[0].flags = 4;
  CHECK(record.leftSince(fresh()) == "changed flags of device 0's context: 0x4, in a new one 0x0");
  record = fresh();
  record.mappedBytes += 10;
  CHECK(record.leftSince(fresh()) == "10 bytes of the driver's mappings");
  record = fresh();
  record.devices[1].freeBytes -= 10;
  CHECK(record.leftSince(fresh()) == "10 bytes of device 1 that are no longer free");
}

TEST_CASE("the system's figures for this process are used if they exist, and not a GPU's figures for all processes") {
  ProcessRecord before = fresh(), now = fresh();
  before.gpuBytes = now.gpuBytes = 500;
  now.devices[0].freeBytes = 0;
  CHECK(now.leftSince(before).empty());
  now.gpuBytes = 510;
  CHECK(now.leftSince(before) == "10 bytes of GPU memory");
}
