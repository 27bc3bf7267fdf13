// What must wait for a disk, off the event loop: each piece of work has a thread of its own, so that a folder that hangs
// (a network mount whose server is gone) holds up whoever asked for it, and neither the loop nor the next piece.
//
// Owned and called by the event loop's thread. Work sees nothing of the loop's: it captures values.
#pragma once

#include <kj/async.h>
#include <kj/function.h>

#include <memory>

namespace vgpu {

class FileWork {
 public:
  // At most `mostThreads` pieces are done at once; others wait for one of these to end.
  explicit FileWork(unsigned mostThreads);
  // What has not begun is not done. What hangs is left to hang: nobody can end it.
  ~FileWork() noexcept;
  FileWork(const FileWork&) = delete;
  FileWork& operator=(const FileWork&) = delete;

  // Runs `work`, which returns a value that another thread may make. The promise belongs to the caller's event loop;
  // dropping it does not stop the work. Rejects where `work` throws, or where no thread can be started.
  template <typename Work>
  auto run(Work work) -> kj::Promise<decltype(work())> {
    auto pair = kj::newPromiseAndCrossThreadFulfiller<decltype(work())>();
    return kj::evalNow([&] {
      add([work = kj::mv(work), fulfiller = kj::mv(pair.fulfiller)]() mutable {
        fulfiller->rejectIfThrows([&] { fulfiller->fulfill(work()); });
      });
      return kj::mv(pair.promise);
    });
  }

 private:
  struct State;
  void add(kj::Function<void()> added);

  std::shared_ptr<State> state;  // the threads' too: one that hangs outlives us
};

}  // namespace vgpu
