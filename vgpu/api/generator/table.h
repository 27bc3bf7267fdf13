// A library's table (vgpu/api/cuda.table) as plain values: what the emitters need of each row. Its grammar is at the head of that
// file.
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
  Type element = Type::u64;  // of a list
  uint32_t place = 0;        // of a number, from the structure's beginning: bytes, or bits for a boolean; else which pointer
  Effect effect = Effect::none;
  std::string kind;  // of the object, where there is an effect
  bool parent = false, nullable = false;
  // Of a Data list that is a parameter, or of described elements (vgpu/api/described.h).
  std::string elementType;  // as the header spells it: CUmemAccessDesc
  std::string count;        // the parameter that says how many there are; empty: one, or as an explicit frame has it
  bool optional = false;    // the program may give none

  std::string accessor() const;  // Destination, as in getDestination
  bool isNumber() const { return type <= Type::place; }
  // Whether it is a list of handles.
  bool isHandles() const { return (type == Type::list || type == Type::described) && effect != Effect::none; }
};

struct Structure {
  std::vector<Field> fields;  // as the table has them
  unsigned dataWords = 0, pointers = 0;

  const Field* find(const std::string& name) const;
};

struct Parameter {
  std::string type, name;  // as in the header

  bool isPointer() const { return type.back() == '*'; }
  bool isConstPointer() const { return isPointer() && type.starts_with("const "); }
  // What it points to, without const; of another parameter its type.
  std::string pointee() const;
};

// The part of a row behind its route, between semicolons: its words.
using Clause = std::vector<std::string>;

struct Row {
  unsigned line = 0;
  // What the header says; empty for a frame of the session's own.
  std::string symbol;
  unsigned since = 0;   // CUDA version: 12040 is 12.4
  std::string flavour;  // "ptsz" or "ptds" where there is one for per-thread default streams
  std::vector<Parameter> parameters;
  // What we say of it; an entry without a route is not supported.
  std::optional<Route> route;
  std::string reason;  // of local and forbid
  std::string clientByHand, workerByHand;
  std::string level;       // of recall: the state that the call needs
  std::string alias;       // the call that it is, or its client's half, as C++
  bool byClauses = false;  // the client's half is as of recall, though there is a frame
  std::vector<Clause> clauses;
  // Of a frame.
  unsigned number = 0;
  Replay replay = Replay::query;
  bool noWork = false;
  std::string name;    // streamCreate
  std::string sameAs;  // the row before whose frame and worker's half this one's are; its own if empty
  Structure frame, results;

  bool onWire() const { return route && *route <= Route::signal; }
  bool clientGenerated() const { return route && !symbol.empty() && *route <= Route::alias && clientByHand.empty(); }
  bool workerGenerated() const { return onWire() && workerByHand.empty(); }
  // Of the entries that a session has.
  bool isSupported() const { return route && !symbol.empty() && *route != Route::forbid; }
  // Of the frame, and of the worker's function: StreamCreate, streamCreate.
  std::string typeName() const;
  const std::string& halfName() const { return sameAs.empty() ? name : sameAs; }
  const Parameter* findParameter(const std::string& name) const;
  // The clauses that begin with `word`.
  std::vector<Clause> find(const std::string& word) const;
};

struct Kind {
  std::string name;     // hostMemory
  unsigned number = 0;  // the handle's first byte
  std::string type;     // of the program's handle: CUstream; empty where rows name the kind themselves
  bool nullable = false;
  bool inContext = false;          // ends with its device's context
  std::string state, stateHeader;  // of the client's (intercept/session/kinds/); empty if it keeps no more than a head
  std::string spares, spareBy;     // what keeps ended ones, and by which member; empty if nothing does
  std::string ends;                // what the client calls for one that ends with its context; empty if nothing
  std::string destroyer;           // the entry that destroys one; empty if a module of the worker's does
};

struct Table {
  VendorTypes types;
  std::map<std::string, std::vector<Clause>> descriptors;  // of structures, by their first names
  std::vector<Kind> kinds;                                 // by number
  std::vector<std::string> modules;                        // of the worker, in the order of a snapshot
  std::map<std::string, std::string> objects;  // of the client alone: the function that finds one, by the handle's type
  std::vector<Row> rows;                       // as in the file: frames of the session's own, entries by symbol
  std::vector<const Row*> frames;              // by number; nullptr: retired
  std::set<unsigned> retired;                  // numbers that a frame has had

  const Kind* findKindOfType(const std::string& type) const;
  const Kind* findKind(const std::string& name) const;
};

// Throws kj::Exception naming the line that makes no sense.
Table readTable(const std::string& path, const std::string& types);

// COUNT of the parameter in a clause that begins with `word`: `reads P[COUNT]`. Empty if it has none; nothing if no such clause
// names the parameter.
std::optional<std::string> findCount(const Row& row, const char* word, const std::string& parameter);
inline bool isNamed(const Row& row, const char* word, const std::string& parameter) {
  return findCount(row, word, parameter).has_value();
}

// The field of a parameter for whose row no frame is spelled, in the row's frame or results (classify-parameters.cc).
void addField(const Table& table, Row& row, const Parameter& parameter);

// A field of a structure as the wire has it (vgpu/api/described.h).
struct DescribedField {
  std::string what;  // of api::FieldClass
  Member member;
  std::string kind;  // of a handle
  bool nullable = false;
  uint32_t bytes = 0;                                     // of memory at an address
  uint64_t values = 0;                                    // of a choice: a bit each
  std::vector<std::pair<uint32_t, uint64_t>> conditions;  // offset of a number, its values as bits
};
// The fields that are more than numbers, from the layout and the table's `struct` lines. Throws kj::Exception on a pointer that
// nothing describes, and on what may not be there and says not when.
std::vector<DescribedField> describe(const Table& table, const VendorType& structure);
// The C++ expression of the description of a list's elements: api::described::CUmemAccessDesc_v1. Empty if a frame's list is of
// none.
std::string describedOf(const Table& table, const Field& field);
// Whether such elements hold handles.
bool hasHandles(const Table& table, const std::string& elementType);

// Gives every field its place: numbers by size, largest first, so that a schema whose ordinals are in that order has the same
// layout (capnproto.org/encoding.html).
void placeFields(Structure& structure);
// The fields in that order.
std::vector<const Field*> byPlace(const Structure& structure);

// hostMemory -> HOST_MEMORY; `host memory`; api::Kind::HOST_MEMORY.
std::string enumerantOf(const std::string& name);
std::string wordsOf(const std::string& name);
std::string kindOf(const std::string& name);
// streamDestroy(hStream u64)
std::string signatureOf(const Row& row);
Effect effectNamed(const std::string& word);  // Effect::none if it is none

// cuMemAlloc of cuMemAlloc_v2: versions of an entry are one.
std::string entryOf(const std::string& symbol);

// What people write for an entry (by-hand.cc).
struct ByHand {
  bool client = false, worker = false;  // a half, in full
  std::vector<std::string> functions;   // of the client, which rows of no other entry name: copyBatch, virtualMemory.map
};
// Of every entry that a session has, by its name.
std::map<std::string, ByHand> halvesByHand(const Table& table);

// Each returns the text of one file.
using Emitter = std::string(const Table& table);
Emitter emitKinds, emitKindStates, emitKindModules, emitKindEnds, emitDescribedHeader, emitDescribedSource, emitParity,
    emitMethodsHeader, emitMethodsSource, emitFrames, emitSchema, emitClient, emitEntries, emitAllEntries, emitHandlers,
    emitDispatch, emitDriver, emitHeaders, emitUnsupported, emitPerThread, emitCoverage;

constexpr const char* banner = "// Generated from vgpu/api/cuda.table. Do not edit.\n";

}  // namespace vgpu::generator
