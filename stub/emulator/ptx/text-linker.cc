#include "stub/emulator/ptx/text-linker.h"

#include <algorithm>
#include <charconv>

#include "stub/emulator/ptx/run/builtins.h"
#include "stub/emulator/ptx/text/lexer.h"

namespace vgpu::emulator {
namespace {

std::string quoted(std::string_view name) { return "'" + std::string(name) + "'"; }

bool sameShape(const std::vector<ParameterDecl>& a, const std::vector<ParameterDecl>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const ParameterDecl& x, const ParameterDecl& y) { return x.bytes == y.bytes; });
}

bool isLinked(const VariableDecl& variable) {
  return variable.space == Space::global || variable.space == Space::constant;
}

bool isWordChar(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%'; }

bool mentions(std::string_view text, std::string_view name) {
  for (size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const size_t end = at + name.size();
    if ((at == 0 || !isWordChar(text[at - 1])) && (end == text.size() || !isWordChar(text[end]))) return true;
  }
  return false;
}

bool takesAddress(const VariableDecl& variable, std::string_view name) {
  return std::any_of(variable.relocations.begin(), variable.relocations.end(),
                     [&](const Relocation& relocation) { return relocation.symbol == name; });
}

}  // namespace

bool refersTo(const Declarations& module, std::string_view name) {
  for (const FunctionDecl& function : module.functions) {
    if (mentions(function.body, name)) return true;
    for (const VariableDecl& variable : function.statics)
      if (takesAddress(variable, name)) return true;
  }
  for (const VariableDecl& variable : module.variables)
    if (takesAddress(variable, name)) return true;
  return false;
}

TextLinker::Problems TextLinker::add(std::string name, std::string text) {
  auto piece = std::make_unique<Piece>();
  piece->name = std::move(name);
  piece->text = std::move(text);
  while (!piece->text.empty() && piece->text.back() == '\0') piece->text.pop_back();
  piece->declarations = scan(piece->text);
  const Declarations& found = piece->declarations;
  Problems problems;
  for (const auto& [symbol, index] : found.functionIndex) {
    const FunctionDecl& function = found.functions[index];
    if (function.isVisible || function.isWeak || function.isExtern)
      addFunction(*piece, function, problems);
    else
      piece->locals.insert(symbol);
  }
  for (const auto& [symbol, index] : found.variableIndex) {
    const VariableDecl& variable = found.variables[index];
    if (!isLinked(variable) || (!variable.isVisible && !variable.isWeak && !variable.isExtern))
      piece->locals.insert(symbol);
    else
      addVariable(*piece, variable, problems);
  }
  std::sort(problems.lines.begin(), problems.lines.end());
  pieces.push_back(std::move(piece));
  return problems;
}

void TextLinker::addFunction(const Piece& piece, const FunctionDecl& function, Problems& problems) {
  auto [entry, added] = shared.emplace(function.name, Shared{&piece});
  Shared& known = entry->second;
  if (!added && (!known.function || !sameShape(known.function->parameters, function.parameters) ||
                 !sameShape(known.function->results, function.results)))
    problems.lines.push_back("Prototype doesn't match for " + quoted(function.name) + " in " + quoted(piece.name) +
                             ", first defined in " + quoted(known.first->name));
  const bool defines = function.hasBody || piece.declarations.aliases.contains(function.name);
  if (added || defines) known.function = &function;
  if (defines) define(known, piece, function.name, function.isWeak, function.isKernel, problems);
}

void TextLinker::addVariable(const Piece& piece, const VariableDecl& variable, Problems& problems) {
  auto [entry, added] = shared.emplace(variable.name, Shared{&piece});
  Shared& known = entry->second;
  const auto differs = [&](const char* what) {
    problems.lines.push_back(std::string(what) + " doesn't match for " + quoted(variable.name) + " in " +
                             quoted(piece.name) + ", first specified in " + quoted(known.first->name));
  };
  if (!added && (!known.variable || known.variable->space != variable.space)) differs("Memory space");
  const bool sized = known.variable && !known.variable->unsizedArray && !variable.unsizedArray;
  if (sized && known.variable->bytes != variable.bytes) differs("Size");
  if (added || !variable.isExtern) known.variable = &variable;
  if (!variable.isExtern) define(known, piece, variable.name, variable.isWeak, false, problems);
}

void TextLinker::define(Shared& known, const Piece& piece, const std::string& name, bool weak, bool isKernel,
                        Problems& problems) {
  if (known.definer && !known.weak && !weak) {
    problems.lines.push_back("Multiple definition of " + quoted(name) + " in " + quoted(piece.name) +
                             ", first defined in " + quoted(known.definer->name));
    problems.ofKernels |= isKernel;
  }
  if (known.definer && weak) return;
  known.definer = &piece;
  known.weak = weak;
}

std::vector<std::string> TextLinker::undefined() const {
  std::vector<std::string> lines;
  for (const auto& [name, known] : shared) {
    if (known.definer || (known.function && isBuiltin(name))) continue;
    for (const auto& piece : pieces)
      if (!piece->locals.contains(name) && refersTo(piece->declarations, name))
        lines.push_back("Undefined reference to " + quoted(name) + " in " + quoted(piece->name));
  }
  return lines;
}

// The module's local names that another module has too, with their new names.
std::map<std::string_view, std::string> TextLinker::renamed(size_t piece) const {
  std::map<std::string_view, std::string> names;
  for (const std::string_view name : pieces[piece]->locals) {
    bool elsewhere = shared.contains(name);
    for (size_t i = 0; i < pieces.size() && !elsewhere; ++i) elsewhere = i != piece && pieces[i]->locals.contains(name);
    if (elsewhere) names.emplace(name, std::string(name) + "$in" + std::to_string(piece));
  }
  return names;
}

std::string TextLinker::linked() const {
  int version = 75, target = 75, files = 0;  // at least these, also for an empty link
  for (const auto& piece : pieces) {
    version = std::max(version, piece->declarations.version);
    target = std::max(target, piece->declarations.target);
  }
  std::string text = ".version " + std::to_string(version / 10) + "." + std::to_string(version % 10) + "\n.target sm_" +
                     std::to_string(target) + "\n.address_size 64\n";
  for (size_t i = 0; i < pieces.size(); ++i) append(text, i, files);
  return text;
}

// Appends the module's text without its header, with its local names and file numbers replaced.
void TextLinker::append(std::string& to, size_t index, int& files) const {
  const Piece& piece = *pieces[index];
  const std::string_view text = piece.text;
  const std::map<std::string_view, std::string> names = renamed(index);
  Lexer lexer(text);
  size_t copied = 0;
  const auto replace = [&](const Token& token, std::string_view by) {
    const auto at = static_cast<size_t>(token.text.data() - text.data());
    to.append(text.substr(copied, at - copied)).append(by);
    copied = at + token.text.size();
  };
  for (Token token = lexer.next(), before; token.kind != Token::Kind::end; before = token, token = lexer.next()) {
    if (token.is(".version") || token.is(".target") || token.is(".address_size")) {
      replace(token, "");
      lexer.skipLine(token);
      copied = lexer.position();
    } else if (token.kind == Token::Kind::word) {
      if (const auto found = names.find(token.text); found != names.end()) replace(token, found->second);
    } else if (token.kind == Token::Kind::number &&
               (before.is(".file") || before.is(".loc") || before.is("inlined_at"))) {
      int number = 0;
      std::from_chars(token.text.data(), token.text.data() + token.text.size(), number);
      replace(token, std::to_string(number + files));
    }
  }
  to.append(text.substr(copied)) += '\n';
  if (!piece.declarations.files.empty()) files += piece.declarations.files.rbegin()->first + 1;
}

}  // namespace vgpu::emulator
