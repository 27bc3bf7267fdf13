// Parses the table's text into rows.
#include <fmt/format.h>
#include <kj/debug.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <iterator>
#include <utility>

#include "text.h"

namespace vgpu::generator {

namespace {

Type typeNamed(const std::string& name) {
  for (size_t type = 0; type < std::size(typeInfos) && !name.empty(); ++type)
    if (name == typeInfos[type].name) return static_cast<Type>(type);
  KJ_FAIL_REQUIRE("a field's type is a number, bytes, text, struct or a list of numbers", name.c_str());
}

class Reader : private TableText {
 public:
  Reader(const std::string& path, const std::string& types) : TableText(path), table{.types = VendorTypes(types)} {}

  Table read() {
    const std::map<std::string, std::function<void()>> lines{{"kind", [&] { readKind(); }},
                                                             {"object", [&] { table.objects[word(1)] = word(2); }},
                                                             {"modules", [&] { table.modules = wordsBehind(head); }},
                                                             {"retired", [&] { readRetired(); }},
                                                             {"struct", [&] { readDescriptor(); }},
                                                             {"forbid", [&] { readForbidden(); }}};
    while (next()) {
      KJ_CONTEXT("the table's line", number);
      auto line = lines.find(word(0));
      line == lines.end() ? readRow() : line->second();
    }
    std::sort(table.kinds.begin(), table.kinds.end(), [](auto& a, auto& b) { return a.number < b.number; });
    for (auto& row : table.rows)
      if (!row.route) complete(row);
    for (auto& row : table.rows) {
      index(row);
      for (auto& clause : row.find("serves")) checkServed(clause);
    }
    for (unsigned number = 0; number < table.frames.size(); ++number)
      KJ_REQUIRE(table.frames[number] != nullptr || table.retired.contains(number), "a retired number belongs to no frame",
                 number);
    return std::move(table);
  }

 private:
  std::string word(size_t index) const {
    auto all = words(head);
    return index < all.size() ? all[index] : "";
  }

  // The words of a line after its first one.
  static Clause wordsBehind(const std::string& line) { return words(line.substr(line.find(' '))); }

  // kind stream 5 CUstream nullable inContext state StreamState stream.h cuStreamDestroy_v2
  void readKind() {
    auto all = words(head);
    Kind kind{word(1), static_cast<unsigned>(std::stoul(word(2))), word(3) == "-" ? "" : word(3)};
    kind.nullable = std::erase(all, "nullable") != 0;
    kind.inContext = std::erase(all, "inContext") != 0;
    kind.state = wordBehind(all, "state", "");
    kind.stateHeader = wordBehind(all, kind.state, "");
    kind.ends = wordBehind(all, "ends", "");
    kind.spares = wordBehind(all, "spares", "");
    kind.spareBy = wordBehind(all, kind.spares, "");
    if (all.back().starts_with("cu") && all.back() != kind.ends) kind.destroyer = all.back();
    if (kind.ends.empty() && kind.inContext) kind.ends = kind.destroyer;
    KJ_REQUIRE(table.findKind(kind.name) == nullptr, "a kind is defined twice", kind.name.c_str());
    table.kinds.push_back(kind);
  }

  // retired 7-32 39
  void readRetired() {
    for (auto& range : wordsBehind(head)) {
      size_t dash = range.find('-');
      unsigned last = static_cast<unsigned>(std::stoul(range.substr(dash == std::string::npos ? 0 : dash + 1)));
      for (unsigned number = static_cast<unsigned>(std::stoul(range)); number <= last; ++number) table.retired.insert(number);
    }
  }

  // forbid CUgraphicsResource: graphics interoperability
  void readForbidden() {
    size_t colon = head.find(':');
    KJ_REQUIRE(colon != std::string::npos, "a `forbid` line needs a reason", head.c_str());
    forbidden.push_back({wordsBehind(head.substr(0, colon)), trimmed(head.substr(colon + 1))});
  }

  // struct CUlaunchAttributeValue
  //   plain programmaticEvent.event launchCompletionEvent.event
  void readDescriptor() {
    const VendorType* type = table.types.findStructure(word(1));
    KJ_REQUIRE(type != nullptr, "the headers have no such structure", word(1).c_str());
    auto& clauses = table.descriptors[type->name];
    KJ_REQUIRE(clauses.empty(), "a structure is defined twice", word(1).c_str());
    for (auto& clause : clausesOf(body)) clauses.push_back(words(clause));
  }

  void readRow() {
    Row row;
    row.line = number;
    bool own = isRoute(word(0));
    if (!own) readHead(row);
    auto clauses = clausesOf(own ? head + body : body);
    if (!clauses.empty()) readRoute(row, clauses[0]);
    for (size_t i = 1; i < clauses.size(); ++i) readClause(row, clauses[i]);
    finish(row);
    table.rows.push_back(row);
  }

  static bool isRoute(const std::string& word) { return word == "post" || word == "call" || word == "signal"; }

  // cuStreamQuery 2000 ptsz:7000 (CUstream hStream)
  void readHead(Row& row) {
    row.symbol = word(0);
    row.since = static_cast<unsigned>(std::stoul(word(1)));
    if (word(2) != "-") row.flavour = word(2).substr(0, word(2).find(':'));
    for (auto& parameter : split(parenthesised(head, head.find('(')), ',')) row.parameters.push_back(readParameter(parameter));
    for (auto& other : table.rows) KJ_REQUIRE(other.symbol != row.symbol, "a symbol is defined twice", row.symbol.c_str());
  }

  // post @84 build noWork eventCreate(phEvent u64 creates event, Flags u32) -> (…)
  void readRoute(Row& row, const std::string& text) {
    auto all = words(text);
    const std::string rest = trimmed(text.substr(all[0].size()));
    auto route = std::ranges::find(routeNames, all[0].substr(0, all[0].find(':')));
    KJ_REQUIRE(route != std::end(routeNames), "a row begins with its route", text.c_str());
    row.route = static_cast<Route>(route - routeNames);
    if (*row.route == Route::alias) {
      row.alias = rest;
    } else if (*row.route == Route::recall) {
      row.level = rest.empty() ? "live" : rest;
    } else if (!row.onWire()) {
      row.reason = rest;
    } else {
      KJ_REQUIRE(all.size() >= 3 && all[1][0] == '@', "a row begins with its route", text.c_str());
      readFrame(row, all);
    }
  }

  // @84 build noWork eventCreate(phEvent u64 creates event, Flags u32) -> (…)
  void readFrame(Row& row, const Clause& all) {
    row.number = static_cast<unsigned>(std::stoul(all[1].substr(1)));
    row.replay = all[2] == "build" ? Replay::build : all[2] == "work" ? Replay::work : Replay::query;
    Clause rest(all.begin() + 3, all.end());
    row.noWork = std::erase(rest, "noWork") != 0;
    for (const char* level : {"process", "any", "context"})
      if (std::erase(rest, level) != 0) row.level = level;
    if (rest.empty()) return;
    if (rest.size() == 3 && rest[1] == "as") return takeFrame(row, rest[0], rest[2]);
    size_t open = rest[0].find('(');
    KJ_REQUIRE(open != std::string::npos, "a frame has fields in parentheses", rest[0].c_str());
    row.name = rest[0].substr(0, open);
    readFields(row.frame, parenthesised(rest[0], open));
    if (rest.size() > 2 && rest[1] == "->") readFields(row.results, parenthesised(rest[2], 0));
  }

  // copy3dBack as copy3d
  void takeFrame(Row& row, const std::string& name, const std::string& sameAs) {
    auto other = std::find_if(table.rows.begin(), table.rows.end(), [&](auto& before) { return before.name == sameAs; });
    KJ_REQUIRE(other != table.rows.end() && !other->workerByHand.empty(),
               "no earlier row has that frame and a worker's half by hand", sameAs.c_str());
    row.name = name;
    row.sameAs = sameAs;
    row.frame = other->frame;
    row.results = other->results;
    row.clauses = other->clauses;
    row.workerByHand = other->workerByHand;
  }

  // destination u64, stream u64 uses? stream
  void readFields(Structure& structure, const std::string& text) {
    for (auto& each : split(text, ',')) {
      auto part = words(each);
      KJ_REQUIRE(part.size() >= 2, "a field has a name and a type", each.c_str());
      Field field;
      field.name = part[0];
      readType(field, part[1]);
      if (part.size() > 2) {
        field.nullable = part[2].ends_with("?");
        field.effect = effectNamed(field.nullable ? part[2].substr(0, part[2].size() - 1) : part[2]);
        KJ_REQUIRE(field.effect != Effect::none && part.size() > 3 && table.findKind(part[3]) != nullptr,
                   "a field must say what happens to an object of which kind", each.c_str());
        field.kind = part[3];
        field.parent = part.size() > 4 && part[4] == "parent";
      }
      structure.fields.push_back(field);
    }
  }

  // u64, u64[], CUmemAccessDesc or CUmemAccessDesc[].
  void readType(Field& field, const std::string& type) {
    const bool isList = type.ends_with("[]");
    const std::string element = isList ? type.substr(0, type.size() - 2) : type;
    if (isList) field.count = "[]";
    if (table.types.find(element) != nullptr) {
      field.type = Type::described;
      field.elementType = element;
    } else {
      (isList ? field.element : field.type) = typeNamed(element);
      if (isList) field.type = Type::list;
    }
  }

  void readClause(Row& row, const std::string& text) {
    if (text.starts_with("client:")) {
      row.clientByHand = trimmed(text.substr(7));
    } else if (text.starts_with("worker:")) {
      row.workerByHand = trimmed(text.substr(7));
    } else if (text == "by clauses") {
      row.byClauses = true;
    } else if (text.starts_with("by ")) {
      row.alias = trimmed(text.substr(3));
    } else {
      row.clauses.push_back(words(text));
    }
  }

  // streamWaitEvent of cuStreamWaitEvent, without the _v2 that the header's macros add.
  static std::string nameOfSymbol(const std::string& symbol) {
    std::string name = entryOf(symbol).substr(2);
    name[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(name[0])));
    return name;
  }

  // Checks clauses that name parameters.
  static void checkNames(const Row& row, const Clause& clause) {
    if (clause[0] == "cached") {
      KJ_REQUIRE(clause.size() == 2 || (clause.size() == 5 && clause[2] == "unless" && row.findParameter(clause[3]) != nullptr),
                 "cached OBJECT, or cached OBJECT unless PARAMETER VALUE", row.symbol.c_str());
    }
    size_t dot = clause[0].find('.');
    KJ_REQUIRE(dot == std::string::npos || row.findParameter(clause[0].substr(0, dot)) != nullptr,
               "the entry has no such parameter", clause[0].c_str());
    static const std::set<std::string> verbs{"creates",  "uses",    "changes", "destroys", "optional",
                                             "remember", "current", "reads",   "writes",   "address", "parent"};
    for (size_t i = 1; verbs.contains(clause[0]) && i < clause.size(); ++i) {
      std::string name = unbracketed(clause[i]), count = countParameter(bracketed(clause[i]));
      if (isNumber(count)) count.clear();
      const bool isNoParameter = clause[i] == "as" || clause[i - 1] == "as" || (clause[0] == "remember" && name.ends_with(')'));
      KJ_REQUIRE((isNoParameter || row.findParameter(name) != nullptr) && (count.empty() || row.findParameter(count) != nullptr),
                 "the entry has no such parameter", clause[i].c_str());
    }
  }

  // Completes a row by its prototype alone: the entry is forbidden, or a call of its next version with the same parameters.
  void complete(Row& row) const {
    auto isForbidden = [&](auto& each) {
      auto begins = [&](const std::string& name) {
        return std::ranges::any_of(each.beginnings, [&](auto& beginning) { return name.starts_with(beginning); });
      };
      return begins(row.symbol) || std::ranges::any_of(row.parameters, begins, &Parameter::pointee);
    };
    if (auto found = std::ranges::find_if(forbidden, isForbidden); found != forbidden.end()) {
      row.route = Route::forbid;
      row.reason = found->why;
      return;
    }
    auto isVersion = [&](auto& other) { return entryOf(other.symbol) == entryOf(row.symbol); };
    auto next = std::find_if(table.rows.begin() + (&row - table.rows.data()) + 1, table.rows.end(), isVersion);
    if (next == table.rows.end() || !std::ranges::equal(row.parameters, next->parameters, isPassedAs)) return;
    row.route = Route::alias;
    row.alias = fmt::format("{}({})", next->symbol, joined(row.parameters, ", ", &Parameter::name));
  }

  // Whether a call may forward the first parameter as the second: same type, or a number that is at least as wide.
  static bool isPassedAs(const Parameter& from, const Parameter& to) {
    auto number = numberOfC(from.type), wider = numberOfC(to.type);
    return from.name == to.name && (from.type == to.type || (number && wider && infoOf(*number).bits <= infoOf(*wider).bits));
  }

  // Checks that a session has the entry. Its row may follow the frame's.
  void checkServed(const Clause& clause) const {
    bool isServed = std::any_of(table.rows.begin(), table.rows.end(),
                                [&](auto& row) { return row.isSupported() && row.symbol == clause.at(1); });
    KJ_REQUIRE(isServed, "a frame must serve an entry that is supported", clause[1].c_str());
  }

  void finish(Row& row) {
    for (auto& clause : row.clauses) checkNames(row, clause);
    if (!row.onWire()) return;
    if (row.name.empty()) {
      KJ_REQUIRE(row.clientByHand.empty() && row.workerByHand.empty(), "a half by hand needs a frame that it can fill");
      row.name = nameOfSymbol(row.symbol);
      for (auto& parameter : row.parameters) addField(table, row, parameter);
    }
    if (!row.sameAs.empty()) return;
    KJ_REQUIRE(!row.symbol.empty() || !row.workerByHand.empty(), "a frame without an entry needs a worker's half by hand",
               row.name.c_str());
    placeFields(row.frame);
    placeFields(row.results);
  }

  void index(const Row& row) {
    if (!row.onWire()) return;
    if (table.frames.size() <= row.number) table.frames.resize(row.number + 1);
    KJ_REQUIRE(table.frames[row.number] == nullptr, "a number is used twice", row.number, row.line);
    KJ_REQUIRE(!table.retired.contains(row.number), "a number was used by another frame before", row.number, row.line);
    table.frames[row.number] = &row;
  }

  Table table;
  // Entries that a session cannot have, by the beginnings of their names.
  struct Forbidden {
    Clause beginnings;
    std::string why;
  };
  std::vector<Forbidden> forbidden;
};

}  // namespace

Table readTable(const std::string& path, const std::string& types) { return Reader(path, types).read(); }

}  // namespace vgpu::generator
