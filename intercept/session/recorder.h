// Feeds the object list: frames that build objects are queued here by the threads that made them, and written to LMDB by one
// thread in batches, at most 100 ms behind. A program that makes objects faster than the disk takes them waits: the queue is
// bounded. An error (disk full, or the list at its limit) does not stop the program; it is printed once, and a suspend is refused
// until the list is written.
//
// Lock order: `mutex` is a leaf; the list is touched by the recorder's thread alone, except in flush(), which waits for it, and
// in leave() and enter(), while that thread has nothing to do.
#pragma once

#include <kj/exception.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "intercept/session/record-queue.h"
#include "vgpu/objects/object-list.h"

namespace vgpu::client {

class Recorder {
 public:
  // Starts the thread. The list is made in `directory`; `executed` returns up to where the worker has executed
  // frames, from which the list knows which destroyed objects it may drop. Throws kj::Exception.
  Recorder(const std::string& directory, std::function<RingCut()> executed);
  // Takes a list that is open already.
  Recorder(std::unique_ptr<ObjectList> list, std::function<RingCut()> executed);

  // A frame that is executed, or will be. Any thread that is inside the gate. Cannot fail. Waits while `mostQueuedBytes` are queued.
  static constexpr size_t mostQueuedBytes = size_t{16} << 20;
  void add(const FrameFacts& facts, kj::ArrayPtr<const capnp::word> words);

  // Returns true when everything queued is committed, false if `givesUp`, polled between waits, returns true before (a disk that
  // hangs). Throws kj::Exception if the commit fails (a full disk). Nothing is lost then: the next flush tries again.
  bool flush(const std::function<bool()>& givesUp);

  // Closes the list's file, and writes all of the list into another one in `directory`. After flush(), with no thread inside the
  // gate until enter() has returned, which throws kj::Exception if the file cannot be written, and may be called again.
  void leave();
  void enter(const std::string& directory);

 private:
  void write();
  void tell(const kj::Exception& exception);

  std::unique_ptr<ObjectList> list;
  std::function<RingCut()> executed;
  std::mutex mutex;
  std::condition_variable changed;
  bool isFull() const { return queue.bytes() >= mostQueuedBytes; }

  RecordQueue queue{mostQueuedBytes};
  uint64_t added = 0, committed = 0, flushWanted = 0;
  kj::Maybe<kj::Exception> failure;  // of the last commit
  bool hasReported = false;              // to the program's user, that commits fail; the recorder's thread only
  std::thread thread;
};

}  // namespace vgpu::client
