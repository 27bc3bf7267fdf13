// One pass over a module's text: finds every declaration, and for each function the beginning and end of its body.
#include <charconv>

#include "stub/emulator/ptx/text/declarations.h"
#include "stub/emulator/ptx/text/lexer.h"

namespace vgpu::emulator {
namespace {

int parseDecimal(std::string_view text, int line) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc())
    throw PtxError(PtxError::Kind::invalid, line, "expected a number, found '" + std::string(text) + "'");
  return value;
}

class Scanner {
 public:
  explicit Scanner(std::string_view text) : lexer(text) {}

  Declarations run() {
    for (Token token = lexer.next(); token.kind != Token::Kind::end; token = lexer.next()) directive(token);
    if (found.version == 0) throw PtxError(PtxError::Kind::invalid, 1, "no .version: this is not PTX");
    index();
    return std::move(found);
  }

 private:
  void directive(const Token& token) {
    if (token.is(".version")) return version();
    if (token.is(".target")) return target();
    if (token.is(".file")) return file(token);
    if (token.is(".loc")) return lexer.skipLine(token);
    if (token.is(".section")) return section();
    if (token.is(".alias")) return alias();
    if (token.is(".address_size")) {
      const Token size = lexer.next();
      if (!size.is("64"))
        throw PtxError(PtxError::Kind::unsupported, size.line,
                       ".address_size " + std::string(size.text) + ": only 64 is supported");
      return;
    }
    if (token.is(".pragma")) return skipStatement();
    if (token.is(";")) return;
    declaration(token);
  }

  void version() {
    const Token number = lexer.next();
    const size_t point = number.text.find('.');
    if (point == std::string_view::npos)
      throw PtxError(PtxError::Kind::invalid, number.line, "expected a version such as 9.0");
    if (number.text.size() > 8) throw PtxError(PtxError::Kind::invalid, number.line, "expected a version such as 9.0");
    found.version = parseDecimal(number.text.substr(0, point), number.line) * 10 +
                    parseDecimal(number.text.substr(point + 1), number.line);
  }

  void target() {
    const Token name = lexer.expectWord("a target");
    if (!name.text.starts_with("sm_"))
      throw PtxError(PtxError::Kind::invalid, name.line, "unknown target '" + std::string(name.text) + "'");
    found.target = parseDecimal(name.text.substr(3), name.line);
    while (lexer.accept(",")) lexer.expectWord("a target option");
  }

  void file(const Token& token) {
    const int number = parseDecimal(lexer.next().text, token.line);
    found.files[number] = lexer.next().text;
    lexer.skipLine(token);
  }

  void section() {
    lexer.next();
    lexer.expect("{");
    lexer.skipBlock();
  }

  void alias() {
    const std::string_view name = lexer.expectWord("a name").text;
    lexer.expect(",");
    found.aliases[name] = lexer.expectWord("a name").text;
    lexer.expect(";");
  }

  void skipStatement() {
    for (Token token = lexer.next(); !token.is(";"); token = lexer.next())
      if (token.kind == Token::Kind::end) throw PtxError(PtxError::Kind::invalid, token.line, "expected ';'");
  }

  struct Linkage {
    bool isExtern = false, isWeak = false, isVisible = false;
  };

  void declaration(Token token) {
    Linkage linkage;
    const int line = token.line;
    while (token.is(".visible") || token.is(".extern") || token.is(".weak") || token.is(".common")) {
      linkage.isExtern |= token.is(".extern");
      linkage.isWeak |= token.is(".weak") || token.is(".common");
      linkage.isVisible |= token.is(".visible");
      token = lexer.next();
    }
    if (token.is(".func") || token.is(".entry")) return function(token.is(".entry"), linkage, line);
    const auto space = findSpace(token.text);
    if (!space || *space == Space::reg || *space == Space::param)
      throw PtxError(PtxError::Kind::invalid, token.line,
                     "unexpected '" + std::string(token.text) + "' outside a function");
    for (VariableDecl& variable : parseVariables(lexer, *space, line)) {
      variable.isExtern = linkage.isExtern;
      variable.isWeak = linkage.isWeak;
      variable.isVisible = linkage.isVisible;
      found.variables.push_back(std::move(variable));
    }
  }

  void function(bool isKernel, const Linkage& linkage, int line) {
    FunctionDecl decl;
    decl.isKernel = isKernel;
    decl.isExtern = linkage.isExtern;
    decl.isWeak = linkage.isWeak;
    decl.isVisible = linkage.isVisible;
    decl.line = line;
    while (lexer.peek().is(".attribute")) skipAttribute();
    if (!isKernel && lexer.accept("(")) decl.results = parseParameters(lexer);
    decl.name = lexer.expectWord("a function's name").text;
    if (lexer.accept("(")) decl.parameters = parseParameters(lexer);
    while (!lexer.peek().is("{") && !lexer.peek().is(";")) performanceDirective(decl);
    if (lexer.next().is("{")) {
      decl.hasBody = true;
      decl.bodyLine = lexer.line();
      decl.body = lexer.skipBlock();
      statics(decl);
    }
    found.functions.push_back(std::move(decl));
  }

  void skipAttribute() {
    lexer.next();
    lexer.expect("(");
    while (!lexer.accept(")"))
      if (lexer.next().kind == Token::Kind::end) throw PtxError(PtxError::Kind::invalid, lexer.line(), "expected ')'");
  }

  void performanceDirective(FunctionDecl& decl) {
    const Token token = lexer.next();
    if (token.kind == Token::Kind::end)
      throw PtxError(PtxError::Kind::invalid, token.line, "expected a function's body");
    if (token.is(".maxntid") || token.is(".reqntid")) {
      uint64_t threads = parseConstant(lexer);
      while (lexer.accept(",")) threads *= parseConstant(lexer);
      decl.maxThreads = static_cast<uint32_t>(std::min<uint64_t>(threads, 1024));
    }
    if (token.is(".maxnreg")) decl.mostRegisters = static_cast<uint32_t>(std::min<uint64_t>(parseConstant(lexer), 255));
    if (token.is(".minnctapersm")) decl.blocksAtOnce = static_cast<uint32_t>(std::min<uint64_t>(parseConstant(lexer), 64));
    if (token.is(".pragma")) skipStatement();
    if (token.is(".explicitcluster")) decl.explicitCluster = true;
    if (token.is(".reqnctapercluster")) {
      decl.cluster = {1, 1, 1};
      size_t axis = 0;
      do {
        if (axis < 3) decl.cluster[axis++] = static_cast<uint32_t>(std::max<uint64_t>(1, parseConstant(lexer)));
      } while (lexer.accept(","));
    }
    // The others (.noreturn, …) are hints for a compiler and have no observable effect.
  }

  // Finds .global and .const declarations inside a body: they belong to the image, which is laid out before any body is parsed. Only a word
  // at the beginning of a statement can be a declaration.
  void statics(FunctionDecl& decl) {
    for (std::string_view word : {".global", ".const"}) {
      for (size_t at = decl.body.find(word); at != std::string_view::npos; at = decl.body.find(word, at + 1)) {
        const size_t before = decl.body.find_last_not_of(" \t\r", at - (at > 0));
        const bool begins = at == 0 || (before != std::string_view::npos && before < at &&
                                        std::string_view("\n;{}").find(decl.body[before]) != std::string_view::npos);
        const size_t after = at + word.size();
        if (!begins || after >= decl.body.size() ||
            (decl.body[after] != ' ' && decl.body[after] != '\t' && decl.body[after] != '.'))
          continue;
        Lexer inner(decl.body.substr(after), decl.bodyLine);
        for (VariableDecl& variable : parseVariables(inner, *findSpace(word), decl.bodyLine))
          decl.statics.push_back(std::move(variable));
      }
    }
  }

  // Definitions are preferred to declarations of the same name, strong ones to weak ones.
  void index() {
    for (size_t i = 0; i < found.variables.size(); ++i) {
      auto [entry, added] = found.variableIndex.emplace(found.variables[i].name, i);
      const VariableDecl &first = found.variables[entry->second], &other = found.variables[i];
      if (!added && (first.isExtern || (first.isWeak && !other.isWeak && !other.isExtern))) entry->second = i;
    }
    for (size_t i = 0; i < found.functions.size(); ++i) {
      auto [entry, added] = found.functionIndex.emplace(found.functions[i].name, i);
      const FunctionDecl &first = found.functions[entry->second], &other = found.functions[i];
      if (added || !other.hasBody || (first.hasBody && other.isWeak)) continue;
      if (first.hasBody && !first.isWeak)
        throw PtxError(PtxError::Kind::invalid, other.line, "'" + first.name + "' is defined twice");
      entry->second = i;
    }
  }

  Lexer lexer;
  Declarations found;
};

}  // namespace

std::optional<Space> findSpace(std::string_view word) {
  constexpr std::pair<std::string_view, Space> spaceNames[] = {{".reg", Space::reg},        {".global", Space::global},
                                                               {".const", Space::constant}, {".shared", Space::shared},
                                                               {".local", Space::local},    {".param", Space::param}};
  for (const auto& [name, space] : spaceNames)
    if (name == word) return space;
  return std::nullopt;
}

Declarations scan(std::string_view text) { return Scanner(text).run(); }

}  // namespace vgpu::emulator
