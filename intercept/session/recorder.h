// Feeds the object list: the threads that make objects queue their building frames here, and one thread writes them to LMDB in batches, at
// most 100 ms later. The queue is bounded: a program that makes objects faster than the disk takes them waits. An error (disk full, or the
// list at its limit) does not stop the program; it is printed once, and a suspend is refused until the list is written.
//
// Lock order: `mutex` is a leaf lock. Only the recorder's thread accesses the list, except in flush(), which waits for it, and in leave()
// and enter(), while that thread is idle.
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
  // Starts the thread. The list is created in `directory`; `executed` returns how far the worker has executed each ring, which tells the
  // list which destroyed objects it may drop. Throws kj::Exception.
  Recorder(const std::string& directory, std::function<RingCut()> executed);
  // Takes a list that is already open.
  Recorder(std::unique_ptr<ObjectList> list, std::function<RingCut()> executed);

  // Queues a frame that has been or will be executed. Any thread inside the gate. Cannot fail. Waits while `mostQueuedBytes` are queued.
  static constexpr size_t mostQueuedBytes = size_t{16} << 20;
  void add(const FrameFacts& facts, kj::ArrayPtr<const capnp::word> words);

  // Returns true when everything queued is committed, false if `givesUp`, polled between waits, returns true before that (a disk that
  // hangs). Throws kj::Exception if the commit fails (a full disk). Nothing is lost then: the next flush tries again.
  bool flush(const std::function<bool()>& givesUp);

  // leave() closes the list's file; enter() writes the whole list into another file in `directory`. Call after flush(); no thread may be
  // inside the gate until enter() has returned. enter() throws kj::Exception if the file cannot be written, and may be called again.
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
  bool hasReported = false;              // whether it was printed that commits fail; recorder's thread only
  std::thread thread;
};

}  // namespace vgpu::client
