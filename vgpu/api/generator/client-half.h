// The program's half of one row: checks, one statement a parameter; then the frame or what the client remembers; then what comes back.
// Each part is C++ text, which emit() puts together.
#pragma once

#include "text.h"

namespace vgpu::generator {

class ClientHalf {
 public:
  ClientHalf(const Table& table, const Row& row) : table(table), row(row) {}
  std::string emit();

 private:
  // ---- parameters, on their way into a frame (client-parameters.cc)
  void readParameter(const Parameter& p);
  // Text, a structure or an array that the frame carries.
  void pack(const Parameter& p, const Field& field);
  // An array that the entry writes, with room for as many elements as another parameter says.
  void takeList(const Parameter& p, const Field& result);
  // How many elements arrays have room for, and then how many there are: of an array only if one is given.
  void takeRoom(const Parameter& p, const Field& field);
  void create(const Parameter& p, const Field& field);
  void resolve(const Parameter& p, const Kind& kind, const Field* field);
  // Calls `each` with what is remembered of an object, and as which member.
  template <typename Each>
  void remember(Each&& each) const {
    for (auto& clause : row.find("remember"))
      for (size_t i = 1; i < clause.size(); ++i)
        if (clause[i] != "as" && clause[i - 1] != "as")
          each(clause[i + 2 < clause.size() && clause[i + 1] == "as" ? i + 2 : i], clause[i]);
  }
  void put(const Field& field, const std::string& value);
  static std::string numberOf(const Field& field, const std::string& value);
  static std::string nullCheck(const std::string& name);
  // The field of a frame that a parameter goes into: of its name, or of the one that `P as FIELD` says.
  const Field* findField(const Parameter& p) const;

  // ---- what their clauses say is valid (client-checks.cc)
  // A value that the header has, unless a clause says which.
  void checkEnumeration(const Parameter& p);
  // `flags mask A|B`, `config in A..B`, `flags is 0`, each with `else ERROR`; `priority clamp LOW HIGH`. What is checked, the
  // subject, may be a member of what `p` names.
  void checkValue(const Parameter& p, const Clause& clause);
  // Of a handle it comes before the object that it names.
  static bool isOfNull(const Clause& clause);

  // ---- what the program gets (client-answers.cc)
  // `flags = hStream.flags`, `name[len] = dev.name`, `nodes[numNodes] edgeData = hNode.before`, `hfunc from findFunction(thread,
  // name)`.
  void readAnswer(const Clause& clause);
  void list(const Clause& clause);
  // What a function reports by its last argument, a handle or an address.
  void giveReported(const Parameter& p, const Clause& clause);
  void give(const Parameter& p, const std::string& value);
  // Whether it names what a function finds: `ptr found findPointer`.
  bool isFound(const std::string& parameter) const;
  // `otherwise`: what a null object answers.
  std::string translated(const std::string& source, const std::string& otherwise = "0") const;
  // Whether an answer is taken from what is remembered of `object`, which ends with a dot.
  bool uses(const std::string& object) const;
  std::string resultOf(const Field& field, const std::string& type) const;
  // Of a graph's nodes, whose number is behind a pointer: `nodes[numNodes] = hNode.before`, `nodes[numNodes] edgeData = …`.
  bool isList(const Clause& clause) const;
  // Whether answerList() checks the parameter.
  bool isOfList(const std::string& parameter) const;

  // ---- the whole (emit-client.cc)
  // In a stream that captures, all that is valid becomes a node.
  void capture(const Clause& clause);
  // What a frame has no room for, by further calls of the entry.
  std::string split(const Clause& clause) const;
  std::string send();
  // The reply may be known. A question's parts are numbers, if they are few, else digests.
  std::string lookUp(const Clause& cached);

  static constexpr const char* invalidValue = "CUDA_ERROR_INVALID_VALUE";

  const Table& table;
  const Row& row;
  std::string checks, remembers, sets, returns, counts;
  std::string dataWords;          // of the frame's lists: terms of a sum
  std::string target = "thread";  // the device of the first object executes the frame, or the one that is asked about
  bool isOfObject = false;
};

}  // namespace vgpu::generator
