// Parses the libraries' table into rows.
#include <kj/debug.h>

#include <algorithm>
#include <utility>

#include "library-table.h"
#include "text.h"

namespace vgpu::generator {

using api::Does;

namespace {

api::Member memberNamed(const std::string& name) {
  constexpr const char* names[] = {"pointerMode", "scaleType", "stream"};
  for (size_t member = 0; member < api::memberCount; ++member)
    if (name == names[member]) return static_cast<api::Member>(member);
  KJ_FAIL_REQUIRE("the client remembers pointerMode, scaleType and stream", name.c_str());
}

class Reader : private TableText {
 public:
  explicit Reader(const std::string& path) : TableText(path) {}

  LibraryTable read() {
    while (next()) {
      KJ_CONTEXT("the table's line", number);
      auto all = words(head);
      if (!readHeadLine(all)) readRow();
    }
    for (auto& row : table.rows) {
      KJ_CONTEXT("the table's line", row.line, row.symbol.c_str());
      if (row.answered == Answered::called) classify(table, row);
    }
    return std::move(table);
  }

 private:
  // A line about the whole table. Returns false if the line is a row.
  bool readHeadLine(const Clause& all) {
    const std::string& word = all[0];
    if (all.size() < 2 || all[1].starts_with("(")) return false;
    if (word == "library") {
      KJ_REQUIRE(all.size() == 4, "a library has a name, a soname and a header");
      table.libraries.push_back({all[1], all[2], all[3], {}});
    } else if (word == "object") {
      const bool isBusy = std::find(all.begin(), all.end(), "busy") != all.end();
      table.objects.push_back({all[1], wordBehind(all, "also", all[1]), wordBehind(all, "in", ""), isBusy});
    } else if (word == "structure" || word == "status") {
      KJ_REQUIRE(all.size() == 3, "a name and a number are expected", word.c_str());
      (word == "status" ? table.statuses : table.structures)[all[1]] = static_cast<unsigned>(std::stoul(all[2]));
    } else if (word == "scalar") {
      readScalars(all);
    } else if (word == "host") {
      for (size_t i = 1; i < all.size(); ++i) table.hosts[unbracketed(all[i])] = {bracketed(all[i])};
    } else if (word == "update") {
      table.updated.insert(all.begin() + 1, all.end());
    } else if (word == "mode") {
      table.modes.assign(all.begin() + 1, all.end());
    } else if (word == "typed") {
      auto by = std::find(all.begin(), all.end(), "by");
      KJ_REQUIRE(all.end() - by >= 2, "a typed argument needs the parameter that gives its type");
      table.typed.push_back({{all.begin() + 1, by}, by[1], all.end() - by > 2 ? by[2] : ""});
    } else if (word == "undeclared") {
      auto& names = table.libraries.back().undeclared;
      names.insert(names.end(), all.begin() + 1, all.end());
    } else {
      return false;
    }
    return true;
  }

  // scalar beta modes 0 4 none 3
  void readScalars(const Clause& all) {
    std::vector<std::string> names;
    uint8_t modes = 0, unused = 0, *into = nullptr;
    for (size_t i = 1; i < all.size(); ++i) {
      if (all[i] == "modes" || all[i] == "none") {
        into = all[i] == "none" ? &unused : &modes;
      } else if (into != nullptr) {
        *into |= static_cast<uint8_t>(1u << std::stoul(all[i]));
      } else {
        names.push_back(all[i]);
      }
    }
    for (auto& name : names) table.scalars[unbracketed(name)] = {bracketed(name), modes == 0 ? uint8_t{1} : modes, unused};
  }

  // cublasSscal_v2 (cublasHandle_t handle, int n, …) [-> type]
  void readRow() {
    LibraryRow row;
    row.line = number;
    size_t open = head.find('(');
    KJ_REQUIRE(open != std::string::npos && !table.libraries.empty(), "expected symbol and (parameters) of a library",
               head.c_str());
    row.symbol = trimmed(head.substr(0, open));
    row.library = static_cast<unsigned>(table.libraries.size()) - 1;
    for (auto& text : split(parenthesised(head, open), ',')) {
      size_t name = text.find_last_of(" *]") + 1;
      row.parameters.push_back({trimmed(text.substr(0, name)), text.substr(name), {}});
    }
    if (size_t arrow = head.find("-> "); arrow != std::string::npos) row.result = head.substr(arrow + 3);
    for (auto& other : table.rows) KJ_REQUIRE(other.symbol != row.symbol, "a symbol is defined twice", row.symbol.c_str());
    auto clauses = clausesOf(body);
    size_t behind = clauses.empty() ? 0 : readDoes(row, clauses[0]);
    for (size_t i = behind; i < clauses.size(); ++i) readClause(row, clauses[i]);
    table.rows.push_back(row);
  }

  // What the entry does, if the clause says so; otherwise it is work. Returns the number of clauses consumed.
  size_t readDoes(LibraryRow& row, const std::string& text) {
    auto all = words(text);
    auto rest = [&](size_t from) { return trimmed(text.substr(std::min(text.size(), from))); };
    if (all[0] == "query") {
      row.does = Does::query;
      row.askedOnce = all.size() > 1 && all[1] == "once";
    } else if (all[0] == "set") {
      row.does = Does::set;
      for (size_t i = 1; i < all.size(); ++i) row.keys |= 1u << row.get(all[i]);
    } else if (all[0] == "create" || all[0] == "destroy") {
      row.does = all[0] == "create" ? Does::create : Does::destroy;
      KJ_REQUIRE(all.size() > 1, "an object is made or ended");
      auto what = row.does == Does::destroy    ? api::Argument::object
                  : text.ends_with("in place") ? api::Argument::place
                                               : api::Argument::made;
      row.parameters[row.get(all[1])].argument.what = what;
    } else if (all[0] == "recall") {
      KJ_REQUIRE(all.size() == 4 && all[2] == "=" && row.get(all[1]) == 1, "recall gives its second parameter a member");
      row.does = Does::recall;
      row.recalled = static_cast<uint8_t>(memberNamed(all[3]));
    } else if (all[0] == "answer" || all[0] == "alias") {
      row.answered = all[0] == "answer" ? Answered::answer : Answered::alias;
      row.answer = rest(all[0].size());
    } else if (text.starts_with("by hand:") || text.starts_with("refuse:")) {
      row.answered = text.starts_with("refuse:") ? Answered::refuse : Answered::byHand;
      row.answer = rest(text.find(':') + 1);
    } else {
      return 0;
    }
    return 1;
  }

  void readClause(LibraryRow& row, const std::string& text) {
    auto all = words(text);
    if (text.starts_with("no header:")) {
      row.isDeclared = false;
      return;
    }
    if (all[0] == "remember" || (all.size() > 1 && all[1] == "holds")) return readNote(row, all);
    bool isKnown = all[0] == "host" || all[0] == "update" || (all.size() > 2 && (all[1] == "of" || all[1] == "="));
    KJ_REQUIRE(isKnown, "a clause is host, update, remember, holds, of or =", text.c_str());
    row.clauses.push_back(all);
  }

  // remember buf as scaleType if attr is 1; buf holds cublasLtEmulationDesc_t if attr is 38
  void readNote(LibraryRow& row, const Clause& all) {
    api::LibraryNote note;
    note.holdsObject = all[0] != "remember";
    KJ_REQUIRE(all.size() >= (note.holdsObject ? 3 : 4), "a remembered value needs a name");
    note.from = row.get(note.holdsObject ? all[0] : all[1]);
    if (!note.holdsObject) note.member = memberNamed(all[3]);
    if (note.holdsObject) note.objectType = table.placeOf(all[2]);
    auto condition = std::find(all.begin(), all.end(), "if");
    if (condition != all.end()) {
      KJ_REQUIRE(all.end() - condition == 4 && condition[2] == "is", "a condition is `if P is NUMBER`");
      note.condition = row.get(condition[1]);
      note.value = static_cast<uint32_t>(std::stoul(condition[3]));
    }
    row.notes.push_back(note);
  }

  LibraryTable table;
};

}  // namespace

std::string LibraryParameter::pointee() const {
  std::string text = type.ends_with("[]") ? type.substr(0, type.size() - 2) : type.substr(0, type.size() - 1);
  text = trimmed(text);
  return text.starts_with("const ") ? text.substr(6) : text;
}

uint8_t LibraryRow::find(const std::string& wanted) const {
  for (size_t i = 0; i < parameters.size(); ++i)
    if (parameters[i].name == wanted) return static_cast<uint8_t>(i);
  return api::noArgument;
}

uint8_t LibraryRow::get(const std::string& wanted) const {
  uint8_t index = find(wanted);
  KJ_REQUIRE(index != api::noArgument, "the entry has no such parameter", wanted.c_str());
  return index;
}

const LibraryObject* LibraryTable::findObject(const std::string& type) const {
  return findBy(objects, &LibraryObject::type, type);
}

uint8_t LibraryTable::placeOf(const std::string& type) const {
  const LibraryObject* object = findObject(type);
  KJ_REQUIRE(object != nullptr, "no such object", type.c_str());
  return static_cast<uint8_t>(object - objects.data());
}

unsigned LibraryTable::bytesOf(const std::string& type) const {
  static const std::map<std::string, unsigned> known = {
      {"void", 1},      {"char", 1},    {"unsigned char", 1},    {"float", 4},     {"double", 8},
      {"cuComplex", 8}, {"int64_t", 8}, {"cuDoubleComplex", 16}, {"long long", 8}, {"size_t", 8},
      {"uint64_t", 8},  {"__half", 2},  {"__nv_bfloat16", 2}};
  if (auto found = known.find(type); found != known.end()) return found->second;
  if (auto found = structures.find(type); found != structures.end()) return found->second;
  return type.back() == '*' || type.back() == ']' || type == "cudaStream_t" || findObject(type) != nullptr ? 8 : 4;
}

LibraryTable readLibraries(const std::string& path) { return Reader(path).read(); }

}  // namespace vgpu::generator
