#include "intercept/session/given-files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "intercept/session/cancellation.h"
#include "vgpu/control/control.capnp.h"

namespace vgpu::client {

GivenFile::~GivenFile() {
  close();
  files.takeBack(*this);
}

void GivenFile::close() {
  if (descriptor >= 0) ::close(std::exchange(descriptor, -1));
}

namespace {

// Device, inode and access mode. Determined each time: in a restored process, files can have other numbers.
std::optional<std::tuple<dev_t, ino_t, int>> identityOf(int descriptor) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0) return std::nullopt;
  return std::tuple(status.st_dev, status.st_ino, fcntl(descriptor, F_GETFL) & O_ACCMODE);
}

}  // namespace

GivenFiles::File GivenFiles::give(kj::AutoCloseFd file) {
  const auto identity = identityOf(file);
  if (!identity) return nullptr;
  CancellationOff untilTold;
  std::vector<File> live;  // destroyed after the lock is released: a GivenFile's destructor takes it
  std::unique_lock lock(mutex);
  if (isLost || hasLeft) return nullptr;
  live = living();
  auto known = std::ranges::find_if(live, [&](auto& each) { return identityOf(each->fd()) == identity; });
  File made = known == live.end() ? nullptr : *known;
  if (made == nullptr) {
    if (held == control::MOST_FILES) return nullptr;
    const SharedName name = SharedName::make();
    made.reset(new GivenFile(*this, name, file.release()));
    files.push_back(made);
    changes.push_back({made->name, made});
    ++held;
    ++given;
    wish.raise();
  }
  told.wait(lock, [this, mine = given] { return tellings >= mine || isLost; });
  const bool isThere = !isLost;
  lock.unlock();  // the destructor of a GivenFile takes the lock
  return isThere ? made : nullptr;
}

// A forked child has copies of its parent's objects, and perhaps of a locked mutex, so it does nothing.
void GivenFiles::takeBack(const GivenFile& file) {
  if (getpid() != process) return;
  std::lock_guard lock(mutex);
  std::erase_if(files, [](auto& each) { return each.expired(); });
  if (isLost) return;
  changes.push_back({file.name, nullptr});
  --held;
  ++given;
  wish.raise();
}

bool GivenFiles::areAllEnded() const {
  return std::ranges::all_of(files, [](auto& each) { return each.expired(); });
}

bool GivenFiles::isEmpty() const {
  std::lock_guard lock(mutex);
  return areAllEnded();
}

bool GivenFiles::close() {
  std::lock_guard lock(mutex);
  return hasLeft = areAllEnded();
}

bool GivenFiles::isClosed() const {
  std::lock_guard lock(mutex);
  return hasLeft;
}

std::vector<GivenFiles::File> GivenFiles::living() const {
  std::vector<File> live;
  for (auto& known : files)
    if (File file = known.lock()) live.push_back(std::move(file));
  return live;
}

std::vector<GivenFiles::File> GivenFiles::all() const {
  std::lock_guard lock(mutex);
  return living();
}

std::vector<GivenFiles::Change> GivenFiles::takeChanges() {
  wish.lower();
  std::lock_guard lock(mutex);
  taken = given;
  return std::exchange(changes, {});
}

void GivenFiles::setTold() {
  std::lock_guard lock(mutex);
  tellings = taken;
  told.notify_all();
}

void GivenFiles::lose() {
  std::vector<Change> dropped;  // destroyed after the lock is released: a GivenFile's destructor takes it
  std::lock_guard lock(mutex);
  isLost = true;
  dropped = std::exchange(changes, {});
  told.notify_all();
}

void GivenFiles::leave() {
  if (!mutex.try_lock()) return;  // locked by a thread of the parent; exec() closes the descriptors
  for (auto& known : files)
    if (File file = known.lock()) file->close();
  mutex.unlock();
}

}  // namespace vgpu::client
