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

// How an entry is answered: by a call of the worker (which includes what the client remembers), or in the face.
enum class Answered { called, answer, alias, byHand, refuse };

struct LibraryParameter {
  std::string type, name;  // as in the header
  api::LibraryArgument argument;

  bool isPointer() const { return type.back() == '*' || type.back() == ']'; }
  bool isConst() const { return type.starts_with("const "); }
  // Of a pointer, what it points to, without const.
  std::string pointee() const;
};

struct LibraryRow {
  unsigned line = 0;
  std::string symbol, result;  // the result's type; empty: a status
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
  bool isDeclared = true;  // by a header

  // What its frames mean: symbol and classes.
  std::string signature() const;
  // noArgument if there is none of that name.
  uint8_t find(const std::string& parameter) const;
  // Throws kj::Exception if there is none.
  uint8_t get(const std::string& parameter) const;
};

struct LibraryObject {
  std::string type, also, structure;  // structure: in the program's memory; empty: nowhere
  bool busy = false;
};

struct LibraryDescription {
  std::string name, soname, header;
  std::vector<std::string> undeclared;
};

// A parameter that is a pointer to `count` elements: a number, a parameter's name, or empty for one.
struct Pointed {
  std::string count;
  uint8_t modes = 0xff, unused = 0;
};

// `typed alpha beta by computeType Ctype`
struct Typed {
  std::set<std::string> names;
  std::string by, result;  // result: "remembered" where an object remembers
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

  // nullptr if that type is none.
  const LibraryObject* findObject(const std::string& type) const;
  // Its place among the objects. Throws kj::Exception if that type is none.
  uint8_t placeOf(const std::string& type) const;
  // Bytes of a value; of a type that is not known, an enumeration's.
  unsigned bytesOf(const std::string& type) const;
};

// Throws kj::Exception naming the line that makes no sense.
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
