// One emulated GPU: its attributes, its memory budget and its primary context.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "stub/emulator/driver/cuda-api.h"
#include "stub/emulator/driver/interconnect.h"
#include "stub/emulator/driver/settings.h"

namespace vgpu::emulator::api {

class Device;

// A part of a device's memory budget, returned on destruction.
class MemoryLease {
 public:
  MemoryLease() = default;
  MemoryLease(Device& device, uint64_t bytes);  // refuses with CUDA_ERROR_OUT_OF_MEMORY
  MemoryLease(MemoryLease&& other) noexcept : lender(other.lender), bytes(other.bytes) { other.lender = nullptr; }
  MemoryLease& operator=(MemoryLease&&) = delete;
  ~MemoryLease();

 private:
  Device* lender = nullptr;
  uint64_t bytes = 0;
};

class Device {
 public:
  Device(int ordinal, const Settings& settings) : links(settings), number(ordinal), configuration(settings) {}
  int ordinal() const { return number; }
  int architecture() const { return configuration.architecture; }
  const Settings& settings() const { return configuration; }
  uint64_t totalBytes() const { return configuration.memoryBytes; }
  uint64_t freeBytes() const { return configuration.memoryBytes - used.load(); }
  int attribute(CUdevice_attribute) const;  // refuses with CUDA_ERROR_INVALID_VALUE if there is no such attribute
  std::string name() const;
  CUuuid uuid() const;
  std::string pciBusId() const;
  uint64_t bit() const { return uint64_t{1} << number; }  // in masks of devices

  LinkEnds links;

 private:
  friend class MemoryLease;
  int number;
  Settings configuration;
  std::atomic<uint64_t> used{0};
};

}  // namespace vgpu::emulator::api
