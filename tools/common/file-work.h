// Runs work that waits for a disk off the event loop: each piece gets a thread of its own, so that a folder that hangs (a network mount
// whose server is gone) delays only the caller that needs it, and neither the loop nor other work.
// Owned and called by the event loop's thread; the last owner may also be a piece of its work. Work must not access the loop's objects: it
// captures values.
#pragma once

#include <kj/async.h>
#include <kj/function.h>

#include <memory>
#include <type_traits>

#include "tools/common/cross-thread.h"

namespace vgpu {

class FileWork {
 public:
  // At most `mostThreads` pieces run at the same time; others wait for one of them to end.
  explicit FileWork(unsigned mostThreads);
  // Work that has not begun is dropped. A thread that hangs is left alone, because it cannot be ended.
  ~FileWork() noexcept;
  FileWork(const FileWork&) = delete;
  FileWork& operator=(const FileWork&) = delete;

  // Runs `work`, which returns nothing, or a value that may be made on another thread. The promise belongs to the caller's event loop;
  // dropping it does not stop the work. Rejects if `work` throws, or if no thread can be started.
  template <typename Work>
  auto run(Work work) -> kj::Promise<decltype(work())> {
    if constexpr (std::is_void_v<decltype(work())>) {
      struct Done {};
      auto done = [work = kj::mv(work)]() mutable {
        work();
        return Done{};
      };
      return run(kj::mv(done)).ignoreResult();
    } else {
      return kj::evalNow([&] {
        auto [job, result] = crossThread(kj::mv(work));
        add(kj::mv(job));
        return kj::mv(result);
      });
    }
  }

  // The same for work that throws nothing and whose end does not matter. Throws kj::Exception if no thread can be started.
  void add(kj::Function<void()> added);

 private:
  struct State;
  std::shared_ptr<State> state;  // shared with the threads, because a thread that hangs outlives this object
};

}  // namespace vgpu
