// The virtual machines whose sessions libvirt's hook moves: in ~/.config/vgpu/machines (VGPU_MACHINES names another file), a
// machine a line,
//
//   NAME NODE TARGET QMP [SAVES]   # libvirt's name; the nodes of this host and of the one that it goes to; a monitor's socket; a
//   folder
//                                  # for its sessions when libvirt saves it
//
// Empty lines, and what follows a '#', do not count. A line that is wrong concerns the machine that it begins with alone: the
// hook is asked about all machines of the host.
#pragma once

#include <optional>
#include <string>

namespace vgpu::ctl {

struct KnownMachine {
  std::string list;  // the file that names it
  std::string name, node, target, monitor;
  std::string saves;  // empty: it is not saved with sessions
};

// Nothing if it is not listed, or there is no such file. Throws kj::Exception, naming the line, if one of its own is wrong.
std::optional<KnownMachine> findKnownMachine(const std::string& name);

}  // namespace vgpu::ctl
