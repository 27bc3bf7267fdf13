// Library entries as data: the contents of vgpu/api/cublas.table, as interpreted by the program's side and the worker.
//
// All arguments of a call are words of eight bytes: numbers, handles, addresses. The processor's calling convention passes them the same
// way (no entry takes a floating-point number or a structure by value: the generator refuses such an entry), so a worker can call any entry
// given only its words.
//
// A frame carries a call as an argument block: the words, then the bytes of the program's host memory that the entry reads. `hostMask` has
// a bit for each argument that points to host memory; its word is then a HostRange. What the entry writes to host memory is returned in the
// reply, one piece after the other, each at a multiple of 16 bytes.
//
// A frame identifies its entry by a signature, the digest of the symbol and its arguments' classes, and also carries the symbol: a
// snapshot's frames are never taken for another entry's, and an entry that this build lacks is refused by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace vgpu::api {

enum class Does : uint8_t {
  work,     // adds work to the GPU
  query,    // adds none, and changes nothing
  set,      // changes the object in its first argument
  create,   // makes an object
  destroy,  // destroys the object in its first argument
  recall,   // answered by the client from what it remembers of the first argument's object
};

enum class Argument : uint8_t {
  value,    // a number or an enumeration
  object,   // a handle of the library
  made,     // receives the handle of a new object
  place,    // memory of the program that becomes an object
  stream,
  address,  // of device memory
  input,    // memory that the entry reads: host memory if the pointer mode says so, else device memory
  output,   // the same, for memory that the entry writes
  update,   // the same, for memory that the entry reads and writes
};
constexpr bool isRead(Argument argument) { return argument == Argument::input || argument == Argument::update; }
constexpr bool isWritten(Argument argument) { return argument == Argument::output || argument == Argument::update; }

enum class TypedBy : uint8_t {
  nothing,      // `bytes` is the size of an element
  dataType,     // a cudaDataType in another argument
  computeType,  // a cublasComputeType_t in another argument, and the data type of the result
  object,       // the scale type of another argument's object
};

// What the client remembers of a library object.
enum class Member : uint8_t { pointerMode, scaleType, stream };
constexpr size_t memberCount = 3;

constexpr uint8_t noArgument = 0xff;

struct LibraryArgument {
  Argument what = Argument::value;
  uint8_t bytes = 8;              // of a value or an element
  TypedBy typedBy = TypedBy::nothing;
  uint8_t type = noArgument;      // index of the argument that gives the type
  uint8_t resultType = noArgument;
  uint8_t count = noArgument;     // index of the argument that gives the number of elements
  uint8_t times = 1;              // the number of elements otherwise
  uint8_t hostModes = 0xff;       // a bit for each pointer mode in which it is host memory
  uint8_t unusedModes = 0;        // a bit for each mode in which the library ignores it
  uint8_t objectType = 0;         // for an object: its index in objectTypes
};

// A property that a call sets, or bytes that hold a handle, if another argument has a certain value.
struct LibraryNote {
  bool holdsObject = false;
  Member member = Member::pointerMode;
  uint8_t from = 0;               // index of the argument: the value itself, or bytes of host memory
  uint8_t condition = noArgument;
  uint32_t value = 0;             // for the condition
  uint8_t objectType = 0;         // for the handle: its index in objectTypes
};

struct LibraryEntry {
  const char* symbol;
  uint64_t signature;
  uint8_t library;                // index in `libraries`
  Does does;
  bool returnsStatus;             // else it returns a number
  uint8_t modeObject;             // index of the argument whose object remembers the pointer mode
  uint8_t streamFrom;             // index of the argument that is its work's stream; noArgument: the first argument's object remembers it
  uint8_t recalled;               // for `recall`: the property that is returned
  uint32_t keys;                  // for `set`: a bit for each argument that selects the property
  bool askedOnce;                 // for a query: the first answer holds for every equal call
  std::span<const LibraryArgument> arguments;
  std::span<const LibraryNote> notes;
};

struct ObjectType {
  const char* name;
  bool busy;             // can be destroyed only when the device has finished its work
  uint8_t also;          // another type as which it is accepted (possibly of another library), or its own
  uint16_t inPlaceBytes;  // its handle is the address of so many bytes in the program's memory; 0: its handle is the virtual handle
};

// Status codes that a face itself returns.
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

// The status in a reply if the GPU's host lacks the library; the results then hold the reason as text.
constexpr uint64_t libraryAbsent = ~uint64_t{0};

constexpr size_t maxLibraryArguments = 32;
constexpr uint64_t libraryResultAlignment = 16;

// The index of the argument that receives the new object, for an entry that creates one.
size_t madeArgument(const LibraryEntry& entry);
// Whether the entry accepts an object of type `given` for one of type `wanted`. An entry that destroys accepts only its own type.
bool takes(const LibraryEntry& entry, uint8_t wanted, uint8_t given);

// nullptr if this build has no entry with that signature.
const LibraryEntry* findLibraryEntry(uint64_t signature);
// The entry that destroys objects of that type; nullptr if there is none.
const LibraryEntry* findLibraryEnd(uint8_t type);

// The element size of a cudaDataType, at least one byte; the size of the scale of a compute type with results of `resultType`.
uint32_t bytesOfDataType(uint64_t type);
uint32_t bytesOfScale(uint64_t computeType, uint64_t resultType);

// How many bytes the argument `index` points to; `scaleType`: the object's remembered scale type, if that determines the element type.
uint64_t pointedBytes(const LibraryEntry& entry, size_t index, std::span<const uint64_t> words, uint64_t scaleType);

// The word of an argument in host memory: the offset of its bytes in the argument block (unused if the entry only writes it), and their
// number.
struct HostRange {
  uint32_t offset = 0, bytes = 0;
  constexpr uint64_t word() const { return uint64_t{offset} << 32 | bytes; }
  static constexpr HostRange of(uint64_t word) { return {static_cast<uint32_t>(word >> 32), static_cast<uint32_t>(word)}; }
};

}  // namespace vgpu::api
