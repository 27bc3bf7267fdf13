#include "tools/vgpud/given-files.h"

#include "tools/common/descriptor.h"
#include "vgpu/base/fail.h"

namespace vgpu::daemon {
namespace {

constexpr auto awaitLimit = 10 * kj::SECONDS;

}  // namespace

void GivenFiles::put(const SharedName& name, kj::AutoCloseFd file) {
  if (files.size() >= most && !files.contains(name)) fail("the program has given more files than a daemon keeps of one session");
  files.insert_or_assign(name, kj::mv(file));
  auto [first, last] = awaited.equal_range(name);
  for (auto each = first; each != last; ++each) each->second->fulfill();
}

void GivenFiles::remove(const SharedName& name) { files.erase(name); }

kj::Promise<kj::Maybe<kj::AutoCloseFd>> GivenFiles::find(const SharedName& name) {
  auto take = [self = shared_from_this(), name]() -> kj::Maybe<kj::AutoCloseFd> {
    auto found = self->files.find(name);
    if (found == self->files.end()) return nullptr;
    return duplicate(found->second);
  };
  if (files.contains(name)) return take();
  auto given = kj::newPromiseAndFulfiller<void>();
  auto waiting = awaited.emplace(name, kj::mv(given.fulfiller));
  return given.promise.exclusiveJoin(timer.afterDelay(awaitLimit))
      .then(kj::mv(take))
      .attach(kj::defer([self = shared_from_this(), waiting] { self->awaited.erase(waiting); }));
}

}  // namespace vgpu::daemon
