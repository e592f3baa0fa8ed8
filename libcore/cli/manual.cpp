#include "cli/manual.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "cli/output.h"
#include "cli/text.h"

namespace loongforge::cli {
namespace {

constexpr int kWidth = 80, kIndent = 4, kTagIndent = 8;

// "\-" is a hyphen, "\&" nothing, "\e" a backslash: the escapes that the pages use.
std::string unescape(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      result += text[i];
    } else if (const char next = text[++i]; next == 'e') {
      result += '\\';
    } else if (next != '&') {
      result += next;
    }
  }
  return result;
}

// Words of a macro line; a quoted word may hold spaces.
std::vector<std::string> macro_words(std::string_view line) {
  std::vector<std::string> words;
  for (size_t i = 0; i < line.size();) {
    if (line[i] == ' ') {
      ++i;
    } else if (line[i] == '"') {
      const size_t end = std::min(line.find('"', i + 1), line.size());
      words.emplace_back(line.substr(i + 1, end - i - 1));
      i = end + 1;
    } else {
      const size_t end = std::min(line.find(' ', i), line.size());
      words.emplace_back(line.substr(i, end - i));
      i = end;
    }
  }
  return words;
}

bool is_closing(const std::string& word) {
  return word.size() == 1 && std::string_view(".,;:)]?!").find(word[0]) != std::string_view::npos;
}
bool is_opening(const std::string& word) { return word == "(" || word == "["; }

// Macros that only choose a font.
bool is_plain_macro(const std::string& word) {
  for (const char* name : {"Ar", "Cm", "Ev", "Pa", "Em", "Sy", "No", "Nm", "Li", "Sx", "Va"})
    if (word == name) return true;
  return false;
}

class Renderer {
 public:
  Renderer(std::string_view page, std::string where) : page_(page), where_(std::move(where)) {}

  std::string run() {
    while (!page_.empty()) {
      const size_t end = page_.find('\n');
      const std::string_view line = page_.substr(0, end);
      page_.remove_prefix(end == std::string_view::npos ? page_.size() : end + 1);
      ++line_;
      if (line.starts_with(".\\\"")) continue;  // a comment
      if (literal_ && line != ".Ed")
        out_ += std::string(static_cast<size_t>(indent() + 4), ' ') + unescape(line) + "\n";
      else if (line.starts_with("."))
        macro(macro_words(line.substr(1)));
      else
        add(unescape(line));
    }
    flush();
    return std::move(out_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw_bad_data(where_ + ":" + std::to_string(line_), what,
                   "write the page in the subset of mdoc that cli/manual.cpp renders");
  }

  int indent() const { return kIndent + kTagIndent * depth_; }

  void add(const std::string& text) {
    if (text.empty()) return;
    if (!paragraph_.empty()) paragraph_ += ' ';
    paragraph_ += text;
  }

  void flush() {
    if (paragraph_.empty()) return;
    const auto margin = static_cast<size_t>(indent());
    out_ += std::string(margin, ' ') + wrap(paragraph_, kWidth - indent(), indent()) + "\n";
    paragraph_.clear();
  }

  void blank_line() {
    flush();
    if (out_.size() != title_end_ && !out_.ends_with("\n\n") && !out_.empty()) out_ += '\n';
  }

  void macro(std::vector<std::string> words) {
    if (words.empty()) return;
    const std::string name = words.front();
    if (name == "Dd" || name == "Os") return;
    if (name == "Dt") {
      for (size_t i = 1; i < words.size(); ++i)
        out_ += words[i] + (i + 1 < words.size() ? "(" : ")\n");
    } else if (name == "Sh" || name == "Ss") {
      if (depth_ > 0) fail("." + name + " inside a list");
      blank_line();
      std::string title;
      for (size_t i = 1; i < words.size(); ++i) title += (i > 1 ? " " : "") + words[i];
      out_ += (name == "Ss" ? "  " : "") + title + "\n";
      title_end_ = out_.size();
    } else if (name == "Pp") {
      blank_line();
    } else if (name == "Nd") {
      words.front() = "-";
      add(inline_text(words, 0));
    } else if (name == "Bd") {
      blank_line();
      literal_ = true;
    } else if (name == "Ed") {
      literal_ = false;
    } else if (name == "Dl") {
      flush();
      out_ += std::string(static_cast<size_t>(indent() + 4), ' ') + inline_text(words, 1) + "\n";
    } else if (name == "Bl" || name == "It" || name == "El") {
      list(name, words);
    } else {
      add(inline_text(words, 0));
    }
  }

  void list(const std::string& name, const std::vector<std::string>& words) {
    if (name == "Bl") {
      blank_line();
      ++depth_;
      return;
    }
    if (depth_ == 0) fail("." + name + " outside a list");
    flush();
    if (name == "El") {
      --depth_;
      return;
    }
    --depth_;  // the tag stands at the list's own margin
    add(inline_text(words, 1));
    flush();
    ++depth_;
  }

  // The words from `at` on, with the inline macros among them.
  std::string inline_text(const std::vector<std::string>& words, size_t at) {
    std::string text, closing;  // closing: what ends the enclosure that is open
    std::string before, after;  // around the next word
    bool join = true;
    const auto put = [&](const std::string& word) {
      if (!join && !is_closing(word)) text += ' ';
      text += word;
      join = is_opening(word);
    };
    for (; at < words.size(); ++at) {
      const std::string& word = words[at];
      const bool alone = at + 1 == words.size() || is_closing(words[at + 1]);
      if (word == "Fl") {
        before = "-";
      } else if (word == "Ql") {
        before = after = "'";
      } else if (word == "Op" || word == "Dq") {
        put(word == "Op" ? "[" : "\"");
        join = true;
        closing = (word == "Op" ? "]" : "\"") + closing;
      } else if (word == "Ns") {
        join = true;
      } else if (word == "Nm" && alone) {
        put("loongforge");
      } else if (word == "Xr") {
        if (at + 2 >= words.size()) fail("Xr needs a page and a section");
        put(words[at + 1] + "(" + words[at + 2] + ")");
        at += 2;
      } else if (is_plain_macro(word)) {
        before = after = "";
      } else if (is_closing(word)) {
        text += std::exchange(closing, "");
        put(word);
      } else {
        if (at == 0 && word != "-") fail("unknown macro ." + word);
        put(std::exchange(before, "") + unescape(word) + std::exchange(after, ""));
      }
    }
    return text + closing;
  }

  std::string_view page_;
  std::string where_, out_, paragraph_;
  int line_ = 0, depth_ = 0;
  size_t title_end_ = 0;  // out_.size() behind the last heading: no blank line there
  bool literal_ = false;
};

}  // namespace

std::filesystem::path manual_path(const std::string& page) {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return {};
  const std::string section = page.substr(page.rfind('.') + 1);
  return program.parent_path().parent_path() / "share" / "man" / ("man" + section) / page;
}

std::string plain_text(std::string_view mdoc, const std::string& where) {
  return Renderer(mdoc, where).run();
}

bool show_manual(const std::string& page) {
  const std::filesystem::path path = manual_path(page);
  std::error_code error;
  if (path.empty() || !std::filesystem::is_regular_file(path, error)) return false;
  if (isatty(STDOUT_FILENO) == 1) {
    signal(SIGPIPE, SIG_DFL);  // man's pager expects it
    execlp("man", "man", path.c_str(), static_cast<char*>(nullptr));
    signal(SIGPIPE, SIG_IGN);  // no man here: the plain text
  }
  print(plain_text(read_text(path), path.string()));
  return true;
}

}  // namespace loongforge::cli
