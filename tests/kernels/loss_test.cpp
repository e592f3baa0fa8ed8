// Cross-entropy and argmax against double formulas, and bit for bit between ISAs.
#include "kernels/kernel_test.h"
#include "kernels/rows.h"

namespace loongforge::kernels {
namespace {

using test::Bytes;
using test::TestMatrix;
using test::UseIsa;

struct Wanted {
  double loss;
  std::vector<double> p;      // softmax - onehot
  std::vector<double> bound;  // of its error: x - max is rounded to fp32, that is where a small p
                              // gets its error from
};

Wanted wanted(const TestMatrix& logits, int64_t row, int64_t target) {
  double largest = -HUGE_VAL, sum = 0;
  for (int64_t j = 0; j < logits.cols(); ++j)
    largest = std::max(largest, static_cast<double>(logits.get(row, j)));
  for (int64_t j = 0; j < logits.cols(); ++j)
    sum += std::exp(static_cast<double>(logits.get(row, j)) - largest);
  Wanted w{largest + std::log(sum) - static_cast<double>(logits.get(row, target)), {}, {}};
  for (int64_t j = 0; j < logits.cols(); ++j) {
    const double x = static_cast<double>(logits.get(row, j)) - largest;
    const double p = std::exp(x) / sum;
    w.p.push_back(p - (j == target ? 1 : 0));
    w.bound.push_back(p > 0 ? p * (4 - x) * 0x1p-24 + (j == target ? 0x1p-24 : 0) + 0x1p-126 : 0);
  }
  return w;
}

TEST_CASE(
    "softmax_xent: loss and gradient of the formula, rows not trained on, in place, every ISA") {
  std::mt19937 random(21);
  for (const int64_t vocab :
       {int64_t{1}, int64_t{5}, int64_t{16}, int64_t{33}, int64_t{1000}, int64_t{49152}}) {
    TestMatrix logits(4, vocab, Elem::kF32, vocab + 3);
    logits.fill(&random, 5.0f);
    for (int64_t j = 0; j < vocab; ++j) logits.set(3, j, logits.get(3, j) - 3000.0f);
    if (vocab > 20) logits.set(0, 7, -HUGE_VALF);
    const std::vector<int32_t> targets = {static_cast<int32_t>(vocab - 1), -100,
                                          static_cast<int32_t>(vocab / 2), 0};
    test::check_same_on_every_isa([&] {
      std::vector<float> loss(4, -1.0f), loss_only(4, -1.0f);
      TestMatrix wide(4, vocab, Elem::kF32, vocab + 1), narrow(4, vocab, Elem::kBf16, vocab + 1),
          over = logits, front = logits;
      softmax_xent(static_cast<const float*>(logits.in().data), vocab + 3, vocab, targets.data(),
                   loss_only.data(), {nullptr, 0, Elem::kF32}, 0, 4);
      softmax_xent(static_cast<const float*>(logits.in().data), vocab + 3, vocab, targets.data(),
                   loss.data(), wide.out(), 0, 2);
      softmax_xent(static_cast<const float*>(logits.in().data), vocab + 3, vocab, targets.data(),
                   loss.data(), wide.out(), 2, 4);
      softmax_xent(static_cast<const float*>(logits.in().data), vocab + 3, vocab, targets.data(),
                   loss.data(), narrow.out(), 0, 4);
      softmax_xent(static_cast<const float*>(over.in().data), vocab + 3, vocab, targets.data(),
                   loss.data(), over.out(), 0, 4);
      const MatOut bf16_front = {front.out().data, 2 * (vocab + 3), Elem::kBf16};
      softmax_xent(static_cast<const float*>(front.in().data), vocab + 3, vocab, targets.data(),
                   loss.data(), bf16_front, 0, 4);
      CHECK(wide.surroundings_intact());
      CHECK(narrow.surroundings_intact());
      CHECK(over.surroundings_intact());
      CHECK(loss == loss_only);
      CHECK(loss[1] == 0.0f);
      int wrong = 0;
      for (int64_t i = 0; i < 4; ++i) {
        const bool trained = targets[static_cast<size_t>(i)] >= 0;
        const Wanted w = wanted(logits, i, trained ? targets[static_cast<size_t>(i)] : 0);
        if (trained) {
          const double error =
              std::fabs(static_cast<double>(loss[static_cast<size_t>(i)]) - w.loss);
          CHECK(error <= 1e-6 * std::max(1.0, std::fabs(w.loss)));
        }
        for (int64_t j = 0; j < vocab; ++j) {
          const float got = wide.get(i, j);
          const double want = trained ? w.p[static_cast<size_t>(j)] : 0.0;
          wrong += std::fabs(static_cast<double>(got) - want) >
                   (trained ? w.bound[static_cast<size_t>(j)] : 0.0);
          wrong += narrow.get(i, j) != test::bf16_round(got);
          wrong += over.get(i, j) != got;
          Bf16 b;
          std::memcpy(&b, static_cast<const Bf16*>(bf16_front.data) + i * bf16_front.ld + j, 2);
          wrong += test::bf16_value(b) != test::bf16_round(got);
        }
      }
      CHECK(wrong == 0);
      Bytes out = wide.bytes();
      test::append(&out, loss);
      return out;
    });
  }
}

TEST_CASE("softmax_xent: a NaN logit makes the loss NaN on every ISA") {
  for (const Isa isa : testable_isas()) {
    const UseIsa use(isa);
    for (const size_t at : {0, 3, 17, 99}) {
      std::vector<float> logits(100, 0.5f);
      logits[at] = NAN;
      const int32_t target = 4;
      float loss = 0;
      softmax_xent(logits.data(), 100, 100, &target, &loss, {nullptr, 0, Elem::kF32}, 0, 1);
      CHECK(std::isnan(loss));
    }
  }
}

TEST_CASE("argmax: the first of equal values, NaN never, minus infinity when nothing else") {
  std::mt19937 random(22);
  for (const Isa isa : testable_isas()) {
    const UseIsa use(isa);
    INFO("isa: ", test::isa_label(isa));
    for (int64_t n = 1; n < 120; ++n) {
      for (int repeat = 0; repeat < 20; ++repeat) {
        std::vector<float> x(static_cast<size_t>(n));
        for (float& v : x)
          v = repeat % 4 == 3 && random() % 3 == 0 ? NAN : static_cast<float>(random() % 7) - 3.0f;
        int64_t want = -1;
        for (int64_t j = 0; j < n; ++j) {
          const float v = x[static_cast<size_t>(j)];
          if (!std::isnan(v) && (want < 0 || v > x[static_cast<size_t>(want)])) want = j;
        }
        CHECK(argmax(x.data(), n) == (want < 0 ? 0 : want));
      }
      std::vector<float> low(static_cast<size_t>(n), -HUGE_VALF);
      CHECK(argmax(low.data(), n) == 0);
      low.front() = NAN;
      CHECK(argmax(low.data(), n) == (n > 1 ? 1 : 0));
      low.back() = HUGE_VALF;
      CHECK(argmax(low.data(), n) == n - 1);
    }
  }
}

}  // namespace
}  // namespace loongforge::kernels
