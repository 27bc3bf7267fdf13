// The schema as plain values: what the emitters need of each method. Read once from the compiler's request.
#pragma once

#include <capnp/schema.h>
#include <capnp/schema-loader.h>

#include <string>
#include <vector>

#include "entries.h"
#include "vgpu/api/annotations.capnp.h"

namespace vgpu::generator {

enum class Effect { none, creates, uses, changes, destroys };

struct Field {
  std::string name;       // as in the schema
  std::string accessor;   // "Name" of setName / getName
  std::string type;       // C++ type on the wire; empty for text, data, lists and structs
  bool isData = false, hasDefault = false;
  uint32_t place = 0;     // of a number, from the structure's beginning: bytes, or bits for a bool
  Effect effect = Effect::none;
  std::string kind;       // of the object, where there is an effect
  bool parent = false, nullable = false;
};

struct Method {
  uint16_t ordinal = 0;
  std::string name;        // streamCreate
  std::string typeName;    // StreamCreate
  std::string entry, driver, reason, clientByHand, workerByHand;
  uint32_t since = 0;
  api::Route route = api::Route::CALL;
  api::Replay replay = api::Replay::QUERY;
  bool noWork = false, hasResults = false;
  unsigned dataWords = 0, pointers = 0;  // of the parameters
  std::vector<Field> parameters, results;
  std::vector<CParameter> signature;  // of `entry`
  capnp::StructSchema parameterSchema, resultSchema;

  bool onWire() const { return route != api::Route::LOCAL; }
  bool clientGenerated() const { return onWire() && !entry.empty() && clientByHand.empty(); }
  bool workerGenerated() const { return onWire() && workerByHand.empty(); }
  // Whether its frame is numbers with one piece of data at most (flat-frame.h).
  bool isFlat() const;
  const Field* findParameter(const std::string& name) const;
  const Field* findResult(const std::string& name) const;
};

// Every method of the interface `Cuda`, by ordinal, with what `entries` says of it. Throws kj::Exception naming the row that
// makes no sense.
std::vector<Method> readMethods(const capnp::SchemaLoader& loader, uint64_t fileId, const Entries& entries);

// An enumerant as Cap'n Proto spells it in C++: hostMemory -> HOST_MEMORY.
std::string enumerantOf(const std::string& name);
const char* routeName(api::Route route);
const char* replayName(api::Replay replay);

// The emitters: each returns the text of one file.
std::string emitStructs(const capnp::SchemaLoader& loader, uint64_t fileId, const std::vector<Method>& methods);
std::string emitMethodsHeader(const std::vector<Method>& methods);
std::string emitMethodsSource(const std::vector<Method>& methods);
std::string emitFrames(const std::vector<Method>& methods);
std::string emitClient(const std::vector<Method>& methods);
std::string emitEntryTable(const std::vector<Method>& methods);
std::string emitHandlers(const std::vector<Method>& methods);
std::string emitDispatch(const std::vector<Method>& methods);
std::string emitDriverEntries(const std::vector<Method>& methods);
std::string emitCoverage(const std::vector<Method>& methods);

}  // namespace vgpu::generator
