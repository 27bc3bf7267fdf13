// Files of this program whose memory its session's workers map too: memory of the host that it shares with other processes
// (docs/ipc.md). The daemon has a descriptor of each by a name of 16 bytes, which frames have.
//
// A thread that gives a file waits until the control thread has sent it, in the order in which files were given and taken back; while
// the session is suspended or on its way to another daemon that is later. The files stay in the program over a suspend, and are given
// to the daemon that resumes it before its worker is rebuilt.
//
// Owns a descriptor of each file. `mutex` is a leaf.
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

// The same object for every descriptor of one file that gives the same access. Whoever lets go of it last takes the file back.
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
  // fork() copies the descriptors first and the memory then: what was given between the two is not open in the child.
  void close();

  GivenFiles& files;
  int descriptor;
};

class GivenFiles {
 public:
  using File = std::shared_ptr<GivenFile>;

  // Any thread, outside the gate. Nothing if the session is lost, it is no file, there are as many as a daemon keeps, or it is closed.
  File give(kj::AutoCloseFd file);
  // Whether there is any: the session's memory cannot leave this host then.
  bool isEmpty() const;
  // The session leaves this host: if there is no file, there will be none. Whether it is so.
  bool close();
  bool isClosed() const;

  // The rest is the control thread's. Readable from when a file is given or taken back until takeChanges() is called.
  int fd() const { return wish.fd(); }
  std::vector<File> all() const;
  // What the daemon has not been told yet; without a file: it is taken back.
  struct Change {
    SharedName name;
    File file;
  };
  std::vector<Change> takeChanges();
  // It has been told all that was taken.
  void setTold();
  // No daemon will be told anything any more.
  void lose();
  // In a child made by fork(): closes its copies. Async-signal-safe.
  void leave();

 private:
  friend class GivenFile;
  // The mutex is held; it is not when the living ones are let go of.
  bool areAllEnded() const;
  std::vector<File> living() const;
  void takeBack(const GivenFile& file);

  const pid_t process = getpid();
  EventDescriptor wish;
  mutable std::mutex mutex;
  std::condition_variable told;
  std::vector<std::weak_ptr<GivenFile>> files;
  std::vector<Change> changes;
  uint32_t held = 0;                            // by the daemon, when it has been told all changes
  uint64_t given = 0, taken = 0, tellings = 0;  // changes: that there have been, that were taken, that the daemon was told
  bool isLost = false, hasLeft = false;
};

}  // namespace vgpu::client
