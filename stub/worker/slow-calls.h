// Calls that are slow by nature, such as compiling and loading a module, on a helper thread beside the GPU's thread, so that the ring goes
// on.
//
// A call has two parts. Its work makes the slow driver calls, on the helper thread in the GPU's context. Then its end runs on the GPU's
// thread, between two frames: it records what was made, and gives the reply. The calls run one at a time in the order in which they were
// added, and a call's work begins after the end of the call before it. So state that only such calls use (ModuleGroups, facts of an image)
// needs no lock.
//
// Belongs to the GPU's thread, or to the one that works while no calls are executed. The first call starts the helper thread; if the system
// refuses a thread, the call's work runs on the thread that begins it, and the next call tries again. `mutex` guards what the two threads
// share; only `wake` is called under it. At a barrier all calls have ended (Worker::quiesce), so a suspend keeps nothing of this.
#pragma once

#include <cuda.h>
#include <kj/exception.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace vgpu::stub {

class SlowCalls {
 public:
  using Work = std::function<CUresult()>;
  using End = std::function<void(CUresult)>;

  // `begin` runs first on the helper thread.
  explicit SlowCalls(std::function<void()> begin) : begin(std::move(begin)) {}
  // Waits for the work that is running; runs no other.
  ~SlowCalls();
  SlowCalls(const SlowCalls&) = delete;
  SlowCalls& operator=(const SlowCalls&) = delete;

  // `end` gets the work's result. An exception of the work is thrown by poll(). `name`: for messages to a person who waits.
  void add(Work work, End end, const char* name = "");
  // Runs `rest` after the calls that have been added: at once if all have ended.
  void afterAll(std::function<void()> rest);
  bool isEmpty() const { return calls.empty(); }
  // The name of the call that is running or next. There must be one.
  const char* first() const { return calls.front().name; }

  // Runs the end of a call whose work is done, and starts the next work.
  void poll();
  // Whether poll() would run an end. If not, `wake` is called when it would.
  bool isDue();
  // Waits for all calls, at most `limit`, and runs their ends. Whether none is left.
  bool finish(std::chrono::milliseconds limit);

  // `wake` is called on the helper thread when a work is done. Empty: nothing is called.
  void setWake(std::function<void()> wake);

 private:
  struct Call {
    Work work;  // empty: the call is only an end
    End end;
    const char* name = "";
  };
  void run();
  void runGiven(std::unique_lock<std::mutex>& lock, bool isFirst);
  void beginFirst();
  bool takeResult(CUresult& result);

  const std::function<void()> begin;
  std::deque<Call> calls;  // the first is running if `started`
  bool started = false;

  std::mutex mutex;
  std::condition_variable changed;
  const Work* given = nullptr;  // what the thread is to run next; null once it has taken it
  bool done = false, ending = false;
  CUresult result = CUDA_SUCCESS;
  kj::Maybe<kj::Exception> failure;
  std::function<void()> wake;
  std::thread thread;
};

}  // namespace vgpu::stub
