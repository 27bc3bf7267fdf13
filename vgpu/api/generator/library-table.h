// The table of libraries (vgpu/api/cublas.table) as plain values. Its grammar is at the head of that file.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "table.h"
#include "vgpu/api/library.h"

namespace vgpu::generator {

// How an entry is answered: by a call to the worker (or from the client's remembered state), or in the face.
enum class Answered { called, answer, alias, byHand, refuse };

struct LibraryParameter {
  std::string type, name;  // as in the header
  api::LibraryArgument argument;

  bool isPointer() const { return type.back() == '*' || type.back() == ']'; }
  bool isConst() const { return type.starts_with("const "); }
  // For a pointer, the type that it points to, without const.
  std::string pointee() const;
};

struct LibraryRow {
  unsigned line = 0;
  std::string symbol, result;  // the type of the result; empty: a status
  unsigned library = 0;
  std::vector<LibraryParameter> parameters;
  Answered answered = Answered::called;
  api::Does does = api::Does::work;
  std::string answer;  // the value, the call, or the reason
  std::vector<Clause> clauses;
  std::vector<api::LibraryNote> notes;
  uint8_t modeObject = api::noArgument, streamFrom = api::noArgument, recalled = 0;
  uint32_t keys = 0;
  bool askedOnce = false;
  bool isDeclared = true;  // in a header

  // Identifies the meaning of its frames: symbol and argument classes.
  std::string signature() const;
  // noArgument if there is no parameter of that name.
  uint8_t find(const std::string& parameter) const;
  // Throws kj::Exception if there is no parameter of that name.
  uint8_t get(const std::string& parameter) const;
};

struct LibraryObject {
  std::string type, also, structure;  // structure: in the program's memory; empty if there is none
  bool busy = false;
};

struct LibraryDescription {
  std::string name, soname, header;
  std::vector<std::string> undeclared;
};

// A pointer parameter to `count` elements: a number, a parameter's name, or empty for one element.
struct Pointed {
  std::string count;
  uint8_t modes = 0xff, unused = 0;
};

// `typed alpha beta by computeType Ctype`
struct Typed {
  std::set<std::string> names;
  std::string by, result;  // result: "remembered" if an object remembers it
};

struct LibraryTable {
  std::vector<LibraryDescription> libraries;
  std::vector<LibraryObject> objects;
  std::map<std::string, unsigned> structures, statuses;
  std::map<std::string, Pointed> scalars, hosts;  // by parameter
  std::set<std::string> updated;
  std::vector<std::string> modes;
  std::vector<Typed> typed;
  std::vector<LibraryRow> rows;

  // nullptr if the type is not an object's.
  const LibraryObject* findObject(const std::string& type) const;
  // Its index among the objects. Throws kj::Exception if the type is not an object's.
  uint8_t placeOf(const std::string& type) const;
  // The size of a value; a type that is not known counts as an enumeration.
  unsigned bytesOf(const std::string& type) const;
};

// Throws kj::Exception that names the invalid line.
LibraryTable readLibraries(const std::string& path);

// Gives every parameter of the row its class.
void classify(const LibraryTable& table, LibraryRow& row);

// The emitters: each returns the text of one file.
std::string emitLibraryRows(const LibraryTable& table);
std::string emitLibraryExports(const LibraryTable& table, unsigned library);
std::string emitLibraryAnswers(const LibraryTable& table, unsigned library);
std::string emitLibraryMap(const LibraryTable& table, unsigned library);
std::string emitLibraryParity(const LibraryTable& table);
std::string emitLibraryCoverage(const LibraryTable& table);

}  // namespace vgpu::generator
