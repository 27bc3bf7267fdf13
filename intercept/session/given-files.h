// Files of this program that its session's workers map too: host memory that the program shares with other processes (docs/ipc.md). The
// daemon holds a descriptor of each under a 16-byte name, by which frames refer to it.
//
// A thread that gives a file waits until the control thread has sent it; files given and taken back are sent in order. While the session is
// suspended or moving to another daemon, sending is delayed. The files stay in the program over a suspend, and are given to the daemon that
// resumes the session before its worker is rebuilt.
//
// Owns a descriptor of each file. `mutex` is a leaf lock.
#pragma once

#include <kj/io.h>
#include <unistd.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "intercept/session/event-descriptor.h"
#include "intercept/session/shared-name.h"

namespace vgpu::client {

class GivenFiles;

// One object for all descriptors of one file with the same access mode. Releasing the last reference takes the file back.
class GivenFile {
 public:
  ~GivenFile();
  GivenFile(const GivenFile&) = delete;
  GivenFile& operator=(const GivenFile&) = delete;

  const SharedName name;
  int fd() const { return descriptor; }

 private:
  friend class GivenFiles;
  GivenFile(GivenFiles& files, const SharedName& name, int descriptor) : name(name), files(files), descriptor(descriptor) {}
  // fork() copies descriptors before memory: a file given in between is not open in the child.
  void close();

  GivenFiles& files;
  int descriptor;
};

class GivenFiles {
 public:
  using File = std::shared_ptr<GivenFile>;

  // Any thread, outside the gate. Nothing if the session is lost, `file` is no file, the daemon is at its limit, or after close().
  File give(kj::AutoCloseFd file);
  // Whether there is none. If there is one, the session's memory cannot leave this host.
  bool isEmpty() const;
  // The session leaves this host: if there is no file now, none will be accepted. Returns whether that is so.
  bool close();
  bool isClosed() const;

  // The rest is for the control thread. The descriptor is readable from when a file is given or taken back until takeChanges().
  int fd() const { return wish.fd(); }
  std::vector<File> all() const;
  // A change that the daemon has not been told yet; without `file`: the file was taken back.
  struct Change {
    SharedName name;
    File file;
  };
  std::vector<Change> takeChanges();
  // The daemon has been told all changes taken so far.
  void setTold();
  // No daemon will be told anything any more.
  void lose();
  // In a forked child: closes its copies. Async-signal-safe.
  void leave();

 private:
  friend class GivenFile;
  // Called with the mutex held; the references of living() must be released without it.
  bool areAllEnded() const;
  std::vector<File> living() const;
  void takeBack(const GivenFile& file);

  const pid_t process = getpid();
  EventDescriptor wish;
  mutable std::mutex mutex;
  std::condition_variable told;
  std::vector<std::weak_ptr<GivenFile>> files;
  std::vector<Change> changes;
  uint32_t held = 0;                            // by the daemon, once it has been told all changes
  uint64_t given = 0, taken = 0, tellings = 0;  // counts of changes: made, taken, told to the daemon
  bool isLost = false, hasLeft = false;
};

}  // namespace vgpu::client
