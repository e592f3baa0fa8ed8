#include "generate/sampler.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "support/expect_error.h"

using namespace loongforge;
using generate::Sampler;

namespace {

const std::vector<float> kLogits = {2.0f, -1.0f, 0.5f,  2.0f,  3.25f, -4.0f,
                                    1.0f, 0.0f,  2.75f, -0.5f, 1.5f,  0.75f};

struct Warped {
  double temperature;
  int64_t top_k;
  double top_p;
  std::vector<double> expected;
};

// softmax of what transformers 5.24's TemperatureLogitsWarper, TopKLogitsWarper and
// TopPLogitsWarper make of kLogits, in float64. Tokens 0 and 3 are equal.
const Warped kWarped[] = {
    {1,
     0,
     1,
     {0.10682534778014116, 0.0053185208933507304, 0.023835956958094609, 0.10682534778014116,
      0.37285710030282765, 0.00026479356333316563, 0.039298849244303304, 0.014457238698675058,
      0.2261492630252136, 0.0087687585255303967, 0.064792848663120517, 0.030605974565268503}},
    {0.7,
     0,
     1,
     {0.08335364221477673, 0.0011472617548671734, 0.0097789797955561437, 0.08335364221477673,
      0.49710764480731862, 1.5790666120976923e-05, 0.019975786747968204, 0.0047872179978904689,
      0.24335490141742311, 0.0023435426433482142, 0.0408050803399383, 0.013976509400015408}},
    {1,
     4,
     1,
     {0.13145194102697291, 0, 0, 0.13145194102697291, 0.4588123566081842, 0, 0, 0,
      0.27828376133786997, 0, 0, 0}},
    {1,
     3,
     1,
     {0.13145194102697291, 0, 0, 0.13145194102697291, 0.4588123566081842, 0, 0, 0,
      0.27828376133786997, 0, 0, 0}},
    {0.7,
     0,
     0.8,
     {0, 0, 0, 0.10117990321684028, 0.60342058311447522, 0, 0, 0, 0.2953995136686845, 0, 0, 0}},
    {1.3,
     6,
     0.9,
     {0.14130318465103417, 0, 0, 0.14130318465103417, 0.36960922142484709, 0, 0, 0,
      0.25159757955854684, 0, 0.09618682971453768, 0}},
    {0.5, 0, 0.05, {0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}},
    {2,
     5,
     0.6,
     {0, 0, 0, 0.23130814108542005, 0.43214049950399813, 0, 0, 0, 0.33655135941058179, 0, 0, 0}},
};

}  // namespace

TEST_CASE("temperature, top-k and top-p leave what transformers' warpers leave") {
  for (const Warped& w : kWarped) {
    CAPTURE(w.temperature);
    CAPTURE(w.top_k);
    CAPTURE(w.top_p);
    const std::vector<double> p =
        Sampler({w.temperature, w.top_k, w.top_p, 42}).probabilities(kLogits);
    REQUIRE(p.size() == w.expected.size());
    for (size_t i = 0; i < p.size(); ++i) {
      if (w.expected[i] == 0)
        CHECK(p[i] == 0);
      else
        CHECK(std::abs(p[i] / w.expected[i] - 1) < 1e-13);
    }
  }
}

TEST_CASE("draws have the probabilities they are drawn by") {
  for (const Warped& w : {kWarped[0], kWarped[1], kWarped[5]}) {
    Sampler sampler({w.temperature, w.top_k, w.top_p, 7});
    constexpr int kDraws = 20000;
    std::vector<int> counts(kLogits.size());
    for (int i = 0; i < kDraws; ++i)
      ++counts[static_cast<size_t>(sampler.choose(kLogits, static_cast<uint64_t>(i % 10), i / 10))];
    double chi2 = 0;
    for (size_t i = 0; i < counts.size(); ++i) {
      if (w.expected[i] == 0) {
        CHECK(counts[i] == 0);
        continue;
      }
      const double expected = w.expected[i] * kDraws;
      chi2 += (counts[i] - expected) * (counts[i] - expected) / expected;
    }
    CHECK(chi2 < 40);  // 11 degrees of freedom: one in 30,000
  }
}

TEST_CASE(
    "a draw is the inverse of the distribution at SM4's number of seed, prompt and position") {
  const Warped& w = kWarped[0];
  Sampler sampler({1, 0, 1, 99});
  support::Sm4Random random(99);
  for (uint64_t prompt : {0, 1, 5}) {
    for (int64_t position : {0, 3, 1000}) {
      uint8_t b[8];
      random.bytes(support::kStreamSampling, static_cast<uint64_t>(position), prompt * 8, b);
      uint64_t bits = 0;
      for (int i = 7; i >= 0; --i) bits = bits << 8 | b[i];
      const long double u = static_cast<long double>(bits >> 11) / 9007199254740992.0L;
      int32_t expected = 0;
      for (long double sum = w.expected[0]; sum <= u;
           sum += w.expected[static_cast<size_t>(expected)])
        ++expected;
      CHECK(sampler.choose(kLogits, prompt, position) == expected);
      CHECK(Sampler({1, 0, 1, 99}).choose(kLogits, prompt, position) ==
            expected);  // whatever was drawn before
    }
  }
}

TEST_CASE("temperature 0 takes the largest, and so does one that overflows") {
  CHECK(Sampler({0, 3, 0.5, 1}).choose(kLogits, 0, 0) == 4);
  CHECK(Sampler({1e-320, 0, 1, 1}).choose(kLogits, 0, 0) == 4);
  CHECK(Sampler({1e-3, 0, 1, 1}).choose(kLogits, 0, 0) == 4);
}

TEST_CASE("sampling refuses what has no meaning") {
  LF_CHECK_ERROR(Sampler({-1, 0, 1, 1}), ErrorCode::kUsage, "sample_temperature");
  LF_CHECK_ERROR(Sampler({1, -1, 1, 1}), ErrorCode::kUsage, "sample_top_k");
  LF_CHECK_ERROR(Sampler({1, 0, 0, 1}), ErrorCode::kUsage, "sample_top_p");
  LF_CHECK_ERROR(Sampler({1, 0, 1.5, 1}), ErrorCode::kUsage, "sample_top_p");
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    std::vector<float> logits = kLogits;
    logits[2] = bad;
    LF_CHECK_ERROR(Sampler({1, 0, 1, 1}).choose(logits, 0, 0), ErrorCode::kFailed,
                   "token 2 is not finite");
  }
}
