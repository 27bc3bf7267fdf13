#include "tools/vgpud/resume-together.h"

namespace vgpu::daemon {

kj::Promise<kj::Array<Resumed>> resumeTogether(Sessions& sessions, std::vector<TreeMember> members,
                                               control::Progress::Client progress, std::vector<uint32_t> devices) {
  auto barrier = kj::refcounted<CommitBarrier>(members.size());
  auto group = kj::refcounted<SharingGroup>(members.size());
  auto all = kj::heapArrayBuilder<kj::Promise<Resumed>>(members.size());
  for (auto& member : members) {
    // evalNow: a resume that fails at once must not keep the others waiting.
    auto resumed = kj::evalNow([&] {
      return resume(sessions, member.directory, progress, devices, {},
                    {.copy = member.copy, .barrier = kj::addRef(*barrier), .group = kj::addRef(*group)});
    });
    all.add(resumed.catch_([&barrier = *barrier, &group = *group](kj::Exception&& exception) -> kj::Promise<Resumed> {
      barrier.fail(exception);
      group.fail(exception);
      return kj::mv(exception);
    }));
  }
  return kj::joinPromises(all.finish()).attach(kj::mv(barrier), kj::mv(group));
}

}  // namespace vgpu::daemon
