#include "cli/manual.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "base/file.h"
#include "cli/text.h"
#include "support/places.h"

namespace loongforge::cli {
namespace {

TEST_CASE("mdoc becomes plain text") {
  CHECK(plain_text(".Dd November 29, 2026\n.Dt DEMO 1\n.Os\n.Sh NAME\n.Nm demo\n.Nd show a thing\n",
                   "p") == "DEMO(1)\n\nNAME\n    demo - show a thing\n");
  CHECK(plain_text(".Sh SYNOPSIS\n.Nm demo\n.Fl -to Ar path\n.Op Fl -dry_run\n.Op Fl -n Ar N\n",
                   "p") == "SYNOPSIS\n    demo --to path [--dry_run] [--n N]\n");
  CHECK(plain_text(".Sh X\nSee\n.Xr demo 1 ,\n.Ql it's\nand\n.Ev HOME .\n", "p") ==
        "X\n    See demo(1), 'it's' and HOME.\n");
  CHECK(plain_text(".Sh X\n.Bl -tag -width Ds\n.It Fl -a Ar N\nText.\n.Pp\nMore.\n.El\nAfter.\n",
                   "p") == "X\n    --a N\n            Text.\n\n            More.\n    After.\n");
  CHECK(plain_text(".Sh X\n.Bd -literal\ncode \\e\n.not a macro\n.Ed\n", "p") ==
        "X\n        code \\\n        .not a macro\n");
  CHECK(plain_text(".Sh X\n.Dq two words ,\nof\n.Va name\n.Li 0 ;\n.Sx X .\n", "p") ==
        "X\n    \"two words\", of name 0; X.\n");
  CHECK(plain_text(".\\\" a comment\n.Sh X\n\\&.dot a\\-b\n", "p") == "X\n    .dot a-b\n");
}

TEST_CASE("a macro outside the subset is an error that names page and line") {
  CHECK_THROWS_WITH_AS(plain_text(".Sh X\n.Bogus y\n", "page.1"),
                       "page.1:2: unknown macro .Bogus; write the page in the subset of mdoc that "
                       "cli/manual.cpp renders",
                       Error);
  CHECK_THROWS_AS(plain_text(".It x\n", "p"), Error);
  CHECK_THROWS_AS(plain_text(".Xr alone\n", "p"), Error);
}

TEST_CASE("every page fits 80 columns, its examples and tables included") {
  for (const auto& page : std::filesystem::directory_iterator(test::source_dir() / "man")) {
    const std::string text = plain_text(read_text(page.path()), page.path().string());
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      const std::string line = text.substr(at, end - at);
      CAPTURE(page.path().filename().string());
      CAPTURE(line);
      CHECK(display_width(line) <= 80);
      at = end + 1;
    }
  }
}

TEST_CASE("pages stand in share/man beside the program's folder") {
  CHECK(manual_path("loongforge-train.1").string().ends_with("/share/man/man1/loongforge-train.1"));
}

}  // namespace
}  // namespace loongforge::cli
