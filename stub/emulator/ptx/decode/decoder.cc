// Walks a body: handles scopes and declarations, and passes each statement to its family's decoder. Labels: labels.cc.
#include "stub/emulator/ptx/decode/decoder.h"

#include <charconv>

#include "stub/emulator/ptx/decode/linker.h"
#include "stub/emulator/ptx/run/handlers.h"
#include "stub/emulator/ptx/text/number.h"

namespace vgpu::emulator {
namespace {

constexpr int deepestScope = 200;
constexpr uint64_t mostInstructions = 1 << 24;  // of one function: limits what hostile text can cost

// Whether `name` occurs among the operands, at any depth.
bool mentions(const std::vector<Operand>& operands, std::string_view name) {
  for (const Operand& operand : operands)
    if (operand.name == name || mentions(operand.parts, name)) return true;
  return false;
}

// "%r12" -> ("%r", 12); nothing if the name does not end in digits.
std::optional<std::pair<std::string_view, uint64_t>> splitNumbered(std::string_view name) {
  size_t digits = name.size();
  while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
  if (digits == name.size() || name.size() - digits > 9) return std::nullopt;
  uint64_t number = 0;
  std::from_chars(name.data() + digits, name.data() + name.size(), number);
  return std::make_pair(name.substr(0, digits), number);
}

}  // namespace

const DecodeRow* findDecode(std::string_view mnemonic) {
  static const auto table = [] {
    std::unordered_map<std::string_view, const DecodeRow*> rows;
    for (const auto family :
         {moveDecodes(), arithmeticDecodes(), videoDecodes(), scalarVideoDecodes(), compareDecodes(), convertDecodes(), memoryDecodes(),
          controlDecodes(), warpDecodes(), asyncDecodes(), matrixDecodes(), warpgroupDecodes(), textureDecodes()})
      for (const DecodeRow& row : family) rows.emplace(row.mnemonic, &row);
    return rows;
  }();
  const auto found = table.find(mnemonic);
  return found == table.end() ? nullptr : found->second;
}

Decoder::Decoder(Linker& linker, const FunctionDecl& decl, Function& function)
    : kernelLinker(linker), declaration(decl), made(function), builder(body) {
  body.isKernel = decl.isKernel;
}

void Decoder::run() {
  scopes.push_back(std::make_unique<Scope>());
  pendingLabels.emplace_back();
  builder.line.ptx = declaration.bodyLine;
  parameters();
  Lexer lexer(declaration.body, declaration.bodyLine);
  while (!lexer.atEnd()) item(lexer);
  finish();
}

void Decoder::item(Lexer& lexer) {
  const Token token = lexer.peek();
  if (token.is("{")) return block(lexer);
  if (token.is(";")) {
    lexer.next();
    return;
  }
  if (token.kind == Token::Kind::word && token.text[0] == '.') {
    lexer.next();
    if (directive(lexer, token)) return;
    invalid(token.line, "unknown directive '" + std::string(token.text) + "'");
  }
  if (labelled(lexer)) return;
  Statement next = parseStatement(lexer);
  for (const auto& each : scopes)
    if (!each->vectors.empty()) {
      expandVectors(next.operands);
      break;
    }
  statement(next);
  if (body.code.size() > mostInstructions) invalid(token.line, "a function of more than 16 million instructions");
}

void Decoder::block(Lexer& lexer) {
  const int line = lexer.expect("{").line;
  if (++depth > deepestScope) invalid(line, "blocks nested too deep");
  scopes.push_back(std::make_unique<Scope>());
  pendingLabels.emplace_back();
  scope().fixedMark = builder.fixedMark();
  while (!lexer.accept("}")) {
    if (lexer.atEnd()) invalid(line, "the block that begins here has no end");
    item(lexer);
  }
  builder.releaseFixed(scope().fixedMark);
  closeScope();
  --depth;
}

bool Decoder::directive(Lexer& lexer, const Token& token) {
  if (token.is(".loc")) return location(lexer, token), true;
  if (token.is(".reg")) return registers(lexer), true;
  if (token.is(".param")) return localParameter(lexer, token.line), true;
  if (token.is(".pragma")) {
    while (!lexer.next().is(";"))
      if (lexer.atEnd()) invalid(token.line, "expected ';'");
    return true;
  }
  if (token.is(".branchtargets") || token.is(".calltargets") || token.is(".callprototype"))
    invalid(token.line, "'" + std::string(token.text) + "' needs a label");
  Token word = token;
  while (word.is(".extern") || word.is(".visible") || word.is(".weak")) word = lexer.next();
  const auto space = findSpace(word.text);
  if (!space || *space == Space::reg || *space == Space::param) return false;
  variables(lexer, *space, token.line);
  return true;
}

void Decoder::registers(Lexer& lexer) {
  Type type = Type::none;
  uint32_t elements = 1;
  while (lexer.peek().kind == Token::Kind::word && lexer.peek().text[0] == '.') {
    const Token token = lexer.next();
    if (token.is(".v2") || token.is(".v4"))
      elements = static_cast<uint32_t>(token.text[2] - '0');
    else if (const auto found = findType(token.text.substr(1)))
      type = *found;
    else
      invalid(token.line, "unknown register type '" + std::string(token.text) + "'");
  }
  do {
    const Token name = lexer.expectWord("a register's name");
    if (type == Type::none) invalid(name.line, "a register without a type");
    if (elements > 1) {
      vectorRegister(name, type, elements);
    } else if (lexer.accept("<")) {
      scope().ranges.push_back({name.text, parseWhole(lexer.next()), type});
      lexer.expect(">");
    } else {
      Symbol symbol{Symbol::Kind::reg, type};
      symbol.value = builder.reg(registerBytes(type));
      scope().symbols[name.text] = symbol;
    }
  } while (lexer.accept(","));
  lexer.expect(";");
}

// `.reg .v4 .f32 v;`: registers v.x to v.w, or v.r to v.a; the name v means all of them where a vector is expected.
void Decoder::vectorRegister(const Token& name, Type type, uint32_t elements) {
  std::vector<std::string_view> parts;
  for (uint32_t i = 0; i < elements; ++i) {
    Symbol symbol{Symbol::Kind::reg, type};
    symbol.value = builder.reg(registerBytes(type));
    for (const std::string_view letters : {"xyzw", "rgba"}) {
      names.push_back(std::string(name.text) + "." + letters[i]);
      scope().symbols[names.back()] = symbol;
    }
    parts.push_back(*(names.end() - 2));
  }
  scope().vectors[name.text] = parts;
}

// Replaces names of vectors by the lists of their elements.
void Decoder::expandVectors(std::vector<Operand>& operands) {
  for (Operand& operand : operands) {
    expandVectors(operand.parts);
    if (operand.kind != Operand::Kind::name) continue;
    for (auto each = scopes.rbegin(); each != scopes.rend(); ++each) {
      if ((*each)->symbols.contains(operand.name)) break;
      const auto found = (*each)->vectors.find(operand.name);
      if (found == (*each)->vectors.end()) continue;
      Operand vector;
      vector.kind = Operand::Kind::vector;
      vector.line = operand.line;
      for (const std::string_view part : found->second) {
        Operand element;
        element.name = part;
        element.line = operand.line;
        vector.parts.push_back(element);
      }
      operand = vector;
      break;
    }
  }
}

void Decoder::variables(Lexer& lexer, Space space, int line) {
  for (const VariableDecl& decl : parseVariables(lexer, space, line)) {
    Symbol symbol{Symbol::Kind::address, decl.type};
    symbol.space = space;
    std::string_view name;
    if (space == Space::local) {
      symbol.kind = Symbol::Kind::local;
      const uint64_t at = (uint64_t{localTop} + decl.align - 1) / decl.align * decl.align;
      if (at + decl.bytes > 512 * 1024) invalid(line, "more than 512 KiB of local variables");
      symbol.offset = at;
      localTop = static_cast<uint32_t>(at + decl.bytes);
    } else if (space == Space::shared) {
      symbol.kind = decl.unsizedArray ? Symbol::Kind::dynamicShared : Symbol::Kind::shared;
      if (decl.unsizedArray)
        kernelLinker.noteDynamicShared(decl.align);
      else
        symbol.offset = kernelLinker.sharedOffset(declaration.name + "::" + std::to_string(names.size()), decl.bytes, decl.align);
    } else {
      symbol.offset = kernelLinker.staticAddress(declaration, decl.name, space, staticsSeen[{space, decl.name}]++);
    }
    names.push_back(decl.name);
    name = names.back();
    scope().symbols[name] = symbol;
  }
}

// `.param .align 8 .b8 retval0[16];`: an argument or result of the calls in this scope.
void Decoder::localParameter(Lexer& lexer, int line) {
  for (const VariableDecl& decl : parseVariables(lexer, Space::param, line)) {
    if (decl.bytes > 32764) invalid(line, "a parameter of too many bytes");
    Symbol symbol{Symbol::Kind::parameter, decl.type};
    symbol.bytes = static_cast<uint32_t>(decl.bytes);
    symbol.offset = builder.reserveFixed(rowsOf(symbol.bytes));
    names.push_back(decl.name);
    scope().symbols[names.back()] = symbol;
  }
}

void Decoder::location(Lexer& lexer, const Token& token) {
  const Token file = lexer.next(), line = lexer.next();
  int number = 0, at = 0;
  std::from_chars(file.text.data(), file.text.data() + file.text.size(), number);
  std::from_chars(line.text.data(), line.text.data() + line.text.size(), at);
  // Line 0 means "no line": the previous one stays.
  if (at) builder.line.file = number, builder.line.line = at;
  lexer.skipLine(token);
}

int Decoder::epilogue() {
  if (epilogueLabel < 0) epilogueLabel = builder.newLabel();
  return epilogueLabel;
}

void Decoder::finish() {
  for (const ParameterDecl& result : declaration.results)
    if (result.space == Space::reg) epilogue();
  if (epilogueLabel >= 0) {
    builder.place(epilogueLabel);
    results();
    IrInst& inst = builder.add(returnCall, {}, {});
    inst.flow = IrInst::Flow::end;
  }
  while (!scopes.empty()) closeScope();
  made.localBytes = (localTop + 15) / 16 * 16;
  assemble(body, made);
}

const Symbol* Decoder::find(std::string_view name) {
  for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope) {
    const auto found = (*scope)->symbols.find(name);
    if (found != (*scope)->symbols.end()) return &found->second;
    const auto numbered = (*scope)->ranges.empty() ? std::nullopt : splitNumbered(name);
    if (!numbered) continue;
    for (const Range& range : (*scope)->ranges) {
      if (range.prefix != numbered->first || numbered->second >= range.count) continue;
      Symbol symbol{Symbol::Kind::reg, range.type};
      symbol.value = builder.reg(registerBytes(range.type));
      return &((*scope)->symbols[name] = symbol);
    }
  }
  return nullptr;
}

void Decoder::statement(const Statement& statement) {
  builder.line.ptx = statement.line;
  const DecodeRow* row = findDecode(statement.parts[0]);
  int skip = -1;
  if (!statement.guard.empty()) {
    const Symbol* guard = find(statement.guard);
    if (!guard || guard->kind != Symbol::Kind::reg || guard->type != Type::pred)
      invalid(statement.line, "'" + std::string(statement.guard) + "' is not a predicate");
    Value predicate = guard->value;
    if (row && row->isControl) {
      guardPredicate = predicate;
      guardNegated = statement.guardNegated;
      if (statement.parts[0] != "bra") {
        skip = builder.newLabel();
        builder.jumpIf(predicate, !statement.guardNegated, skip);
      }
    } else {
      // If a statement writes its own guard, all parts of it use the guard's old value.
      if (mentions(statement.operands, statement.guard)) {
        predicate = builder.reg(4);
        builder.move(predicate, guard->value);
      }
      builder.setGuard(predicate, statement.guardNegated);
    }
  }
  extensions.clear();
  if (row)
    row->decode(*this, statement);
  else if (!decodeLane(*this, statement))
    unsupported(statement);
  for (const Extension& extension : extensions) extend(extension);
  builder.clearGuard();
  guardPredicate = {};
  if (skip >= 0) builder.place(skip);
}

void Decoder::invalid(int line, const std::string& what) const {
  throw PtxError(PtxError::Kind::invalid, line, "in '" + declaration.name + "': " + what);
}
void Decoder::unsupported(const Statement& statement) const {
  unsupported(statement.line, "instruction '" + std::string(statement.opcode) + "'");
}
void Decoder::unsupported(int line, const std::string& what) const {
  throw PtxError(PtxError::Kind::unsupported, line,
                 "in '" + declaration.name + "': " + what + " is not supported by the emulated device");
}

}  // namespace vgpu::emulator
