// What a store of snapshots needs of its file system, and whether one has it.
//
// Several processes of one host use a store at a time: by open file description locks, by pages of its index that all have
// mapped, and by names that come at once or not at all. A network file system keeps none of these promises between hosts, and
// LMDB asks for a local one (its manual: "Do not use LMDB databases on remote filesystems"). Work on files; any thread.
#pragma once

#include <cstdint>
#include <string>

namespace vgpu {

// Why there can be no store on a file system of this type (statfs(2), f_type), for a person; empty if its type says nothing
// against it.
std::string unfitType(uint64_t type);

// The same of the one that `folder`, which is there, is on; and of one whose names, mappings or holes do not work. Makes a file
// there for a moment.
std::string unfitFileSystem(const std::string& folder);

// Why there can be no store in `folder`, which need not be there yet: also of one that is not ours alone, or cannot be written.
// For who wants to say so before anybody needs the store; makes nothing that stays.
std::string unfitPlace(const std::string& folder);

}  // namespace vgpu
