// One emulated GPU: its figures, its memory budget and its primary context.
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

// A part of a device's memory, given back when it goes.
class MemoryLease {
 public:
  MemoryLease() = default;
  MemoryLease(Device& device, uint64_t bytes);  // refuses with CUDA_ERROR_OUT_OF_MEMORY
  MemoryLease(MemoryLease&& other) noexcept : device_(other.device_), bytes_(other.bytes_) { other.device_ = nullptr; }
  MemoryLease& operator=(MemoryLease&&) = delete;
  ~MemoryLease();

 private:
  Device* device_ = nullptr;
  uint64_t bytes_ = 0;
};

class Device {
 public:
  Device(int ordinal, const Settings& settings) : links(settings), ordinal_(ordinal), settings_(settings) {}
  int ordinal() const { return ordinal_; }
  int architecture() const { return settings_.architecture; }
  const Settings& settings() const { return settings_; }
  uint64_t totalBytes() const { return settings_.memoryBytes; }
  uint64_t freeBytes() const { return settings_.memoryBytes - used_.load(); }
  int attribute(CUdevice_attribute) const;  // refuses with CUDA_ERROR_INVALID_VALUE where there is no such attribute
  std::string name() const;
  CUuuid uuid() const;
  std::string pciBusId() const;
  uint64_t bit() const { return uint64_t{1} << ordinal_; }  // in masks of devices

  LinkEnds links;

 private:
  friend class MemoryLease;
  int ordinal_;
  Settings settings_;
  std::atomic<uint64_t> used_{0};
};

}  // namespace vgpu::emulator::api
