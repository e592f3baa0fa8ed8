#include "cli/suggest.h"

#include <doctest/doctest.h>

#include <vector>

namespace loongforge::cli {
namespace {

TEST_CASE("edit distance: public examples, and swaps of neighbours count 1") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("saturday", "sunday") == 3);
  CHECK(edit_distance("flaw", "lawn") == 2);
  CHECK(edit_distance("train", "trian") == 1);
  CHECK(edit_distance("ca", "abc") ==
        3);  // optimal string alignment, not the unrestricted distance (2)
}

TEST_CASE("the nearest word, but no far-fetched one") {
  const std::vector<std::string> words{"convert", "train", "version"};
  CHECK(nearest("tarin", words) == "train");
  CHECK(nearest("CONVERT", words) == "convert");
  CHECK(nearest("verson", words) == "version");
  CHECK(nearest("launch", words).empty());
  CHECK(nearest("", words).empty());
  CHECK(nearest(std::string(100, 'x'), words).empty());
  CHECK(did_you_mean("trein", words, "--") == "did you mean --train?");
  CHECK(did_you_mean("qqq", words).empty());
}

}  // namespace
}  // namespace loongforge::cli
