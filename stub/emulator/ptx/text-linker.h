// Links PTX modules into one PTX module. Names local to a module are renamed if another module has them too; names shared by several
// modules are checked like in the driver's linker, with its messages.
//
// Used by one thread at a time.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "stub/emulator/ptx/text/declarations.h"

namespace vgpu::emulator {

class TextLinker {
 public:
  // The problems, one line each; empty if there are none. `ofKernels`: a kernel is defined twice, for which the driver has another result.
  struct Problems {
    std::vector<std::string> lines;
    bool ofKernels = false;
  };

  // Adds a module; `name` is its name in messages. Throws PtxError if the text cannot be parsed.
  Problems add(std::string name, std::string text);
  // Names that modules refer to and none defines.
  std::vector<std::string> undefined() const;
  std::string linked() const;
  bool empty() const { return pieces.empty(); }

 private:
  struct Piece {
    std::string name, text;
    Declarations declarations;
    std::set<std::string_view> locals;
  };
  // A name that several modules share: its declaration, and the module that made it.
  struct Shared {
    const Piece* first;
    const Piece* definer = nullptr;
    const FunctionDecl* function = nullptr;  // or
    const VariableDecl* variable = nullptr;
    bool weak = false;
  };
  void addFunction(const Piece&, const FunctionDecl&, Problems&);
  void addVariable(const Piece&, const VariableDecl&, Problems&);
  void define(Shared&, const Piece&, const std::string& name, bool weak, bool isKernel, Problems&);
  std::map<std::string_view, std::string> renamed(size_t piece) const;
  void append(std::string& to, size_t piece, int& files) const;

  std::vector<std::unique_ptr<Piece>> pieces;
  std::map<std::string, Shared, std::less<>> shared;
};

// Whether a body or an initialiser of the module refers to `name`.
bool refersTo(const Declarations&, std::string_view name);

}  // namespace vgpu::emulator
