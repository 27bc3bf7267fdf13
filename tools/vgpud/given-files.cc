#include "tools/vgpud/given-files.h"

#include "vgpu/base/fail.h"

namespace vgpu::daemon {
namespace {

constexpr auto awaitLimit = 10 * kj::SECONDS;

}  // namespace

// The thread pool must live until the file is closed: this may be its last reference.
GivenFile::~GivenFile() noexcept {
  const auto work = std::move(closing);
  kj::runCatchingExceptions([&] { work->add([file = kj::mv(file), work]() mutable { file = nullptr; }); });
}

void GivenFiles::put(const SharedName& name, kj::AutoCloseFd file) {
  auto given = std::make_shared<const GivenFile>(kj::mv(file), closing);
  if (files.size() >= most && !files.contains(name)) fail("the program sent more files than vgpud allows for one session");
  files.insert_or_assign(name, std::move(given));
  auto [first, last] = awaited.equal_range(name);
  for (auto each = first; each != last; ++each) each->second->fulfill();
}

void GivenFiles::remove(const SharedName& name) { files.erase(name); }

kj::Promise<std::shared_ptr<const GivenFile>> GivenFiles::find(const SharedName& name) {
  auto take = [self = shared_from_this(), name]() -> std::shared_ptr<const GivenFile> {
    auto found = self->files.find(name);
    return found == self->files.end() ? nullptr : found->second;
  };
  if (files.contains(name)) return take();
  auto given = kj::newPromiseAndFulfiller<void>();
  auto waiting = awaited.emplace(name, kj::mv(given.fulfiller));
  return given.promise.exclusiveJoin(timer.afterDelay(awaitLimit))
      .then(kj::mv(take))
      .attach(kj::defer([self = shared_from_this(), waiting] { self->awaited.erase(waiting); }));
}

}  // namespace vgpu::daemon
