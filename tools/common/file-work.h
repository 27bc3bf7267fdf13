// Work that waits for a disk, off the event loop: each piece has a thread of its own, so that a folder that hangs (a network
// mount whose server is gone) delays only the caller that asked for it, and neither the loop nor the next piece.
//
// Owned and called by the event loop's thread; the last owner may also be a piece of its work. Work does not access the loop's objects: it
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
  // At most `mostThreads` pieces are done at once; others wait for one of these to end.
  explicit FileWork(unsigned mostThreads);
  // Work that has not begun is dropped. A thread that hangs is left: it cannot be ended.
  ~FileWork() noexcept;
  FileWork(const FileWork&) = delete;
  FileWork& operator=(const FileWork&) = delete;

  // Runs `work`, which returns nothing, or a value that another thread may make. The promise belongs to the caller's event loop;
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

  // The same of which nobody wants to know the end, and which throws nothing. Throws kj::Exception if no thread can be started.
  void add(kj::Function<void()> added);

 private:
  struct State;
  std::shared_ptr<State> state;  // shared with the threads: one that hangs outlives this object
};

}  // namespace vgpu
