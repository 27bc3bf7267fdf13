// What a snapshot store requires of its file system, and checks for it.
//
// Several processes of one host use a store at the same time. They rely on open file description locks, on pages of the index that all of
// them map, and on atomic renames. A network file system guarantees none of these between hosts, and LMDB asks for a local one (its manual:
// "Do not use LMDB databases on remote filesystems"). Does file I/O; any thread.
#pragma once

#include <cstdint>
#include <string>

namespace vgpu {

// Why a file system of this type (statfs(2), f_type) cannot hold a store, as a message; empty if the type is acceptable.
std::string unfitType(uint64_t type);

// The same for the file system of `folder`, which must exist; also if its renames, mappings or holes do not work. Makes a temporary file
// there.
std::string unfitFileSystem(const std::string& folder);

// Why `folder`, which need not exist yet, cannot hold a store: also if it is not private to us or cannot be written. For callers that want
// to report this before the store is needed; leaves nothing behind.
std::string unfitPlace(const std::string& folder);

}  // namespace vgpu
