#include "tools/relay/guest-device.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <sys/random.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "vgpu/base/fail.h"

namespace vgpu::relay {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr const char* pciDevices = "/sys/bus/pci/devices";
constexpr const char* ivshmemVendor = "0x1af4";
constexpr const char* ivshmemDevice = "0x1110";
constexpr const char* sharedMemory = "resource2";  // BAR 2 of the PCI device
constexpr std::chrono::seconds servedLimit{10}, beatLimit{3}, returnedLimit{3};

std::string firstWord(const fs::path& file) {
  std::ifstream in(file);
  std::string word;
  in >> word;
  return word;
}

std::vector<std::string> ivshmemDevices() {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator entry(pciDevices, error), end; !error && entry != end; entry.increment(error))
    if (firstWord(entry->path() / "vendor") == ivshmemVendor && firstWord(entry->path() / "device") == ivshmemDevice)
      found.push_back(entry->path().filename());
  return found;
}

// `device`: the path of the shared memory; or a PCI address; empty for the only device.
std::string memoryOf(const std::string& device) {
  if (device.find('/') != std::string::npos) return device;
  if (!device.empty()) return std::string(pciDevices) + "/" + device + "/" + sharedMemory;
  std::vector<std::string> found = ivshmemDevices();
  if (found.empty())
    fail(
        "this machine has no ivshmem device (PCI 1af4:1110): give the virtual machine -device ivshmem-plain, and its memory to "
        "`vgpud --guest` on the host");
  if (found.size() > 1)
    fail("this machine has " + std::to_string(found.size()) + " ivshmem devices: name one, as ivshmem:" + found[0]);
  return std::string(pciDevices) + "/" + found[0] + "/" + sharedMemory;
}

uint64_t newClaim() {
  uint64_t number = 0;
  while (number == 0) KJ_SYSCALL(getrandom(&number, sizeof number, 0));
  return number;
}

// A host that serves this memory keeps changing `beats`.
void requireHost(const GuestFile& file) {
  const uint64_t before = file.header().beats.load();
  const auto limit = std::chrono::steady_clock::now() + beatLimit;
  while (file.header().beats.load() == before) {
    if (std::chrono::steady_clock::now() > limit)
      fail("no vgpud of the host serves the memory that this machine shares with it: start `vgpud --guest NAME=FILE` there");
    std::this_thread::sleep_for(milliseconds(1));
  }
}

bool tryClaim(GuestPlace& place) {
  if (place.words().claimed.load(std::memory_order_acquire) != 0) return false;
  auto locked = place.file->lock(place.slot);
  if (!locked) return false;  // a program still uses the last session's slot or pinned memory
  uint64_t none = 0;
  if (!place.words().claimed.compare_exchange_strong(none, place.claim, std::memory_order_acq_rel)) return false;
  place.locked = kj::mv(*locked);
  return true;
}

bool tryClaimAny(GuestPlace& place) {
  for (place.slot = 0; place.slot < place.file->slots(); ++place.slot)
    if (tryClaim(place)) return true;
  return false;
}

// Whether a slot's session has ended, and the host has not freed the slot yet.
bool anyReturns(const GuestFile& file) {
  for (uint64_t slot = 0; slot < file.slots(); ++slot) {
    const GuestSlot& words = file.slot(slot);
    const uint64_t claim = words.claimed.load(std::memory_order_acquire);
    if (claim != 0 && words.released.load(std::memory_order_acquire) == claim) return true;
  }
  return false;
}

}  // namespace

std::shared_ptr<GuestFile> openGuestDevice(const Endpoint& device) {
  const std::string path = memoryOf(device.host);
  kj::AutoCloseFd memory(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (memory.get() < 0 && errno == EACCES)
    fail(path + " cannot be opened by this user: let a udev rule give it to a group of yours (docs/virtual-machines.md)");
  if (memory.get() < 0) fail("the device's memory cannot be opened: " + path + ": " + std::strerror(errno));
  return std::make_shared<GuestFile>(kj::mv(memory), GuestFile::Side::guest);
}

std::string describeHost(const GuestFile& file) {
  requireHost(file);
  return std::to_string(file.header().gpus.load()) + (file.header().runsPtx.load() != 0 ? " ptx" : "");
}

GuestPlace claimSlot(std::shared_ptr<GuestFile> file) {
  releaseAbandoned(*file);
  requireHost(*file);
  GuestPlace place{kj::mv(file), 0, newClaim()};
  const auto returned = std::chrono::steady_clock::now() + returnedLimit;
  while (true) {
    const bool waits = anyReturns(*place.file);  // read before claiming: a slot that the host frees afterwards is claimed in the next round
    if (tryClaimAny(place)) break;
    if (!waits || std::chrono::steady_clock::now() > returned)
      fail("all " + std::to_string(place.file->slots()) +
           " slots of the memory that this machine shares with its host are in use, by sessions or by their pinned memory: make that "
           "memory larger (vgpud --guest NAME=FILE,SIZE)");
    std::this_thread::sleep_for(milliseconds(1));
  }
  const auto limit = std::chrono::steady_clock::now() + servedLimit;
  while (place.words().served.load(std::memory_order_acquire) != place.claim) {
    if (std::chrono::steady_clock::now() > limit) {
      releaseSlot(place);
      fail("the host's vgpud did not answer in 10 s");
    }
    std::this_thread::sleep_for(milliseconds(1));
  }
  // The host has written into this page: a write from the guest makes a hypervisor that moves the machine send it.
  place.words().released.store(0, std::memory_order_release);
  return place;
}

void releaseSlot(const GuestPlace& place) { place.words().released.store(place.claim, std::memory_order_release); }

void releaseAbandoned(const GuestFile& file) {
  for (uint64_t slot = 0; slot < file.slots(); ++slot) {
    const uint64_t claim = file.slot(slot).claimed.load(std::memory_order_acquire);  // read before locking: claimSlot() locks first
    if (claim != 0 && !file.isLocked(slot)) file.slot(slot).released.store(claim, std::memory_order_release);
  }
}

}  // namespace vgpu::relay
