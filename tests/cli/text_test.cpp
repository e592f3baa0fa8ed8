#include "cli/text.h"

#include <doctest/doctest.h>

namespace loongforge::cli {
namespace {

TEST_CASE("sizes, counts and durations") {
  CHECK(human_bytes(0) == "0 B");
  CHECK(human_bytes(999) == "999 B");
  CHECK(human_bytes(1000) == "1.0 kB");
  CHECK(human_bytes(999949) == "999.9 kB");
  CHECK(human_bytes(999950) == "1.0 MB");
  CHECK(human_bytes(5000000000) == "5.0 GB");
  CHECK(human_bytes(UINT64_MAX) == "18.4 EB");
  CHECK(human_count(7) == "7");
  CHECK(human_count(1000) == "1,000");
  CHECK(human_count(134515008) == "134,515,008");
  CHECK(human_duration(-1) == "0s");
  CHECK(human_duration(0.82) == "0.8s");
  CHECK(human_duration(42) == "42s");
  CHECK(human_duration(185) == "3m 05s");
  CHECK(human_duration(7620) == "2h 07m");
  CHECK(human_duration(273600) == "3d 04h");
  CHECK(human_duration(1e300).ends_with("h"));
}

TEST_CASE("widths count columns of a terminal, not bytes") {
  CHECK(display_width("abc") == 3);
  CHECK(display_width("\xE9\xBE\x99\xE8\x8A\xAF") == 4);  // two CJK characters
  CHECK(display_width("e\xCC\x81") == 1);                 // a combining accent
  CHECK(display_width("\xFF\xFE") == 2);  // no UTF-8: one replacement character each
  CHECK(pad_right("\xE9\xBE\x99", 4) == "\xE9\xBE\x99  ");
  CHECK(pad_left("7", 3) == "  7");
  CHECK(pad_left("long", 2) == "long");
}

TEST_CASE("wrapping breaks at spaces and keeps long words whole") {
  CHECK(wrap("one two three", 7, 2) == "one two\n  three");
  CHECK(wrap("a-very-long-word b", 4, 0) == "a-very-long-word\nb");
  CHECK(wrap("", 10, 0).empty());
}

TEST_CASE("control bytes of a foreign name do not reach the terminal") {
  CHECK(one_line("a\x1b[2Jb\nc\x7f") == "a [2Jb c ");
}

TEST_CASE("tables: text columns left, numeric columns right, no trailing spaces") {
  Table table({"name", "count"});
  table.add({"a", "5"});
  table.add({"longer", "1,000"});
  CHECK(table.render() == "name    count\na           5\nlonger  1,000\n");
}

}  // namespace
}  // namespace loongforge::cli
