// Classifies each parameter of a library's entry, by its type, the table's lines for its name, and the row's clauses.
#include <fmt/format.h>
#include <kj/debug.h>

#include <cctype>

#include "library-table.h"
#include "text.h"

namespace vgpu::generator {

using api::Argument, api::Does, api::TypedBy;

namespace {

class Classifier {
 public:
  Classifier(const LibraryTable& table, LibraryRow& row) : table(table), row(row) {}

  void run() {
    KJ_REQUIRE(row.parameters.size() <= api::maxLibraryArguments, "more parameters than a call has room for");
    KJ_REQUIRE(row.result.empty() || row.result == "size_t" || row.result == "unsigned int", "a called entry returns a number");
    for (auto& parameter : row.parameters) classify(parameter);
    for (auto& clause : row.clauses)
      if (clause[0] != "host" && clause[0] != "update" && clause[1] == "of")
        row.parameters[row.get(clause[0])].argument.bytes = static_cast<uint8_t>(table.bytesOf(clause[2]));
    for (auto& mode : table.modes)
      if (row.modeObject == api::noArgument) row.modeObject = row.find(mode);
    bool onObject = row.does == Does::set || row.does == Does::destroy || row.does == Does::recall;
    KJ_REQUIRE(!onObject || (!row.parameters.empty() && row.parameters[0].argument.what == Argument::object),
               "the first parameter must be the object that the entry changes, destroys or queries");
  }

 private:
  void classify(LibraryParameter& p) {
    auto& argument = p.argument;
    const auto index = static_cast<uint8_t>(&p - row.parameters.data());
    std::string object = p.isPointer() ? p.pointee() : p.type;
    KJ_REQUIRE(argument.what != Argument::made || p.isPointer(),
               "an entry that makes an object needs a parameter to which it writes the object");
    if (table.findObject(object) != nullptr && (!p.isPointer() || argument.what == Argument::made)) {
      if (argument.what == Argument::value) argument.what = Argument::object;
      argument.objectType = table.placeOf(object);
      argument.bytes = 8;
    } else if (p.type == "cudaStream_t") {
      argument.what = Argument::stream;
      if (row.does != Does::set) row.streamFrom = index;
    } else if (p.isPointer()) {
      classifyPointer(p);
    } else {
      argument.bytes = static_cast<uint8_t>(table.bytesOf(p.type));
      KJ_REQUIRE(p.type != "float" && p.type != "double" && !table.structures.contains(p.type),
                 "an argument that is passed by value must fit in a word", p.type.c_str());
    }
  }

  void classifyPointer(LibraryParameter& p) {
    auto& argument = p.argument;
    argument.what = Argument::address;
    std::string element = p.pointee();
    bool isPointers = element.back() == '*' || element.back() == ']' || element.ends_with("*const");
    const Pointed* pointed = nullptr;
    Pointed own;
    bool isUpdated = false;
    for (auto& clause : row.clauses)
      for (size_t i = 1; i < clause.size(); ++i) {
        if (unbracketed(clause[i]) != p.name) continue;
        if (clause[0] == "update") isUpdated = true;
        if (clause[0] != "host") continue;
        own.count = bracketed(clause[i]);
        pointed = &own;
      }
    if (pointed == nullptr && table.hosts.contains(p.name)) pointed = &table.hosts.at(p.name);
    if (pointed == nullptr && (row.does == Does::query || row.does == Does::recall)) pointed = &own;
    if (pointed == nullptr && table.scalars.contains(p.name) && !isPointers) {
      pointed = &table.scalars.at(p.name);
      isUpdated = table.updated.contains(p.name);
    }
    if (pointed == nullptr) return;
    isUpdated &= !p.isConst();
    argument.what = isUpdated ? Argument::update : p.isConst() ? Argument::input : Argument::output;
    argument.hostModes = pointed->modes;
    argument.unusedModes = pointed->unused;
    argument.bytes = static_cast<uint8_t>(table.bytesOf(element));
    count(argument, pointed->count);
    if (element == "void" && argument.count == api::noArgument) type(p);
    if (element == "void" && argument.count != api::noArgument && table.hosts.contains(p.name)) type(p);
  }

  void count(api::LibraryArgument& argument, const std::string& count) {
    if (count.empty()) return;
    if (std::isdigit(static_cast<unsigned char>(count[0]))) {
      argument.times = static_cast<uint8_t>(std::stoul(count));
    } else {
      argument.count = row.get(count);
    }
  }

  // Sets the element type; for a pointer to void, another argument gives the element size.
  void type(LibraryParameter& p) {
    auto& argument = p.argument;
    if (uint8_t own = row.find(p.name + "Type"); own != api::noArgument) {
      argument.typedBy = TypedBy::dataType;
      argument.type = own;
      return;
    }
    for (auto& typed : table.typed) {
      if (!typed.names.contains(p.name) || row.find(typed.by) == api::noArgument) continue;
      argument.type = row.find(typed.by);
      argument.typedBy = typed.result.empty()           ? TypedBy::dataType
                         : typed.result == "remembered" ? TypedBy::object
                                                        : TypedBy::computeType;
      if (argument.typedBy == TypedBy::computeType) argument.resultType = row.find(typed.result);
      KJ_REQUIRE(argument.typedBy != TypedBy::computeType || argument.resultType != api::noArgument,
                 "the entry has no such parameter", typed.result.c_str());
      return;
    }
    KJ_FAIL_REQUIRE("no clause gives the size of this argument", p.name.c_str());
  }

  const LibraryTable& table;
  LibraryRow& row;
};

}  // namespace

void classify(const LibraryTable& table, LibraryRow& row) { Classifier(table, row).run(); }

// The letters of the classes, and whatever else determines the layout of an argument.
std::string LibraryRow::signature() const {
  constexpr const char* letters[] = {"value", "object", "made", "place", "stream", "address", "in", "out", "inout"};
  std::string text;
  for (auto& p : parameters) {
    auto& a = p.argument;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", p.name, letters[static_cast<size_t>(a.what)]);
    if (a.what == Argument::value) text += fmt::format("{}", a.bytes * 8);
    if (!isRead(a.what) && !isWritten(a.what)) continue;
    if (a.typedBy != TypedBy::nothing) text += fmt::format(" by {}", parameters[a.type].name);
    if (a.typedBy == TypedBy::nothing) text += fmt::format(" {}", a.bytes);
    if (a.count != api::noArgument) text += fmt::format("[{}]", parameters[a.count].name);
    if (a.times != 1) text += fmt::format("[{}]", a.times);
  }
  return fmt::format("{}({})", symbol, text);
}

}  // namespace vgpu::generator
