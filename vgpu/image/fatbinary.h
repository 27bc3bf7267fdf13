// A fatbinary as a program contains it: members, each PTX or machine code for one architecture, stored plain or compressed.
// docs/fatbinary.md describes the format. The bytes are not trusted; problems are returned, never thrown.
#pragma once

#include <optional>
#include <string>

#include "vgpu/image/bytes.h"

namespace vgpu::image {

constexpr uint32_t wrapperMagic = 0x466243b1, containerMagic = 0xba55ed50;

// The wrapper in a program's data, as nvcc lays it out (fatbinary_section.h, __fatBinC_Wrapper_t).
struct FatbinaryWrapper {
  uint32_t magic;
  uint32_t version;  // 1: one image; 2: linked from relocatable parts
  const void* image;
  void* parts;  // version 2: the parts, terminated by a null pointer
};

enum MemberKind : uint16_t { ptx = 1, machineCode = 2 };  // other kinds exist, which only drivers use
enum MemberFlag : uint64_t { lz4 = 0x2000, zstd = 0x8000, architectureSpecific = 0x100000, familySpecific = 0x200000 };

struct Member {
  uint64_t at;            // offset of its header in the fatbinary
  uint16_t kind;          // a MemberKind, or an unknown one
  uint32_t architecture;  // 75 for compute_75
  uint64_t flags;         // MemberFlag
  Bytes payload;          // as stored, without padding if it is compressed
  uint64_t plainBytes;    // the decompressed size, at most mostPlainBytes; for a plain member the payload's size

  bool isCompressed() const { return (flags & (lz4 | zstd)) != 0; }
};

inline bool isFatbinary(Bytes bytes) {
  return bytes.size() >= sizeof containerMagic && read<uint32_t>(bytes, 0) == containerMagic;
}

// Iterates over the members. Each member lies completely inside the bytes.
class Fatbinary {
 public:
  // `bytes` may extend beyond the size in the fatbinary's header. They must outlive this object and its members.
  explicit Fatbinary(Bytes bytes);

  // The next member in file order. Returns nothing after the last one, or after a problem.
  std::optional<Member> next();
  // The problem found so far and its offset; empty if there is none.
  const std::string& problem() const { return problem_; }

 private:
  std::string readMember(Member& member) const;

  Bytes container_;
  uint64_t at_ = 0;  // of the next member
  std::string problem_;
};

// The member's content: its payload, or the payload decompressed into `room`, which must outlive the result. Returns nothing if it does not
// decompress to the size in its header; an impossible size is rejected before `room` is allocated.
std::optional<std::string_view> contentOf(const Member& member, std::string& room);

}  // namespace vgpu::image
