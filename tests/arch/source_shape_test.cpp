// Sizes and bytes of the sources: a .cpp of at most 800 lines, functions of at most 80, ASCII
// outside of test data.
#include <doctest/doctest.h>

#include "arch/sources.h"

namespace loongforge::test {
namespace {

constexpr size_t kLongestFile = 800, kLongestFunction = 80, kLongestLine = 100;

// The source with comments, literals and preprocessor lines blanked, its line breaks kept.
std::string code_only(const std::string& text) {
  std::string code = text;
  const auto blank = [&](size_t from, size_t to) {
    for (size_t i = from; i < to && i < code.size(); ++i)
      if (code[i] != '\n') code[i] = ' ';
  };
  bool line_start = true;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    size_t end = i + 1;
    if (line_start && c == '#') {
      end = text.find('\n', i);
      while (end != std::string::npos && end > 0 && text[end - 1] == '\\')
        end = text.find('\n', end + 1);
      end = std::min(end, text.size());
      blank(i, end);
    } else if (text.compare(i, 2, "//") == 0) {
      end = std::min(text.find('\n', i), text.size());
      blank(i, end);
    } else if (text.compare(i, 2, "/*") == 0) {
      end = std::min(text.find("*/", i + 2), text.size() - 2) + 2;
      blank(i, end);
    } else if (text.compare(i, 2, "R\"") == 0) {
      const size_t open = text.find('(', i);
      const std::string close = ")" + text.substr(i + 2, open - i - 2) + "\"";
      end = std::min(text.find(close, open), text.size() - close.size()) + close.size();
      blank(i, end);
    } else if (c == '"' ||
               (c == '\'' &&
                (i == 0 || std::isalnum(static_cast<unsigned char>(text[i - 1])) == 0))) {
      while (end < text.size() && text[end] != c && text[end] != '\n')
        end += text[end] == '\\' ? 2 : 1;
      blank(i, ++end);
    }
    line_start = c == '\n' || (line_start && (c == ' ' || c == '\t'));
    i = end;
  }
  return code;
}

struct Function {
  size_t line, lines;
};

// What opens a brace, from the text since the last statement: a scope that holds functions, a
// function, or neither.
enum class Kind { kScope, kFunction, kOther };

Kind kind_of(const std::string& head) {
  const auto has_word = [&](const char* word) {
    for (size_t at = head.find(word); at != std::string::npos; at = head.find(word, at + 1)) {
      const auto is_name = [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
      };
      const size_t end = at + std::string(word).size();
      if ((at == 0 || !is_name(head[at - 1])) && (end >= head.size() || !is_name(head[end])))
        return true;
    }
    return false;
  };
  const bool has_parameters = head.find(')') != std::string::npos;
  if (has_word("namespace") || has_word("extern")) return Kind::kScope;
  if (!has_parameters && (has_word("class") || has_word("struct") || has_word("union")))
    return Kind::kScope;
  if (has_word("enum")) return Kind::kOther;
  const size_t last = head.find_last_not_of(" \n\t");
  if (last == std::string::npos || head[last] == '=' || !has_parameters)
    return has_word("class") || has_word("struct") ? Kind::kScope : Kind::kOther;
  return Kind::kFunction;
}

std::vector<Function> functions_of(const std::string& code) {
  std::vector<Function> found;
  std::vector<Kind> open;
  std::string head;
  size_t line = 1, head_line = 1;
  size_t depth_in_function = 0, start = 0;
  for (const char c : code) {
    if (c == '\n') ++line;
    if (depth_in_function > 0) {
      if (c == '{') ++depth_in_function;
      if (c == '}' && --depth_in_function == 0) {
        found.push_back({start, line - start + 1});
        head.clear();
      }
      continue;
    }
    if (c == '{') {
      const Kind kind = kind_of(head);
      if (kind == Kind::kFunction) {
        depth_in_function = 1;
        start = head_line;
      } else {
        open.push_back(kind);
      }
      head.clear();
    } else if (c == '}') {
      if (!open.empty()) open.pop_back();
      head.clear();
    } else if (c == ';') {
      head.clear();
    } else {
      if (head.find_first_not_of(" \n\t") == std::string::npos) head_line = line;
      head += c;
    }
  }
  return found;
}

TEST_CASE("the measuring itself finds functions and their lengths") {
  const std::string text =
      "namespace a {\nstruct S {\n  int f() const {\n    return 1;\n  }\n};\nconst int t[] = "
      "{\n1,\n};\n"
      "// {\ntemplate <class T>\nvoid g(T x,\n       int y) {\n  const char* s = \"}\"; if (x) { "
      "y(); }\n}\n}\n";
  const std::vector<Function> functions = functions_of(code_only(text));
  REQUIRE(functions.size() == 2);
  CHECK(functions[0].line == 3);
  CHECK(functions[0].lines == 3);
  CHECK(functions[1].line == 11);
  CHECK(functions[1].lines == 5);
}

TEST_CASE("no .cpp is longer than 800 lines, no function longer than 80") {
  size_t functions = 0;
  for (const char* folder : {"libcore", "cmd"})
    for (const std::string& file : files_under(folder, {".cpp", ".h"})) {
      const std::string text = slurp(source_root() / file);
      const auto lines = static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
      if (file.ends_with(".cpp"))
        CHECK_MESSAGE(lines <= kLongestFile, file << " has " << lines << " lines");
      for (const Function& function : functions_of(code_only(text))) {
        ++functions;
        CHECK_MESSAGE(function.lines <= kLongestFunction, file << ":" << function.line
                                                               << ": a function of "
                                                               << function.lines << " lines");
      }
    }
  CHECK(functions > 300);
}

TEST_CASE("no line is longer than 100 columns") {
  for (const char* folder : {"libcore", "cmd"})
    for (const std::string& file : files_under(folder, {".cpp", ".h"})) {
      size_t number = 0;
      for (const std::string& line : lines_of(source_root() / file)) {
        ++number;
        CHECK_MESSAGE(line.size() <= kLongestLine, file << ":" << number << ": format it");
      }
    }
}

TEST_CASE("sources are ASCII") {
  for (const char* folder : {"libcore", "cmd", "tests", "man"})
    for (const std::string& file :
         files_under(folder, {".cpp", ".h", ".def", ".txt", ".1", ".3", ".5", ".md"})) {
      if (file.starts_with("tests/data/")) continue;
      size_t line = 1;
      bool ascii = true;
      for (const char c : slurp(source_root() / file)) {
        if (c == '\n') ++line;
        if (static_cast<unsigned char>(c) < 0x80) continue;
        ascii = false;
        break;
      }
      CHECK_MESSAGE(ascii, file << ":" << line << ": not ASCII");
    }
}

// The tests of saving count, fail and stop at each step that base/file_ops.h makes: one that goes
// round it is not tested.
TEST_CASE("files are made, renamed and removed through base") {
  for (const std::string& file : files_under("libcore", {".cpp", ".h"})) {
    if (file.starts_with("libcore/base/")) continue;
    const std::string code = code_only(slurp(source_root() / file));
    for (const char* way :
         {"ofstream", "fopen(", "fs::rename(", "filesystem::rename(", "create_director",
          "copy_file", "fs::copy(", "remove_all(", "create_symlink", "mkdir("})
      CHECK_MESSAGE(code.find(way) == std::string::npos, file << ": " << way);
  }
}

}  // namespace
}  // namespace loongforge::test
