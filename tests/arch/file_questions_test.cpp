// std::filesystem's functions throw errors that no command knows ("internal error"): libcore and
// cmd ask through base/paths.h, or with an error_code.
#include <doctest/doctest.h>

#include <regex>

#include "arch/sources.h"

namespace loongforge::test {
namespace {

// The calls in a source's text that can throw, by "function(arguments)".
std::vector<std::string> throwing_calls(const std::string& text) {
  static const std::regex call(
      "(?:fs|std::filesystem)::(exists|is_[a-z_]+|file_size|status|symlink_status|create_[a-z_]+|"
      "remove|remove_all|rename|canonical|weakly_canonical|absolute|relative|proximate|current_"
      "path|"
      "copy|copy_file|read_symlink|equivalent|space|last_write_time|permissions|resize_file|"
      "temp_directory_path|hard_link_count|(?:recursive_)?directory_iterator(?: [a-z_]+)?)\\(");
  static const std::regex error_code("\\b(error|failed|ignored|none)\\b");
  std::vector<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), call), end; it != end; ++it) {
    const size_t begin = static_cast<size_t>(it->position()) + it->str().size();
    size_t at = begin;
    for (int depth = 1; at < text.size() && depth > 0; ++at)
      depth += text[at] == '(' ? 1 : text[at] == ')' ? -1 : 0;
    const std::string arguments = text.substr(begin, at - begin);
    if (!std::regex_search(arguments, error_code)) found.push_back(it->str() + arguments);
  }
  // Its questions throw as well.
  if (text.find("directory_entry") != std::string::npos) found.push_back("directory_entry");
  return found;
}

}  // namespace

TEST_CASE("no throwing question to the file system in libcore and cmd") {
  CHECK(throwing_calls("if (fs::exists(path / name(x))) f(error);").size() == 1);
  CHECK(throwing_calls("fs::directory_iterator(folder)").size() == 1);
  CHECK(throwing_calls("fs::directory_iterator it(folder)").size() == 1);
  CHECK(throwing_calls("std::filesystem::absolute(a, error) fs::path b(c)").empty());
  for (const char* folder : {"libcore", "cmd"})
    for (const std::string& file : files_under(folder, {".cpp", ".h"}))
      for (const std::string& call : throwing_calls(slurp(source_root() / file)))
        FAIL_CHECK(file << ": " << call << ": ask through base/paths.h");
}

}  // namespace loongforge::test
