// A thread's current context and default stream outlive the program's destructors at the thread's end: of thread-local objects and of
// pthread keys. In a thread that calls exit() they outlive the atexit handlers; if a host function calls exit(), CUDA calls stay forbidden.
#include <pthread.h>
#include <sys/wait.h>

#include <future>
#include <thread>

#include "driver-entry.h"

namespace {

// The state that a destructor expects at the thread's end. The destructor was registered before the thread's first CUDA call.
struct Ended {
  CUcontext context = nullptr;
  bool isHeld = false;  // whether work waits in the thread's default stream

  bool isKept() const {
    CUcontext current = nullptr;
    CALL(cuCtxGetCurrent, &current);
    return EXPECT(current == context) & EXPECT((DRIVER(cuStreamQuery)(CU_STREAM_PER_THREAD) == CUDA_ERROR_NOT_READY) == isHeld);
  }
};

std::atomic<bool> ok{true};

struct OfThread : Ended {
  ~OfThread() {
    if (context != nullptr && !isKept()) ok = false;
  }
};
thread_local OfThread ofThread;

struct OfKey : Ended {
  std::promise<void> opened;

  void end() {
    if (!isKept()) ok = false;
    opened.set_value();
    if (!EXPECT(DRIVER(cuStreamSynchronize)(CU_STREAM_PER_THREAD) == CUDA_SUCCESS)) ok = false;
  }
};

CUcontext newContext() {
  CUcontext made = nullptr;
  CALL(cuCtxCreate, &made, nullptr, 0, 0);
  return made;
}

bool outlivesDestructors() {
  pthread_key_t key;
  if (pthread_key_create(&key, [](void* of) { static_cast<OfKey*>(of)->end(); }) != 0) return false;
  OfKey ofKey;
  auto opened = ofKey.opened.get_future();
  std::thread([&] {
    ofThread.isHeld = ofKey.isHeld = true;
    pthread_setspecific(key, &ofKey);
    ofThread.context = ofKey.context = newContext();
    CHECK(cudaLaunchHostFunc(cudaStreamPerThread, [](void* when) { static_cast<std::future<void>*>(when)->wait(); }, &opened));
  }).join();
  return ok;
}

Ended exiting;

void exitInThread() {
  std::thread([] {
    exiting.context = newContext();
    std::atexit([] { _exit(exiting.isKept() ? 0 : 1); });
    std::exit(2);
  }).join();
}

void exitInHostFunction() {
  std::atexit([] {
    void* memory = nullptr;
    _exit(EXPECT_ERROR(cudaMalloc(&memory, 16), cudaErrorNotPermitted) ? 0 : 1);
  });
  CHECK(cudaLaunchHostFunc(nullptr, [](void*) { std::exit(2); }, nullptr));
  CHECK(cudaDeviceSynchronize());
}

// Whether this program, run in a new process with the argument `how`, exits with 0.
bool endsWell(const char* how) {
  const pid_t child = fork();
  if (child == 0) {
    execl("/proc/self/exe", "thread-ends", how, nullptr);
    _exit(3);
  }
  int status = 1;
  return waitpid(child, &status, 0) == child && status == 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "";
  if (how == "thread") exitInThread();
  if (how == "function") exitInHostFunction();
  if (!how.empty()) return 4;
  return verdict("thread-ends", EXPECT(outlivesDestructors()) & EXPECT(endsWell("thread")) & EXPECT(endsWell("function")));
}
