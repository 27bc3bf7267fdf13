// Links PTX modules into one, which is PTX again. Names local to a module are renamed if another module has them too; what
// several modules share is checked as the driver's linker does, in its words.
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
  // What does not fit, a line each: empty if all does. `ofKernels`: a kernel is defined twice, which the driver
  // answers differently.
  struct Problems {
    std::vector<std::string> lines;
    bool ofKernels = false;
  };

  // Adds a module; `name` is what messages call it. Throws PtxError where the text cannot be read.
  Problems add(std::string name, std::string text);
  // What modules refer to and none defines.
  std::vector<std::string> undefined() const;
  std::string linked() const;
  bool empty() const { return pieces.empty(); }

 private:
  struct Piece {
    std::string name, text;
    Declarations declarations;
    std::set<std::string_view> locals;
  };
  // A name that modules share: what is known of it, and who said so.
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
