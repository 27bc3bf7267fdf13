// A virtual machine on disk, with the sessions of its programs: everything needed to continue it, on this host or another one.
//
//   FOLDER/machine         as QEMU's `migrate` writes it
//   FOLDER/ID/             each session's snapshot; for sessions that share memory with the machine also their pinned memory (host-arena)
//   FOLDER/sessions.json   written last: {"version": 2, "machine": NAME, "memory": {"bytes", "xxh3"} of FOLDER/machine, if that exists,
//                          "sessions": [{"session", "name", "program", "pid"}]}; for sessions that share memory with the machine also their
//                          place there: guest, slot, claim, fileBytes
#pragma once

#include <exception>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/vgpuctl/machine.h"

namespace vgpu::ctl {

class MachineFolder {
 public:
  explicit MachineFolder(const std::string& path);  // a relative path is made absolute

  // Throws kj::Exception if the folder exists.
  void make() const;
  void remove() const noexcept;
  // Call it when the machine is saved, and each of `sessions` is suspended to its snapshotOf(). Returns when everything is on disk.
  void complete(const std::string& machine, const std::vector<MachineSession>& sessions) const;
  // The sessions that complete() was called with. Throws kj::Exception if there is no such folder, or if it is incomplete.
  std::vector<MachineSession> sessions() const;
  // Reads the machine's memory. Throws kj::Exception that names the failed check, unless the memory is unchanged.
  void verifyMemory() const;

  const std::string& path() const { return folder; }
  std::string snapshotOf(const std::string& session) const { return folder + "/" + session; }
  // Where QEMU is to write the machine to, or read it from, in the syntax of `migrate` and `migrate-incoming`.
  std::string writing(MachineMonitor& monitor) const;
  std::string reading(MachineMonitor& monitor) const;

 private:
  nlohmann::json list() const;
  [[noreturn]] void isDamaged(const std::exception& error) const;

  const std::string folder;
};

}  // namespace vgpu::ctl
