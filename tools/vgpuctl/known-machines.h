// The virtual machines whose sessions libvirt's hook moves: in ~/.config/vgpu/machines (VGPU_MACHINES names another file), one line per
// machine:
//
//   NAME NODE TARGET QMP [SAVES]   # libvirt's name; the node of this host, and that of the host to which it moves; the socket of a QMP
//                                  # monitor; a folder for its sessions when libvirt saves it
//
// Empty lines, and text after a '#', are ignored. An invalid line affects only the machine whose name it begins with, because the hook is
// called for all machines of the host.
#pragma once

#include <optional>
#include <string>

namespace vgpu::ctl {

struct KnownMachine {
  std::string list;  // the list's file
  std::string name, node, target, monitor;
  std::string saves;  // empty: it cannot be saved with sessions
};

// Nothing if it is not listed, or there is no list. Throws kj::Exception, naming the line, if its own line is invalid.
std::optional<KnownMachine> findKnownMachine(const std::string& name);

}  // namespace vgpu::ctl
