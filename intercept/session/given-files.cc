#include "intercept/session/given-files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "intercept/session/cancellation.h"

namespace vgpu::client {

GivenFile::~GivenFile() { files.takeBack(*this); }

GivenFiles::File GivenFiles::give(kj::AutoCloseFd file) {
  struct stat status {};
  if (fstat(file, &status) != 0) return nullptr;
  CancellationOff untilTold;
  std::unique_lock lock(mutex);
  std::weak_ptr<GivenFile>& known = files[Identity{status.st_dev, status.st_ino}];
  File made = known.lock();
  if (made == nullptr) {
    made.reset(new GivenFile(*this, SharedName::make(), kj::mv(file)));
    known = made;
    changes.push_back({made->name, made});
    ++given;
    wish.raise();
  }
  told.wait(lock, [this, mine = given] { return tellings >= mine || isLost; });
  const bool isThere = !isLost;
  lock.unlock();  // the file's end takes it
  return isThere ? made : nullptr;
}

// A child of fork() has copies of its parent's objects, and perhaps of its locks.
void GivenFiles::takeBack(const GivenFile& file) {
  if (getpid() != process) return;
  std::lock_guard lock(mutex);
  std::erase_if(files, [](auto& each) { return each.second.expired(); });
  changes.push_back({file.name, nullptr});
  ++given;
  wish.raise();
}

bool GivenFiles::isEmpty() const {
  std::lock_guard lock(mutex);
  return std::ranges::all_of(files, [](auto& each) { return each.second.expired(); });
}

std::vector<GivenFiles::File> GivenFiles::all() const {
  std::vector<File> live;
  std::lock_guard lock(mutex);
  for (auto& [identity, known] : files)
    if (File file = known.lock()) live.push_back(std::move(file));
  return live;
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
  std::vector<Change> dropped;  // their files' end takes the lock
  std::lock_guard lock(mutex);
  isLost = true;
  dropped = std::exchange(changes, {});
  told.notify_all();
}

void GivenFiles::leave() {
  if (!mutex.try_lock()) return;  // a thread that is not in this process has it; the descriptors end with exec()
  for (auto& [identity, known] : files)
    if (File file = known.lock()) file->file = nullptr;
  mutex.unlock();
}

}  // namespace vgpu::client
