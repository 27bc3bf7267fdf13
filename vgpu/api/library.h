// Entries of libraries as data: what vgpu/api/cublas.table says of each, as the program's side and the worker's interpret it.
//
// All arguments of a call are words of eight bytes: numbers, handles, addresses. That is how the processor's calling convention
// passes them too (no entry takes a floating-point number or a structure by value: the generator refuses one), so a worker calls
// any entry by its words alone.
//
// An argument block is what a frame carries of a call: the words, then the bytes of the program's host memory that the entry
// reads. `hostMask` has a bit for each argument that points to host memory; its word is then a HostRange. What the entry writes
// there comes back in the reply, one piece after the other, each beginning at a multiple of 16 bytes.
//
// A frame names its entry by a digest of its signature, symbol and classes of its arguments, and carries the symbol: a snapshot's
// frames are never taken for another entry's, and one that this build does not have is refused by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace vgpu::api {

enum class Does : uint8_t {
  work,     // gives the GPU work
  query,    // gives it none, and changes nothing
  set,      // changes the object of its first argument
  create,   // makes an object
  destroy,  // ends the object of its first argument
  recall,   // is answered from what the client remembers of the first argument's object
};

enum class Argument : uint8_t {
  value,    // a number or an enumeration
  object,   // a handle of the library's
  made,     // where the handle of a new object goes
  place,    // memory of the program's that becomes an object
  stream,
  address,  // of device memory
  input,    // of memory that the entry reads: the host's if the pointer mode says so, else the device's
  output,   // the same, written
  update,   // the same, read and written
};
constexpr bool isRead(Argument argument) { return argument == Argument::input || argument == Argument::update; }
constexpr bool isWritten(Argument argument) { return argument == Argument::output || argument == Argument::update; }

enum class TypedBy : uint8_t {
  nothing,      // `bytes` is the size of an element
  dataType,     // a cudaDataType in another argument
  computeType,  // a cublasComputeType_t in another argument, and the data type of the result
  object,       // the scale type of another argument's object
};

// What the client remembers of an object.
enum class Member : uint8_t { pointerMode, scaleType, stream };
constexpr size_t memberCount = 3;

constexpr uint8_t noArgument = 0xff;

struct LibraryArgument {
  Argument what = Argument::value;
  uint8_t bytes = 8;              // of a value or an element
  TypedBy typedBy = TypedBy::nothing;
  uint8_t type = noArgument;      // which argument says the type
  uint8_t resultType = noArgument;
  uint8_t count = noArgument;     // which argument says how many elements there are
  uint8_t times = 1;              // how many there are otherwise
  uint8_t hostModes = 0xff;       // a bit for each pointer mode in which it is host memory
  uint8_t unusedModes = 0;        // in which the library does not look at it
  uint8_t objectType = 0;         // of an object: its place in objectTypes
};

// A member that a call sets, or bytes that are a handle, if another argument has a certain value.
struct LibraryNote {
  bool holdsObject = false;
  Member member = Member::pointerMode;
  uint8_t from = 0;               // which argument, the value itself or bytes of host memory
  uint8_t condition = noArgument;
  uint32_t value = 0;             // of the condition
  uint8_t objectType = 0;         // of the handle: its place in objectTypes
};

struct LibraryEntry {
  const char* symbol;
  uint64_t signature;
  uint8_t library;                // its place in `libraries`
  Does does;
  bool returnsStatus;             // else a number
  uint8_t modeObject;             // which argument's object remembers the pointer mode
  uint8_t streamFrom;             // which argument is the stream of its work; noArgument: the first argument's object remembers it
  uint8_t recalled;               // the member that is answered
  uint32_t keys;                  // of `set`: a bit for each argument that says what is set
  bool askedOnce;                 // of a query: its answer is that to every call like it
  std::span<const LibraryArgument> arguments;
  std::span<const LibraryNote> notes;
};

struct ObjectType {
  const char* name;
  bool busy;             // ends when the device has done its work
  uint8_t also;          // the type whose place it can take: its own, or another library's
  uint16_t inPlaceBytes;  // its handle is the address of so many bytes of the program's; 0: the virtual handle itself
};

// What a face returns itself.
struct LibraryStatus {
  int absent, memory, invalid, failed, internal, unsupported;
};

struct Library {
  const char* name;
  const char* soname;
};

extern const std::span<const LibraryEntry> libraryEntries;
extern const std::span<const ObjectType> objectTypes;
extern const std::span<const Library> libraries;
extern const LibraryStatus libraryStatus;

// The status of a reply if the GPU's host does not have the library; the results are then the reason, a text.
constexpr uint64_t libraryAbsent = ~uint64_t{0};

constexpr size_t maxLibraryArguments = 32;
constexpr uint64_t libraryResultAlignment = 16;

// Which argument of an entry that creates an object is the object.
size_t madeArgument(const LibraryEntry& entry);
// Whether the entry takes an object of type `given` where one of type `wanted` is expected. It ends only what it is for.
bool takes(const LibraryEntry& entry, uint8_t wanted, uint8_t given);

// nullptr if this build has none of that signature.
const LibraryEntry* findLibraryEntry(uint64_t signature);
// The entry that ends objects of that type; nullptr if there is none.
const LibraryEntry* findLibraryEnd(uint8_t type);

// Bytes of an element of a cudaDataType, at least one; of a compute type's scale, whose result is of `resultType`.
uint32_t bytesOfDataType(uint64_t type);
uint32_t bytesOfScale(uint64_t computeType, uint64_t resultType);

// How many bytes the argument `index` points to; `scaleType`: what its object remembers, if that says the type.
uint64_t pointedBytes(const LibraryEntry& entry, size_t index, std::span<const uint64_t> words, uint64_t scaleType);

// The word of an argument in host memory: where in the argument block its bytes begin (nowhere if it is only written), and how
// many they are.
struct HostRange {
  uint32_t offset = 0, bytes = 0;
  constexpr uint64_t word() const { return uint64_t{offset} << 32 | bytes; }
  static constexpr HostRange of(uint64_t word) { return {static_cast<uint32_t>(word >> 32), static_cast<uint32_t>(word)}; }
};

}  // namespace vgpu::api
