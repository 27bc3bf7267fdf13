// A library's table (vgpu/api/cuda.table) as plain values, for the emitters. The head of that file describes the grammar.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "types.h"

namespace vgpu::generator {

enum class Route { post, call, signal, recall, alias, local, forbid };
enum class Replay { query, build, work };
enum class Effect { none, creates, uses, changes, destroys };
constexpr const char *routeNames[] = {"post", "call", "signal", "recall", "alias", "local", "forbid"},
                     *replayNames[] = {"query", "build", "work"},
                     *effectNames[] = {"none", "creates", "uses", "changes", "destroys"};
constexpr const char* nameOf(Route route) { return routeNames[static_cast<size_t>(route)]; }
constexpr const char* nameOf(Replay replay) { return replayNames[static_cast<size_t>(replay)]; }
constexpr const char* nameOf(Effect effect) { return effectNames[static_cast<size_t>(effect)]; }

struct Field {
  std::string name;  // destination
  Type type = Type::u64;
  Type element = Type::u64;  // for a list
  uint32_t place = 0;        // for a number: the offset in the structure, in bytes (boolean: in bits); else the pointer's index
  Effect effect = Effect::none;
  std::string kind;  // the object's kind, if there is an effect
  bool parent = false, nullable = false;
  // For a Data list that is a parameter, or of described elements (vgpu/api/described.h).
  std::string elementType;  // as the header spells it: CUmemAccessDesc
  std::string count;        // the parameter with the number of elements; empty: one element, or as an explicit frame has it
  bool optional = false;    // the program may pass null

  std::string accessor() const;  // Destination, as in getDestination
  bool isNumber() const { return type <= Type::place; }
  // Whether it is a list of handles.
  bool isHandles() const { return (type == Type::list || type == Type::described) && effect != Effect::none; }
};

struct Structure {
  std::vector<Field> fields;  // in the table's order
  unsigned dataWords = 0, pointers = 0;

  const Field* find(const std::string& name) const;
};

struct Parameter {
  std::string type, name;  // as in the header

  bool isPointer() const { return type.back() == '*'; }
  bool isConstPointer() const { return isPointer() && type.starts_with("const "); }
  // For a pointer, the type that it points to, without const; else its type.
  std::string pointee() const;
};

// A part of a row behind its route, delimited by semicolons, as words.
using Clause = std::vector<std::string>;

struct Row {
  unsigned line = 0;
  // From the header; empty for a frame of the session's own.
  std::string symbol;
  unsigned since = 0;   // CUDA version: 12040 is 12.4
  std::string flavour;  // "ptsz" or "ptds" if there is a variant for per-thread default streams
  std::vector<Parameter> parameters;
  // Our additions; an entry without a route is not supported.
  std::optional<Route> route;
  std::string reason;  // for local and forbid
  std::string clientByHand, workerByHand;
  std::string level;       // for recall: the state that the call needs
  std::string alias;       // the call that it forwards to, or its client half, as C++
  bool byClauses = false;  // the client half is generated as for recall, although there is a frame
  std::vector<Clause> clauses;
  // About the frame.
  unsigned number = 0;
  Replay replay = Replay::query;
  bool noWork = false;
  std::string name;    // streamCreate
  std::string sameAs;  // the earlier row that has the frame and worker half of this one; empty if it has its own
  Structure frame, results;

  bool onWire() const { return route && *route <= Route::signal; }
  bool clientGenerated() const { return route && !symbol.empty() && *route <= Route::alias && clientByHand.empty(); }
  bool workerGenerated() const { return onWire() && workerByHand.empty(); }
  // Whether sessions have the entry.
  bool isSupported() const { return route && !symbol.empty() && *route != Route::forbid; }
  // The names of the frame and of the worker's function: StreamCreate, streamCreate.
  std::string typeName() const;
  const std::string& halfName() const { return sameAs.empty() ? name : sameAs; }
  const Parameter* findParameter(const std::string& name) const;
  // The clauses that begin with `word`.
  std::vector<Clause> find(const std::string& word) const;
};

struct Kind {
  std::string name;     // hostMemory
  unsigned number = 0;  // the handle's first byte
  std::string type;     // the type of the program's handle: CUstream; empty if the rows name the kind themselves
  bool nullable = false;
  bool inContext = false;          // destroyed with its device's context
  std::string state, stateHeader;  // of the client (intercept/session/kinds/); empty if it keeps only a head
  std::string spares, spareBy;     // the pool of destroyed objects for reuse, and the member that is its key; empty if none
  std::string ends;                // what the client calls for an object that is destroyed with its context; empty if nothing
  std::string destroyer;           // the entry that destroys one; empty if a module of the worker does
};

struct Table {
  VendorTypes types;
  std::map<std::string, std::vector<Clause>> descriptors;  // for structures, by their first names
  std::vector<Kind> kinds;                                 // by number
  std::vector<std::string> modules;                        // of the worker, in the order in which a snapshot has them
  std::map<std::string, std::string> objects;  // objects that only the client has: the function that finds one, by the handle's type
  std::vector<Row> rows;                       // in the file's order: frames of the session's own, entries by symbol
  std::vector<const Row*> frames;              // by number; nullptr: retired
  std::set<unsigned> retired;                  // numbers of former frames

  const Kind* findKindOfType(const std::string& type) const;
  const Kind* findKind(const std::string& name) const;
};

// Throws kj::Exception that names the invalid line.
Table readTable(const std::string& path, const std::string& types);

// COUNT for the parameter in a clause that begins with `word`: `reads P[COUNT]`. Empty if the clause gives none; nothing if no such clause
// names the parameter.
std::optional<std::string> findCount(const Row& row, const char* word, const std::string& parameter);
inline bool isNamed(const Row& row, const char* word, const std::string& parameter) {
  return findCount(row, word, parameter).has_value();
}

// Adds the field of a parameter to the row's frame or results, if the row does not spell its frame (classify-parameters.cc).
void addField(const Table& table, Row& row, const Parameter& parameter);

// A described field of a structure in a frame (vgpu/api/described.h).
struct DescribedField {
  std::string what;  // the name of an api::FieldClass
  Member member;
  std::string kind;  // for a handle
  bool nullable = false;
  uint32_t bytes = 0;                                     // for memory at an address
  uint64_t values = 0;                                    // for a choice: one bit per value
  std::vector<std::pair<uint32_t, uint64_t>> conditions;  // offset of a number, the accepted values as bits
};
// The fields that are more than numbers, from the layout and the table's `struct` lines. Throws kj::Exception on an undescribed pointer,
// and on a conditional field without its condition.
std::vector<DescribedField> describe(const Table& table, const VendorType& structure);
// The C++ expression of the description of a list's elements: api::described::CUmemAccessDesc_v1. Empty if the frame's list has no
// described elements.
std::string describedOf(const Table& table, const Field& field);
// Whether elements of this type contain handles.
bool hasHandles(const Table& table, const std::string& elementType);

// Places all fields: numbers by size, largest first, so that a schema with ordinals in that order has the same layout
// (capnproto.org/encoding.html).
void placeFields(Structure& structure);
// The fields in that order.
std::vector<const Field*> byPlace(const Structure& structure);

// hostMemory -> HOST_MEMORY; `host memory`; api::Kind::HOST_MEMORY.
std::string enumerantOf(const std::string& name);
std::string wordsOf(const std::string& name);
std::string kindOf(const std::string& name);
// streamDestroy(hStream u64)
std::string signatureOf(const Row& row);
Effect effectNamed(const std::string& word);  // Effect::none for an unknown word

// cuMemAlloc for cuMemAlloc_v2: versions of an entry count as one.
std::string entryOf(const std::string& symbol);

// What is hand-written for an entry (by-hand.cc).
struct ByHand {
  bool client = false, worker = false;  // a complete half
  std::vector<std::string> functions;   // functions of the client that no other entry's rows name: copyBatch, virtualMemory.map
};
// For every entry that sessions have, by its name.
std::map<std::string, ByHand> halvesByHand(const Table& table);

// Each returns the text of one file.
using Emitter = std::string(const Table& table);
Emitter emitKinds, emitKindStates, emitKindModules, emitKindEnds, emitDescribedHeader, emitDescribedSource, emitParity,
    emitMethodsHeader, emitMethodsSource, emitFrames, emitSchema, emitClient, emitEntries, emitAllEntries, emitHandlers,
    emitDispatch, emitDriver, emitHeaders, emitUnsupported, emitPerThread, emitCoverage;

constexpr const char* banner = "// Generated from vgpu/api/cuda.table. Do not edit.\n";

}  // namespace vgpu::generator
