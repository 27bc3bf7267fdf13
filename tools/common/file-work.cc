#include "tools/common/file-work.h"

#include <deque>
#include <mutex>
#include <system_error>
#include <thread>

#include "vgpu/base/fail.h"

namespace vgpu {

struct FileWork::State {
  const unsigned mostThreads;
  std::mutex mutex;  // guards the members below; a leaf
  std::deque<kj::Function<void()>> waiting;
  unsigned threads = 0;
  bool ending = false;
};

namespace {

// The next piece of work for a free thread; if there is none, the thread ends.
template <typename State>
kj::Maybe<kj::Function<void()>> next(State& state) {
  std::lock_guard lock(state.mutex);
  if (state.ending || state.waiting.empty()) {
    --state.threads;
    return nullptr;
  }
  kj::Function<void()> job = kj::mv(state.waiting.front());
  state.waiting.pop_front();
  return kj::mv(job);
}

}  // namespace

FileWork::FileWork(unsigned mostThreads) : state(std::make_shared<State>(mostThreads)) {}

FileWork::~FileWork() noexcept {
  std::deque<kj::Function<void()>> dropped;  // destroyed without holding the lock
  std::lock_guard lock(state->mutex);
  state->ending = true;
  dropped.swap(state->waiting);
}

void FileWork::add(kj::Function<void()> added) {
  std::lock_guard lock(state->mutex);
  state->waiting.push_back(kj::mv(added));
  if (state->threads == state->mostThreads) return;
  try {
    std::thread([state = state] {
      while (true) {
        KJ_IF_MAYBE (job, next(*state)) {
          (*job)();
        } else {
          return;
        }
      }
    }).detach();
    ++state->threads;
  } catch (const std::system_error& error) {
    if (state->threads > 0) return;  // one of the running threads will take it
    state->waiting.pop_back();
    fail(std::string("cannot start a thread for work on files: ") + error.what());
  }
}

}  // namespace vgpu
