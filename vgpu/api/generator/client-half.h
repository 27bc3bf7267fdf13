// The program's half of one row: checks, one statement per parameter; then the frame or the remembered state; then the results. Each part
// is C++ text; emit() joins them.
#pragma once

#include "text.h"

namespace vgpu::generator {

class ClientHalf {
 public:
  ClientHalf(const Table& table, const Row& row) : table(table), row(row) {}
  std::string emit();

 private:
  // ---- parameters, put into a frame (client-parameters.cc)
  void readParameter(const Parameter& p);
  // Text, a structure or an array that the frame carries.
  void pack(const Parameter& p, const Field& field);
  // An array that the entry writes, whose capacity is in another parameter.
  void takeList(const Parameter& p, const Field& result);
  // The capacity of arrays on entry and the number of elements on return; counts an array only if the program passes one.
  void takeRoom(const Parameter& p, const Field& field);
  void create(const Parameter& p, const Field& field);
  void resolve(const Parameter& p, const Kind& kind, const Field* field);
  // Calls `each` with each remembered value of an object, and the member that it is remembered as.
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
  // The frame's field for a parameter: the field of the same name, or the one in `P as FIELD`.
  const Field* findField(const Parameter& p) const;

  // ---- checks of what the clauses say is valid (client-checks.cc)
  // Only values that the header has are valid, unless a clause lists the valid ones.
  void checkEnumeration(const Parameter& p);
  // `flags mask A|B`, `config in A..B`, `flags is 0`, each with `else ERROR`; `priority clamp LOW HIGH`. The checked value may be a member
  // of the object that `p` names.
  void checkValue(const Parameter& p, const Clause& clause);
  // Whether the clause is checked before the object that a handle names is looked up.
  static bool isOfNull(const Clause& clause);

  // ---- results for the program (client-answers.cc)
  // `flags = hStream.flags`, `name[len] = dev.name`, `nodes[numNodes] edgeData = hNode.before`, `hfunc from findFunction(thread,
  // name)`.
  void readAnswer(const Clause& clause);
  void list(const Clause& clause);
  // The result that a function reports through its last argument, a handle or an address.
  void giveReported(const Parameter& p, const Clause& clause);
  void give(const Parameter& p, const std::string& value);
  // Whether the parameter names something that a function finds: `ptr found findPointer`.
  bool isFound(const std::string& parameter) const;
  // `otherwise`: the value for a null object.
  std::string translated(const std::string& source, const std::string& otherwise = "0") const;
  // Whether a result is taken from the remembered state of `object`, which ends with a dot.
  bool uses(const std::string& object) const;
  std::string resultOf(const Field& field, const std::string& type) const;
  // Whether it is a list of a graph's nodes with their number behind a pointer: `nodes[numNodes] = hNode.before`, `nodes[numNodes] edgeData
  // = …`.
  bool isList(const Clause& clause) const;
  // Whether answerList() checks the parameter.
  bool isOfList(const std::string& parameter) const;

  // ---- the whole function (emit-client.cc)
  // In a capturing stream, a valid call becomes a node.
  void capture(const Clause& clause);
  // Splits a call that exceeds a frame's capacity into further calls of the entry.
  std::string split(const Clause& clause) const;
  std::string send();
  // Looks for a cached reply. The parts of the key are numbers if there are few, else digests.
  std::string lookUp(const Clause& cached);

  static constexpr const char* invalidValue = "CUDA_ERROR_INVALID_VALUE";

  const Table& table;
  const Row& row;
  std::string checks, remembers, sets, returns, counts;
  std::string dataWords;          // for the frame's lists: terms of a sum
  std::string target = "thread";  // the executing device: that of the first object, or the one in the query
  bool isOfObject = false;
};

}  // namespace vgpu::generator
