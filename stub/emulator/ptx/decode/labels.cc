// Labels of a body, in their scopes, and directives named by labels: prototypes and tables of targets.
#include "stub/emulator/ptx/decode/decoder.h"
#include "stub/emulator/ptx/decode/linker.h"

namespace vgpu::emulator {

bool Decoder::labelled(Lexer& lexer) {
  Lexer ahead = lexer;
  const Token name = ahead.next();
  if (name.kind != Token::Kind::word || !ahead.accept(":")) return false;
  lexer = ahead;
  const Token following = lexer.peek();
  if (following.is(".callprototype") || following.is(".branchtargets") || following.is(".calltargets")) {
    prototypeOrTargets(lexer, name.text);
    return true;
  }
  const int label = labelOf(name.text, name.line, true);
  if (body.labels[label] >= 0) invalid(name.line, "label '" + std::string(name.text) + "' is defined twice");
  builder.place(label);
  return true;
}

void Decoder::prototypeOrTargets(Lexer& lexer, std::string_view name) {
  const Token directive = lexer.next();
  Symbol symbol{Symbol::Kind::prototype};
  if (directive.is(".branchtargets")) {
    symbol.kind = Symbol::Kind::targets;
    do {
      const Token label = lexer.expectWord("a label");
      symbol.labels.push_back(labelOf(label.text, label.line));
    } while (lexer.accept(","));
    lexer.expect(";");
  } else if (directive.is(".calltargets")) {
    do {
      const Token target = lexer.expectWord("a function's name");
      const FunctionDecl* decl = kernelLinker.findFunction(target.text);
      if (!decl) invalid(target.line, "'" + std::string(target.text) + "' is not a function");
      kernelLinker.noteAddress(*decl);
      symbol.prototype = decl;
    } while (lexer.accept(","));
    lexer.expect(";");
  } else {
    FunctionDecl& prototype = prototypes.emplace_back();
    prototype.name = name;
    if (lexer.accept("(")) prototype.results = parseParameters(lexer);
    lexer.expectWord("'_'");
    if (lexer.accept("(")) prototype.parameters = parseParameters(lexer);
    symbol.prototype = &prototype;
    while (!lexer.next().is(";"))  // .noreturn, .abi_preserve: hints for a compiler
      if (lexer.atEnd()) invalid(directive.line, "expected ';'");
  }
  scope().symbols[name] = symbol;
}

int Decoder::labelOf(std::string_view name, int line, bool defines) {
  const auto here = scope().symbols.find(name);
  if (here != scope().symbols.end() && here->second.kind == Symbol::Kind::label) return here->second.label;
  if (!defines)
    for (auto outer = scopes.rbegin() + 1; outer != scopes.rend(); ++outer) {
      const auto found = (*outer)->symbols.find(name);
      if (found != (*outer)->symbols.end() && found->second.kind == Symbol::Kind::label &&
          body.labels[found->second.label] >= 0)
        return found->second.label;
    }
  Symbol symbol{Symbol::Kind::label};
  symbol.label = builder.newLabel();
  scope().symbols[name] = symbol;
  pendingLabels.back().push_back({name, {symbol.label, line, name}});
  return symbol.label;
}

// A label used in an inner scope is the same as one of that name in an outer scope: both get one place once it is known.
void Decoder::mergeLabel(int inner, int outer) {
  if (inner != outer) merged.push_back({inner, outer});
}

void Decoder::placeMerged() {
  for (auto merge = merged.rbegin(); merge != merged.rend(); ++merge)
    if (body.labels[merge->first] < 0) body.labels[merge->first] = body.labels[merge->second];
}

// Labels that were used but not defined in this scope may be defined in an outer one.
void Decoder::closeScope() {
  auto pending = std::move(pendingLabels.back());
  pendingLabels.pop_back();
  const auto closed = std::move(scopes.back());
  scopes.pop_back();
  for (auto& [name, use] : pending) {
    if (body.labels[use.label] >= 0) continue;
    if (scopes.empty()) {
      placeMerged();
      if (body.labels[use.label] >= 0) continue;
      invalid(use.line, "there is no label '" + std::string(name) + "'");
    }
    const auto outer = scope().symbols.find(name);
    if (outer != scope().symbols.end() && outer->second.kind == Symbol::Kind::label) {
      mergeLabel(use.label, outer->second.label);
    } else {
      Symbol symbol{Symbol::Kind::label};
      symbol.label = use.label;
      scope().symbols[name] = symbol;
    }
    pendingLabels.back().push_back({name, use});
  }
}

}  // namespace vgpu::emulator
