#include "data/vocabulary.h"

#include <map>
#include <random>

#include "data_floor/golden.h"

namespace loongforge::data {
namespace {

TEST_CASE("tokens and ids are found both ways, with holes between ids") {
  Vocabulary v;
  std::map<std::string, int32_t> expected;
  std::mt19937 random(3);
  for (int i = 0; i < 5000; ++i) {
    const std::string token = "t" + std::to_string(random() % 100000);
    const auto id = static_cast<int32_t>(random() % 1000000);
    bool taken = expected.contains(token);
    for (const auto& [other, other_id] : expected) taken = taken || other_id == id;
    CHECK(v.add(token, id) == !taken);
    if (!taken) expected[token] = id;
  }
  CHECK(v.size() == expected.size());
  for (const auto& [token, id] : expected) {
    CHECK(v.find(token) == id);
    CHECK(v.token(id) == token);
  }
  CHECK(v.find("absent") == -1);
  CHECK(v.token(-1).empty());
  CHECK(v.token(v.end_id()).empty());
}

TEST_CASE("an empty vocabulary finds nothing") {
  const Vocabulary v;
  CHECK(v.find("a") == -1);
  CHECK(v.end_id() == 0);
}

}  // namespace
}  // namespace loongforge::data
